#include "bench/reproduce/adaclip_tables.hpp"
#include "bench/reproduce/adp_table.hpp"
#include "bench/reproduce/dp_agd_tables.hpp"
#include "bench/reproduce/dpis_table.hpp"
#include "bench/reproduce/group_figures.hpp"
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

const std::vector<Reproduction>& reproductions() {
  static const std::vector<Reproduction> all = {
      {"dp-agd-fig2", "DP-AGD, logistic regression by epsilon (Lee, Kifer 2018, figure 2)",
       dp_agd_figure2},
      {"dp-agd-fig3", "DP-AGD, linear SVM by epsilon (Lee, Kifer 2018, figure 3)", dp_agd_figure3},
      {"adaclip-table1", "AdaCliP, logistic regression (Pichapati et al. 2019, table 1)",
       adaclip_table1},
      {"adaclip-table2", "AdaCliP, network on DP-PCA features (Pichapati et al. 2019, table 2)",
       adaclip_table2},
      {"adaclip-toy", "AdaCliP, l2 regression by dimension (Pichapati et al. 2019, figure 2)",
       adaclip_toy},
      {"group-fig1", "epsilon of groups, Poisson batches (Ganesh 2024, figure 1)", group_figure1},
      {"group-fig2", "epsilon of groups, batches of a fixed size (Ganesh 2024, figure 2)",
       group_figure2},
      {"dpis-table3", "DPIS and its rivals by epsilon (Wei et al. 2022, table 3)", dpis_table3,
       true},
      {"adp-table2", "ADP-SGD's lead by length and clipping norm (Wu et al. 2021, table 2)",
       adp_table2},
  };
  return all;
}

}  // namespace cudp

#include "runtime/reproduce/adaclip_tables.hpp"
#include "runtime/reproduce/dp_agd_tables.hpp"
#include "runtime/reproduce/reproduction.hpp"

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
  };
  return all;
}

}  // namespace cudp

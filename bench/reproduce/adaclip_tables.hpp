#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Tables 1 and 2 and figure 2 of Pichapati et al. 2019 (arXiv:1908.07643): logistic regression on
/// MNIST, a network of one hidden layer on DP-PCA features, and the l2 regression.
ReproducedTable adaclip_table1(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable adaclip_table2(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable adaclip_toy(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

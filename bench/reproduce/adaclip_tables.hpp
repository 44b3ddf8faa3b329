#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Pichapati et al. 2019 (arXiv:1908.07643). Table 1: logistic regression on MNIST; table 2: a
/// network of one hidden layer on DP-PCA features; figure 2: the l2 regression.
ReproducedTable adaclip_table1(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable adaclip_table2(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable adaclip_toy(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

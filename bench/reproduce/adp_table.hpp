#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Table 2 of Wu et al. 2021: ADP-SGD against DP-SGD, step sizes 1 / sqrt(20 + t), by length of
/// training and clipping norm. Here for logistic regression on MNIST.
ReproducedTable adp_table2(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

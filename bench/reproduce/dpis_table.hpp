#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Table 3 of Wei et al. 2022: test accuracy of DPIS and its rivals over epsilon, on MNIST,
/// Fashion-MNIST and, if its test set is complete, CIFAR-10.
ReproducedTable dpis_table3(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Figures 2 and 3 of Lee and Kifer 2018: accuracy of logistic regression and of the linear SVM
/// over epsilon, in repeated 5-fold cross-validation.
ReproducedTable dp_agd_figure2(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable dp_agd_figure3(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

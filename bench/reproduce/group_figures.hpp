#pragma once
#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// Figures 1 and 2 of Ganesh 2024, "Tight group-level DP guarantees for DP-SGD with sampling via
/// mixture of Gaussians mechanisms" (arXiv:2401.10294): epsilon over group size, with Poisson
/// batches and with batches of a fixed size.
ReproducedTable group_figure1(const ReproduceOptions& options, Reporter& reporter);
ReproducedTable group_figure2(const ReproduceOptions& options, Reporter& reporter);

}  // namespace cudp

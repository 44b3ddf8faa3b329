#pragma once
#include <optional>
#include <vector>

#include "runtime/report/charts.hpp"
#include "runtime/report/document.hpp"

namespace cudp {

/// Privacy cost of several runs on the same rows together.
struct SpentTogether {
  double delta = 0.0;
  /// Epsilon if settings of a run may have been chosen by looking at an earlier one.
  double as_chosen = 0.0;
  double fixed_ahead = 0.0;  ///< epsilon if none were
};

/// Returns a page that compares runs: privacy guarantees, test figures, the loss in quality
/// compared with a run without privacy, and `together`, the cost of the private runs together
/// (nullopt if they cannot be added up). The page is headed NOT FOR RELEASE if a run is not for
/// release, or if some figures were measured on private rows without noise.
page::Document comparison(const std::vector<NamedFacts>& runs,
                          const std::optional<SpentTogether>& together);

}  // namespace cudp

#pragma once
#include <optional>
#include <vector>

#include "runtime/report/charts.hpp"
#include "runtime/report/document.hpp"

namespace cudp {

/// Epsilon and delta that several runs on the same rows have together.
struct SpentTogether {
  double delta = 0.0;
  /// Epsilon if the settings of a run may have been chosen by looking at the results of an earlier
  /// run.
  double as_chosen = 0.0;
  /// Epsilon if the settings of all runs were fixed before the first run.
  double fixed_ahead = 0.0;
};

/// Returns a page that compares runs: privacy guarantees, test metrics, the loss in quality
/// compared with a run without privacy, and the privacy cost of all private runs together.
/// together: that cost; nullopt if it cannot be computed. The page is marked NOT FOR RELEASE if a
/// run must not be released, or if some metrics were measured on private rows without noise.
page::Document comparison(const std::vector<NamedFacts>& runs,
                          const std::optional<SpentTogether>& together);

}  // namespace cudp

#pragma once
#include <optional>
#include <vector>

#include "runtime/report/charts.hpp"
#include "runtime/report/document.hpp"

namespace cudp {

/// What several private runs on the same rows spend together.
struct SpentTogether {
  double delta = 0.0;
  double as_chosen = 0.0;    ///< epsilon if a run may have been chosen by looking at another
  double fixed_ahead = 0.0;  ///< epsilon if none was
};

/// Returns a page that compares runs: promises, figures, what privacy costs compared with a run
/// without it, and what the private runs spend together (empty: they cannot be added up). Headed
/// NOT FOR RELEASE if a run is, or if figures were not paid for.
page::Document comparison(const std::vector<NamedFacts>& runs,
                          const std::optional<SpentTogether>& together);

}  // namespace cudp

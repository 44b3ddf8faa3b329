#pragma once
#include <string>

#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns a message for the user: by how much the noise is larger because the number of examples
/// is private, compared with a public number of the same value. "" if the number is public, or if
/// the method's noise multiplier is not known in advance. The message depends on public settings
/// and released values only.
std::string size_cost_line(const Experiment& experiment, const TrainingSize& size,
                           const Method& method);

/// Returns a message for the user which states that the guarantee protects single rows, not persons
/// with several rows, and how a schema declares a larger unit of privacy. Returns "" if a larger
/// unit is declared, or if the run has no privacy.
std::string row_privacy_line(const Experiment& experiment, const Method& method);

/// Returns a message for the user that shows what it costs to protect units of several rows (e.g.
/// persons) instead of single rows: the epsilon that the same noise would give for single rows.
/// Returns "" if each row is a unit of its own. The message depends on public settings and released
/// values only.
std::string unit_cost_line(const Experiment& experiment, const Method& method);

}  // namespace cudp

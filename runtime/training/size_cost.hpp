#pragma once
#include <string>

#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns a message for the user: how much more noise is needed because the number of examples is
/// private, compared with a public number of the same value. It depends on public settings and
/// released values only. "" if the number is public, or if the method has no noise multiplier that
/// is known in advance.
std::string size_cost_line(const Experiment& experiment, const TrainingSize& size,
                           const Method& method);

/// Returns a message for the user: that privacy protects single rows, and how a schema declares a
/// larger unit of privacy. "" if the unit is not a single row, or without privacy.
std::string row_privacy_line(const Experiment& experiment, const Method& method);

/// Returns a message for the user with the cost of protecting units of several rows: the epsilon
/// that the same noise would give for single rows. It depends on public settings and released
/// values only. "" if each row is a unit.
std::string unit_cost_line(const Experiment& experiment, const Method& method);

}  // namespace cudp

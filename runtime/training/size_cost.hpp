#pragma once
#include <string>

#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns a line for the user: how much more noise a private number of examples costs, compared
/// with a public one of the same value. It is a function of public settings and of the released
/// number. "" if the number is public, or if the method has no noise multiplier that is known
/// ahead.
std::string size_cost_line(const Experiment& experiment, const TrainingSize& size,
                           const Method& method);

/// Returns a line for the user: whose privacy is protected if the unit of privacy is a row, and how
/// a schema states another unit. "" if a unit has several rows, or without privacy.
std::string row_privacy_line(const Experiment& experiment, const Method& method);

/// Returns a line for the user: the cost of a unit of privacy with several rows, compared with the
/// epsilon that the same noise gives single rows. It is a function of public settings and of the
/// released number. "" if the unit is a row.
std::string unit_cost_line(const Experiment& experiment, const Method& method);

}  // namespace cudp

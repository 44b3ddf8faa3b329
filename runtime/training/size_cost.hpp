#pragma once
#include <string>

#include "runtime/training/prepare.hpp"

namespace cudp {

/// One line for people: the noise that a private number of examples costs, beside a public one of
/// the same value. A function of public settings and of the released number. Empty where the number
/// is public, or the method has no noise multiplier that is known ahead.
std::string size_cost_line(const Experiment& experiment, const TrainingSize& size,
                           const Method& method);

/// One line for people: whose privacy it is where the unit of privacy is a row, and how a schema
/// states another one. Empty where there is a unit of several rows, or no privacy.
std::string row_privacy_line(const Experiment& experiment, const Method& method);

/// One line for people: what a unit of privacy of several rows costs, the epsilon that the same
/// noise gives single rows beside it. A function of public settings and of the released number.
/// Empty where the unit is a row.
std::string unit_cost_line(const Experiment& experiment, const Method& method);

}  // namespace cudp

#pragma once
#include <string>

#include "runtime/training/prepare.hpp"

namespace cudp {

/// One line for people: the noise that a private number of examples costs, beside a public one of
/// the same value. A function of public settings and of the released number. Empty where the number
/// is public, or the method has no noise multiplier that is known ahead.
std::string size_cost_line(const Experiment& experiment, const TrainingSize& size,
                           const Method& method);

}  // namespace cudp

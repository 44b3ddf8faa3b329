#pragma once
#include <string>
#include <vector>

#include "runtime/cli/answer.hpp"

namespace cudp {

/// The epsilon of a run had it had other settings, beside its own. changes: one row each,
/// "KEY=VALUE" with KEY epochs, steps, batch, sigma, epsilon (to which the noise is calibrated) or
/// delta; several at once are joined by "+". With another batch the number of epochs stays. Nothing
/// is trained, and the data are not looked at. Throws InputError, also for a run whose releases do
/// not follow from these numbers alone, and std::exception as privacy/ does.
Answer what_if(const std::string& run, const std::vector<std::string>& changes);

}  // namespace cudp

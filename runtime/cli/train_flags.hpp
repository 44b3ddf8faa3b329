#pragma once
#include <map>
#include <string>

#include "runtime/settings/settings.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cudp {

/// Flags of a command, by option key.
using TrainFlags = std::map<std::string, CLI::Option*>;

/// Everything that `cudp train` can be told, as flags of `command`.
TrainFlags add_train_flags(CLI::App& command);

/// What the user gave. Throws InputError.
Settings given(const TrainFlags& flags);

}  // namespace cudp

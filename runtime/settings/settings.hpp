#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Applies the settings of one source to `config`. Throws InputError on values out of range and on
/// two settings that contradict each other.
void apply_settings(const Settings& settings, TrainConfig& config);

/// Resolves all sources, in rising priority: defaults, preset, config file, flags. `notes` receives
/// lines to report to the user. Throws InputError.
TrainConfig resolve_config(const Settings& flags, std::vector<std::string>& notes);

/// Applies flags to the stored config of a run that is resumed. Throws InputError, naming the
/// setting, if the flags would change the experiment.
TrainConfig resolve_resumed(const Settings& flags, const TrainConfig& stored);

/// Throws InputError unless all settings that privacy rests on are set, and all settings fit
/// together and fit the method. The method fills in settings that follow from others.
void check_complete(TrainConfig& config);

enum class Audience {
  release,  ///< settings of the experiment; paths without their folders
  owner     ///< also settings of the machine: everything that a resume needs
};

/// Formats a TOML file that gives this config when it is read.
std::string write_config(const TrainConfig& config, Audience audience);

}  // namespace cudp

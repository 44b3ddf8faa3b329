#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Sets what the source says, on top of what `config` holds. Throws InputError on values out of
/// range and on two settings that contradict each other.
void apply_settings(const Settings& settings, TrainConfig& config);

/// Defaults < preset < config file < flags. `notes` receives lines worth telling the user.
/// Throws InputError.
TrainConfig resolve_config(const Settings& flags, std::vector<std::string>& notes);

/// Resolves flags on top of the finished config of a run that is being resumed. Throws InputError,
/// naming the setting, where the flags would change the experiment.
TrainConfig resolve_resumed(const Settings& flags, const TrainConfig& stored);

/// Throws InputError unless the settings that privacy rests on are there and all fit together and
/// to the method, which fills in what follows from others.
void check_complete(TrainConfig& config);

enum class Audience {
  release,  ///< the experiment's settings; paths without their folders
  owner     ///< the machine's settings too: what a resume needs
};

/// A TOML file that gives this config when read back.
std::string write_config(const TrainConfig& config, Audience audience);

}  // namespace cudp

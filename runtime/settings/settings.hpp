#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Applies the settings of one source to `config`. Throws InputError on values out of range and on
/// two settings that contradict each other.
void apply_settings(const Settings& settings, TrainConfig& config);

/// Returns the config that results from all sources of settings, in rising priority: defaults,
/// preset, config file, flags. notes: receives messages for the user. Throws InputError.
TrainConfig resolve_config(const Settings& flags, std::vector<std::string>& notes);

/// Returns the stored config of a run that is resumed, with the changes by flags. Throws
/// InputError, naming the setting, if the flags would change the experiment.
TrainConfig resolve_resumed(const Settings& flags, const TrainConfig& stored);

/// Throws InputError unless all settings that the privacy guarantee needs are set, and all settings
/// fit together and fit the method. May change `config`: the method computes some settings from
/// others (MethodEntry::complete).
void check_complete(TrainConfig& config);

enum class Audience {
  release,  ///< settings that affect the result; paths without their folders
  owner     ///< all settings, as a resume needs them
};

/// Returns a config as TOML that reads back as the same config.
std::string write_config(const TrainConfig& config, Audience audience);

}  // namespace cudp

#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Sets the members of `config` for which `settings` (from one source: flags, a file or a preset)
/// has values. Throws InputError on values out of range and on two settings that contradict each
/// other.
void apply_settings(const Settings& settings, TrainConfig& config);

/// Returns the config that results from all sources of settings, in rising priority: defaults,
/// preset, config file, flags. notes: receives messages for the user. Throws InputError if a
/// setting is not valid, or if settings contradict each other.
TrainConfig resolve_config(const Settings& flags, std::vector<std::string>& notes);

/// Returns the config with which a run is resumed: the stored config, changed by the flags of the
/// resume. Throws InputError if a flag would change the result of the training, not only how it is
/// executed; the message has the name of the setting.
TrainConfig resolve_resumed(const Settings& flags, const TrainConfig& stored);

/// Throws InputError unless all settings that the privacy guarantee needs are set, and all settings
/// are consistent with each other and with the training method. May change `config`, because a
/// method can compute settings that are not set from others.
void check_complete(TrainConfig& config);

enum class Audience {
  release,  ///< settings that affect the result; paths without their folders
  owner     ///< all settings, as a resume needs them
};

/// Returns a config as TOML text that can be read back. audience: who will read the text;
/// determines which settings it contains.
std::string write_config(const TrainConfig& config, Audience audience);

}  // namespace cudp

#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"

namespace cudp {

struct Setting {
  Value value;
  std::string place;  ///< who said so, for error messages: "--batch" or "run.toml, line 3, batch"
};

/// The settings of one source, by option key: the command line, a TOML file, a preset.
using Settings = std::map<std::string, Setting, std::less<>>;

/// Reads TOML with one key an option; a table of a method's name has what is otherwise with that
/// method, and is looked at where `method` is it. Throws InputError on a syntax error, an unknown
/// key (naming the nearest known one) or a value of the wrong type; `source` names the text in
/// messages.
Settings parse_settings(std::string_view toml, const std::string& source,
                        std::string_view method = "");
Settings read_settings(const std::filesystem::path& file, std::string_view method = "");

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

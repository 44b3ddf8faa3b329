#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "runtime/config/option.hpp"

namespace cudp {

/// Value of one setting, and where it was given.
struct Setting {
  Value value;
  /// Place where the value was given, for messages: "--batch" or "run.toml, line 3, batch".
  std::string place;
};

/// Settings from one source (command line, TOML file or preset). The map's key is the key of the
/// option, such as "batch".
using Settings = std::map<std::string, Setting, std::less<>>;

/// Parses settings in TOML, with one key per option. A TOML table named after a training method has
/// settings that apply only if `method` is that method; they replace settings of the same key
/// outside the table. source: name of the text in messages. Throws InputError on a syntax error, an
/// unknown key (the message suggests the nearest known one), or a value of the wrong type.
Settings parse_settings(std::string_view toml, const std::string& source,
                        std::string_view method = "");
Settings read_settings(const std::filesystem::path& file, std::string_view method = "");

}  // namespace cudp

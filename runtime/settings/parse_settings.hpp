#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "runtime/config/option.hpp"

namespace cudp {

struct Setting {
  Value value;
  /// Where the value was given, for messages: "--batch" or "run.toml, line 3, batch".
  std::string place;
};

/// Settings from one source (command line, TOML file or preset), by option key.
using Settings = std::map<std::string, Setting, std::less<>>;

/// Parses TOML with one key per option. A table named after a method has settings that apply if
/// `method` is that method; they replace those outside of it. Throws InputError on a syntax error,
/// an unknown key (naming the nearest known one), or a value of the wrong type. `source` names the
/// text in messages.
Settings parse_settings(std::string_view toml, const std::string& source,
                        std::string_view method = "");
Settings read_settings(const std::filesystem::path& file, std::string_view method = "");

}  // namespace cudp

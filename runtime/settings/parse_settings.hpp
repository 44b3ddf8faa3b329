#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

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

}  // namespace cudp

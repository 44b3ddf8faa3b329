#pragma once
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "runtime/config/option.hpp"

namespace cudp {

/// Parses the TOML text of a settings file. source: name of the file in messages. Throws
/// InputError, with the line, on a syntax error.
toml::table parse_toml(std::string_view text, const std::string& source);

/// Returns the position of a TOML value in its file as text for messages: "SOURCE, line N". source:
/// name of the file.
std::string line_of(const toml::node& node, const std::string& source);

/// Returns the value of a TOML node that must be a single boolean, number or text. place: position
/// of the node in its file, for messages. expected: description of a valid value for the message,
/// such as "a single value". Throws InputError if the node is anything else, e.g. a list.
Value toml_value(const toml::node& node, const std::string& place, const char* expected);

}  // namespace cudp

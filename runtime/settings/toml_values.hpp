#pragma once
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "runtime/config/option.hpp"

namespace cudp {

/// Parses a settings file. source: its name for messages. Throws InputError, with the line.
toml::table parse_toml(std::string_view text, const std::string& source);

/// Returns "SOURCE, line N" of a node, for messages.
std::string line_of(const toml::node& node, const std::string& source);

/// Returns a single value. place: its position for messages. expected: description of a valid value
/// for the message, such as "a single value". Throws InputError.
Value toml_value(const toml::node& node, const std::string& place, const char* expected);

}  // namespace cudp

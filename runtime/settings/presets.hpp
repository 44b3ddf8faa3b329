#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Returns the names of the presets, tuned settings that come with the program:
/// settings/presets/*.toml.
std::vector<std::string> preset_names();

/// Returns the settings of a preset, including those in its table for this method. Throws
/// InputError, naming the nearest preset, if there is none of that name.
Settings preset_settings(const std::string& name, std::string_view method = "");

/// Returns the name of the preset for this data set and these features, which is for this method or
/// for no particular one; "" if there is none. If there are several, returns the one with this
/// model, or else the last.
std::string preset_for(std::string_view dataset, std::string_view features = "none",
                       std::string_view method = "dpsgd", std::string_view model = "");

}  // namespace cudp

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Tuned settings that come with the program: settings/presets/*.toml.
std::vector<std::string> preset_names();

/// The settings of a preset, with those for the method. Throws InputError, naming the nearest
/// preset, if there is none of that name.
Settings preset_settings(const std::string& name, std::string_view method = "");

/// The preset made for a data set and what models see of it (`features`), and for this method or
/// none in particular; empty if there is none. Of several, the one with this model, or the last.
std::string preset_for(std::string_view dataset, std::string_view features = "none",
                       std::string_view method = "dpsgd", std::string_view model = "");

}  // namespace cudp

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Returns the names of the presets. A preset is a set of tuned settings for a data set that comes
/// with the program.
std::vector<std::string> preset_names();

/// Returns the settings of a preset, including those in its TOML table for this training method.
/// Throws InputError if there is no preset of that name; the message suggests the nearest one.
Settings preset_settings(const std::string& name, std::string_view method = "");

/// Returns the name of a preset that was tuned for a data set and features, and either for this
/// training method or for no particular one; "" if there is none. If several presets match, returns
/// the one that states this model, or else the last of them.
std::string preset_for(std::string_view dataset, std::string_view features = "none",
                       std::string_view method = "dpsgd", std::string_view model = "");

}  // namespace cudp

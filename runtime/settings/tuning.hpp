#pragma once
#include <string>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// Returns the learning rate that is used if no flag, file or preset sets one; it depends on the
/// optimizer (SGD, Adam, ...).
double default_learning_rate(OptimizerKind optimizer);

/// Removes the learning rate and its schedule from a preset, if the file or the flags choose
/// another optimizer than the one for which the preset was tuned. Returns the removed settings.
Settings drop_tuning(Settings& preset, const Settings& file, const Settings& flags);

/// The preset (tuned settings that come with the program) that a run uses, and which of its
/// settings were removed.
struct PresetUse {
  std::string name;
  bool typed = true;  ///< false: it was chosen automatically for the data set
  Settings settings;  ///< all settings of the preset
  Settings dropped;   ///< settings removed by drop_tuning
  TrainConfig alone;  ///< config that the preset gives without other sources
};

/// Returns a message for the user with the name of the preset, and the names of those of its
/// settings that a file or a flag has replaced.
std::string preset_line(const PresetUse& use, const TrainConfig& resolved);

/// Returns a message for the user of a method that needs other settings than those of the preset,
/// which were tuned for another method: the preset's values, and the flags to type. Returns "" if
/// the values suit the method, if the preset has settings for this method, or if `flags` or `file`
/// set the settings that the method needs.
std::string other_method_line(const PresetUse& use, const TrainConfig& resolved,
                              const Settings& file, const Settings& flags);

}  // namespace cudp

#pragma once
#include <string>

#include "runtime/config/config.hpp"
#include "runtime/settings/parse_settings.hpp"

namespace cudp {

/// The learning rate where nobody gives one: each family of optimizers needs its own.
double default_learning_rate(OptimizerKind optimizer);

/// Takes out of a preset the learning rate and the schedule, which were tuned for its optimizer,
/// where the file or the flags choose another one. Returns what it took.
Settings drop_tuning(Settings& preset, const Settings& file, const Settings& flags);

/// A preset, and what became of it.
struct PresetUse {
  std::string name;
  bool typed = true;  ///< false: it was found as the one for the data set
  Settings settings;  ///< all that it says
  Settings dropped;   ///< by drop_tuning
  TrainConfig alone;  ///< the config that it gives by itself
};

/// One line for people: the preset, and each of its settings that another source replaced.
std::string preset_line(const PresetUse& use, const TrainConfig& resolved);

/// One line for people where the method needs other settings than those that the preset was tuned
/// for: what was tuned for which method, and what to type. Empty where the preset serves the
/// method, has a table for it, or `flags` or `file` show that the user knows.
std::string other_method_line(const PresetUse& use, const TrainConfig& resolved,
                              const Settings& file, const Settings& flags);

}  // namespace cudp

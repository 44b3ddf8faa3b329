#include "runtime/settings/tuning.hpp"

#include <utility>
#include <vector>

#include "runtime/settings/options.hpp"

namespace cudp {
namespace {

constexpr const char* kTuned[] = {"lr",       "schedule", "decay-every", "decay-factor",
                                  "final-lr", "poly-a",   "poly-c",      "warmup"};

constexpr double kAdamRate = 1e-3;  // Kingma, Ba 2015

/// The value of an option as people write it.
std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : value_text(value);
}

std::string named(const Option& option, const Value& value) {
  if (const auto* on = std::get_if<bool>(&value)) return (*on ? "" : "no ") + option.key;
  return option.key + " " + plain_text(value);
}

/// The option that answers the same question as `option`, which is not set, and its value.
std::string in_place_of(const Option& option, const TrainConfig& resolved) {
  for (const Option& other : train_options())
    if (!option.instead_of.empty() && other.instead_of == option.instead_of)
      if (const auto value = other.get(resolved)) return named(other, *value);
  return "";
}

std::string list_of(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

double default_learning_rate(OptimizerKind optimizer) {
  return has_second_moment(optimizer) ? kAdamRate : TrainConfig{}.lr;
}

Settings drop_tuning(Settings& preset, const Settings& file, const Settings& flags) {
  Settings dropped;
  const Option& optimizer = *find_option("optimizer");
  TrainConfig tuned, chosen;
  if (const auto at = preset.find("optimizer"); at != preset.end())
    optimizer.set(tuned, at->second.value, at->second.place);
  chosen.optimizer = tuned.optimizer;
  for (const Settings* const source : {&file, &flags})
    if (const auto at = source->find("optimizer"); at != source->end())
      optimizer.set(chosen, at->second.value, at->second.place);
  if (chosen.optimizer == tuned.optimizer) return dropped;
  for (const char* const key : kTuned)
    if (auto setting = preset.extract(key)) dropped.insert(std::move(setting));
  return dropped;
}

std::string preset_line(const PresetUse& use, const TrainConfig& resolved) {
  std::vector<std::string> replaced, lost;
  for (const Option& option : train_options()) {
    const auto then = option.get(use.alone);
    const auto now = option.get(resolved);
    if (use.dropped.contains(option.key)) lost.push_back(named(option, *then));
    if (!use.settings.contains(option.key) || use.dropped.contains(option.key) || now == then)
      continue;
    if (now && option.kind == ValueKind::toggle) replaced.push_back(named(option, *now));
    const std::string instead = now ? named(option, *now) : in_place_of(option, resolved);
    if (option.kind == ValueKind::toggle || instead.empty() || !then) continue;
    replaced.push_back(instead + " instead of " + (now ? plain_text(*then) : named(option, *then)));
  }
  std::string line = "preset " + use.name;
  if (!use.typed) line += ", tuned for this data set, without its budget";
  if (!replaced.empty()) line += ", but " + list_of(replaced);
  if (!lost.empty())
    line += "; its " + list_of(lost) + " was tuned for another optimizer and is dropped: lr " +
            value_text(Value(resolved.lr));
  return line;
}

}  // namespace cudp

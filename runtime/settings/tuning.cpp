#include "runtime/settings/tuning.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"

namespace cudp {
namespace {

/// Keys of those settings of a preset that suit only the preset's optimizer. They are dropped if
/// the user chooses another optimizer.
constexpr const char* kTuned[] = {"lr",       "schedule", "decay-every", "decay-factor",
                                  "final-lr", "poly-a",   "poly-c",      "warmup"};

constexpr double kAdamRate = 1e-3;  // Kingma, Ba 2015

/// Returns the value of an option as text for messages.
std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : value_text(value);
}

std::string named(const Option& option, const Value& value) {
  if (const auto* on = std::get_if<bool>(&value)) return (*on ? "" : "no ") + option.key;
  return option.key + " " + plain_text(value);
}

/// Returns the option that is set instead of `option`, i.e. another one of a group of mutually
/// exclusive options, with its value as text; "" if none is set.
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

/// Returns a setting of a preset as text; "" if the preset does not set it.
std::string stated(const std::string& preset, const char* key) {
  const Settings settings = preset_settings(preset);
  const auto at = settings.find(key);
  return at == settings.end() ? "" : plain_text(at->second.value);
}

std::string method_of(const std::string& preset) {
  const std::string method = stated(preset, "method");
  return method.empty() ? TrainConfig{}.method : method;
}

/// Returns the name of the preset that was tuned for this method, and for the same data set,
/// features and model as `preset`; "" if there is none.
std::string same_for(const std::string& preset, const std::string& method) {
  for (const std::string& other : preset_names())
    if (method_of(other) == method &&
        std::ranges::all_of(std::array{"dataset", "features", "model"}, [&](const char* key) {
          return stated(other, key) == stated(preset, key);
        }))
      return other;
  return "";
}

/// Returns whether the preset has a table with settings tuned for this method.
bool has_own_table(const std::string& preset, const std::string& method) {
  const Settings general = preset_settings(preset);
  const Settings of_method = preset_settings(preset, method);
  return !std::ranges::equal(general, of_method, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.value == b.second.value;
  });
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

std::string other_method_line(const PresetUse& use, const TrainConfig& resolved,
                              const Settings& file, const Settings& flags) {
  const MethodEntry& tuned = method_entry(method_of(use.name));
  const MethodEntry& method = method_entry(resolved.method);
  if (tuned.name == method.name || !method.gives_privacy || has_own_table(use.name, method.name) ||
      (tuned.own_tuning.empty() && method.own_tuning.empty()))
    return "";
  const std::vector<std::string> usual = {"lr"};
  const auto typed = [&](const std::string& key) {
    return file.contains(key) || flags.contains(key);
  };
  if (std::ranges::any_of(method.own_tuning.empty() ? usual : method.tuned_by, typed)) return "";
  std::vector<std::string> values;
  for (const char* const key : {"lr", "clip"})
    if (const auto at = use.settings.find(key); at != use.settings.end() && !typed(key))
      values.push_back(named(*find_option(key), at->second.value));
  std::string line =
      "preset " + use.name + " was tuned for " + tuned.name +
      (values.empty() ? "" : ", with " + list_of(values)) + "; " + method.name +
      " needs settings of its own: " +
      (method.own_tuning.empty() ? "type --lr and --clip" : std::string(method.own_tuning));
  if (const std::string better = same_for(use.name, method.name); !better.empty())
    line += ", or --preset " + better + ", which is tuned for it";
  return line;
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

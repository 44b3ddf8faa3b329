#include "runtime/settings/settings.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/config/fine_tuning.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/text.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/settings/tuning.hpp"

namespace cudp {
namespace {

std::string text_setting(const Settings& s, std::string_view key) {
  const auto it = s.find(key);
  if (it == s.end()) return "";
  const auto* text = std::get_if<std::string>(&it->second.value);
  if (!text)
    throw InputError(it->second.place + ": expected a text, found " + value_text(it->second.value));
  return *text;
}

/// The settings for the chosen method in the two sources that are given by name: the config file
/// and the preset.
struct NamedSources {
  Settings file;
  Settings preset;
  Settings dropped;  ///< settings that drop_tuning() removed from the preset
  std::string preset_name;
  std::string method;
};
NamedSources named_sources(const Settings& flags, const std::string& usual_method) {
  NamedSources s;
  const std::string file = text_setting(flags, "config");
  if (!file.empty()) s.file = read_settings(file);
  std::string& preset = s.preset_name;
  preset = text_setting(flags, "preset");
  if (preset.empty()) preset = text_setting(s.file, "preset");
  if (!preset.empty()) s.preset = preset_settings(preset);
  for (const Settings* const source : {&flags, &std::as_const(s.file), &std::as_const(s.preset)})
    if (s.method.empty()) s.method = text_setting(*source, "method");
  if (s.method.empty()) s.method = usual_method;
  if (!file.empty()) s.file = read_settings(file, s.method);
  if (!preset.empty()) s.preset = preset_settings(preset, s.method);
  s.dropped = drop_tuning(s.preset, s.file, flags);
  return s;
}

/// Returns the names of the methods for which chosen(method) holds, separated by commas.
template <class Chosen>
std::string names_of(const Chosen& chosen) {
  std::string names;
  for (const MethodEntry& method : methods())
    if (chosen(method)) names += (names.empty() ? "" : ", ") + method.name;
  return names;
}

/// Throws InputError if the option is only for certain methods, and `method` is not one of them.
void check_used(const MethodEntry& method, const Option& option, const Setting& setting) {
  if (takes(method, option.key)) return;
  const std::string users =
      names_of([&](const MethodEntry& other) { return takes(other, option.key); });
  throw InputError(setting.place + ": expected --method " + users + " with it, found " +
                   value_text(setting.value) + " with --method " + method.name);
}

/// Throws InputError if a setting is given that the chosen method does not use. A setting in a file
/// is accepted if it has its default value, because a file written by cudp contains all settings. A
/// delta for a method without privacy is accepted, too, and reported in `notes`.
void check_all_used(const Settings& flags, const Settings& file, const TrainConfig& config,
                    std::vector<std::string>& notes) {
  const MethodEntry& method = method_entry(config.method);
  for (const auto& [key, setting] : flags) {
    check_used(method, *find_option(key), setting);
    if (!method.gives_privacy && key == "delta")
      notes.push_back(setting.place + " is ignored: --method " + method.name + " gives no privacy");
    if (!method.gives_privacy && key == "epsilon")
      throw InputError(setting.place + ": expected none with --method " + method.name +
                       ", which gives no privacy, found " + value_text(setting.value));
  }
  const TrainConfig usual;
  for (const auto& [key, setting] : file) {
    const Option& option = *find_option(key);
    TrainConfig given;
    option.set(given, setting.value, setting.place);
    if (option.get(given) != option.get(usual) && !ignores(method, key))
      check_used(method, option, setting);
  }
}

/// Makes paths absolute, so that a resume from another folder finds the same files.
void make_absolute(TrainConfig& c) {
  const auto from_root = [](std::string& path) {
    if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
  };
  if (!is_named_dataset(c.dataset)) from_root(c.dataset);
  if (c.model.ends_with(".toml")) from_root(c.model);
  from_root(c.data_dir);
  if (shipped_schema(c.schema).empty()) from_root(c.schema);
  from_root(c.labels);
  from_root(c.of<FineTuning>().init);
  from_root(c.test_data);
  from_root(c.test_labels);
  from_root(c.of<ReportOptions>().metrics_file);
  // A file of words or vectors may also be named relative to the data folder. Only the path of an
  // existing file is made absolute.
  TextOptions& text = c.of<TextOptions>();
  for (std::string* const file : {&text.vocabulary, &text.embedding})
    if (std::filesystem::is_regular_file(*file)) from_root(*file);
  if (c.feature_cache != "auto" && c.feature_cache != "none") from_root(c.feature_cache);
}

/// Returns whether the values of an option are paths: --help calls them FILE or DIR, or the option
/// is the data set or the model. (A slash does not show it, because names of layers and arrays may
/// contain slashes.)
bool is_path(const Option& option) {
  return option.value_name == "FILE" || option.value_name == "DIR" || option.key == "dataset" ||
         option.key == "model";
}

/// Returns the value of an option in the form in which it is published: a path without its folders,
/// any other value unchanged. A file name without an extension gets "./" in front, because it could
/// otherwise be taken for the name of a published data set (mnist) or of published vectors (glove).
Value without_folders(const Option& option, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (!text || !is_path(option) || text->find('/') == std::string::npos) return value;
  const std::filesystem::path path(*text);
  const std::filesystem::path name = (path.has_filename() ? path : path.parent_path()).filename();
  return name.has_extension() ? name.string() : "./" + name.string();
}

/// Returns the value of an option without the "./" that without_folders() may have added in front
/// of a file name. All other values are returned unchanged.
Value own_name(const Option& option, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (!text || !is_path(option) || !text->starts_with("./")) return value;
  const std::string name = text->substr(2);
  return is_named_dataset(name) || is_named_embedding(name) ? value : Value(name);
}

/// Returns whether an option of the resumed run has the value of the original run. Paths are
/// compared without their folders, because files may have moved; the examples themselves are
/// compared later.
bool is_same_setting(const Option& option, const std::optional<Value>& now,
                     const std::optional<Value>& then) {
  if (!now || !then) return now == then;
  const Value a = without_folders(option, *now), b = without_folders(option, *then);
  // Earlier versions of the program wrote the name without "./".
  return a == b || own_name(option, a) == own_name(option, b);
}

}  // namespace

void apply_settings(const Settings& settings, TrainConfig& config) {
  for (const auto& [key, setting] : settings) {
    const Option& option = *find_option(key);
    if (option.instead_of.empty()) continue;
    for (const Option& other : train_options())
      if (other.instead_of == option.instead_of && !settings.contains(other.key))
        other.clear(config);
  }
  // Resets the settings that describe the previous vocabulary or embedding if another one is set.
  TextOptions& text = config.of<TextOptions>();
  if (settings.contains("vocabulary")) text.vocabulary_is_public = false;
  if (settings.contains("embedding")) {
    text.tokenizer = Tokenizer::words;
    text.embedding_tensor.clear();
    text.embedding_dims = 0;
  }
  // Setting feature groups turns off standardised channels, and the noise for them.
  if (settings.contains("feature-groups") && config.feature_standardise) {
    config.feature_standardise = false;
    config.feature_sigma.reset();
  }
  for (const auto& [key, setting] : settings) {
    const Option& option = *find_option(key);
    option.set(config, setting.value, setting.place);
  }
  if (settings.contains("epochs") && settings.contains("steps"))
    throw InputError(settings.at("steps").place + ": expected either epochs or steps, found both");
}

namespace {

/// Returns the name of the preset that was tuned for the chosen data set, features, method and
/// model; "" if there is none.
std::string own_preset(const Settings& flags, const NamedSources& named) {
  const auto stated = [&](const char* key, const std::string& otherwise) {
    for (const Settings* source : {&flags, &named.file})
      if (std::string text = text_setting(*source, key); !text.empty()) return text;
    return otherwise;
  };
  // An unknown method is reported later.
  const MethodEntry* const method = find_method(named.method);
  // Settings tuned for stochastic gradients do not suit the other methods.
  if (method != nullptr && !method->stochastic) return "";
  return preset_for(stated("dataset", ""), stated("features", "none"), named.method,
                    stated("model", ""));
}

/// Uses the preset that was tuned for the data set, if there is one, as default settings; but not
/// its privacy budget (epsilon, delta, sigma), which only the user may set.
void take_own_preset(const Settings& flags, NamedSources& named) {
  named.preset_name = own_preset(flags, named);
  if (named.preset_name.empty()) return;
  named.preset = preset_settings(named.preset_name, named.method);
  for (const char* key : {"epsilon", "delta", "sigma"}) named.preset.erase(key);
  named.dropped = drop_tuning(named.preset, named.file, flags);
}

/// Returns the keys of settings that choose_for_table() may choose, because no flag and no file
/// sets the setting itself or another one that excludes it.
std::vector<std::string> left_open(const Settings& flags, const Settings& file) {
  std::vector<std::string> open;
  for (const std::string_view key : table_setting_keys()) {
    const std::string& question = find_option(key)->instead_of;
    const bool answered = std::ranges::any_of(train_options(), [&](const Option& other) {
      return (other.key == key || (!question.empty() && other.instead_of == question)) &&
             (flags.contains(other.key) || file.contains(other.key));
    });
    if (!answered) open.emplace_back(key);
  }
  return open;
}

}  // namespace

TrainConfig resolve_config(const Settings& flags, std::vector<std::string>& notes) {
  NamedSources named = named_sources(flags, TrainConfig{}.method);
  const bool typed = !named.preset_name.empty();
  if (!typed) take_own_preset(flags, named);

  TrainConfig config;
  const MethodEntry* const method = find_method(named.method);
  if (method != nullptr && method->defaults != nullptr) method->defaults(config);
  PresetUse use{.name = named.preset_name,
                .typed = typed,
                .settings = named.preset,
                .dropped = named.dropped,
                .alone = config};
  use.settings.insert(named.dropped.begin(), named.dropped.end());
  apply_settings(use.settings, use.alone);
  for (const Settings* const source :
       {&std::as_const(named.preset), &std::as_const(named.file), &flags})
    apply_settings(*source, config);
  config.preset = named.preset_name;
  config.tuned = false;  // this training is not a part of that tuning
  const bool has_rate =
      flags.contains("lr") || named.file.contains("lr") || named.preset.contains("lr");
  if (!has_rate && config.lr == TrainConfig{}.lr)
    config.lr = default_learning_rate(config.optimizer);
  if (named.preset_name.empty()) config.of<LeftOpen>().keys = left_open(flags, named.file);
  check_all_used(flags, named.file, config, notes);
  check_complete(config);
  if (!use.name.empty()) {
    notes.push_back(preset_line(use, config));
    if (std::string line = other_method_line(use, config, named.file, flags); !line.empty())
      notes.push_back(std::move(line));
  }
  make_absolute(config);
  return config;
}

TrainConfig resolve_resumed(const Settings& flags, const TrainConfig& stored) {
  TrainConfig config = stored;
  const NamedSources named = named_sources(flags, stored.method);
  apply_settings(named.preset, config);
  apply_settings(named.file, config);
  apply_settings(flags, config);
  make_absolute(config);
  // The stored run has a device; "auto" does not request another.
  if (config.device == Device::automatic) config.device = stored.device;
  for (const Option& option : train_options()) {
    if (option.scope != Scope::experiment) continue;
    const auto now = option.get(config);
    const auto then = option.get(stored);
    if (!is_same_setting(option, now, then))
      throw InputError("--" + option.key + ": expected " + (then ? value_text(*then) : "none") +
                       " as in the run being resumed, found " + (now ? value_text(*now) : "none"));
  }
  return config;
}

std::string write_config(const TrainConfig& config, Audience audience) {
  std::ostringstream out;
  std::string group;
  for (const Option& option : train_options()) {
    if (option.scope == Scope::command) continue;
    if (option.scope == Scope::machine && audience == Audience::release) continue;
    const auto value = option.get(config);
    if (!value || *value == Value(std::string())) continue;
    if (group != option.group) {
      out << (group.empty() ? "# " : "\n# ") << option.group << "\n";
      group = option.group;
    }
    out << option.key << " = "
        << value_text(audience == Audience::release ? without_folders(option, *value) : *value)
        << "\n";
  }
  return out.str();
}

}  // namespace cudp

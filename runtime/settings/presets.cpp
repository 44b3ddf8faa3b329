#include "runtime/settings/presets.hpp"

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"

#include "builtin_presets.hpp"

namespace cudp {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedText& t : builtin_presets()) names.emplace_back(t.name);
  return names;
}

Settings preset_settings(const std::string& name, std::string_view method) {
  for (const EmbeddedText& t : builtin_presets())
    if (t.name == name) return parse_settings(t.text, "preset " + name, method);
  throw InputError("--preset: expected a known preset, found '" + name + "'; " +
                   nearest_or_all(name, preset_names()));
}

std::string preset_for(std::string_view dataset, std::string_view features, std::string_view method,
                       std::string_view model) {
  std::string found;
  for (const EmbeddedText& t : builtin_presets()) {
    const Settings s = parse_settings(t.text, "preset " + std::string(t.name));
    const auto says = [&s](const char* key, std::string_view otherwise) {
      const auto it = s.find(key);
      return it != s.end() ? it->second.value : Value(std::string(otherwise));
    };
    if (says("dataset", "") == Value(std::string(dataset)) &&
        says("features", "none") == Value(std::string(features)) &&
        says("method", method) == Value(std::string(method))) {
      found = t.name;
      if (says("model", "") == Value(std::string(model))) return found;
    }
  }
  return found;
}

}  // namespace cudp

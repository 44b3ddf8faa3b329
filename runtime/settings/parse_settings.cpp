#include "runtime/settings/parse_settings.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/synonyms.hpp"
#include "runtime/settings/toml_values.hpp"

namespace cudp {
namespace {

[[noreturn]] void refuse_unknown(const std::string& key, const std::string& place) {
  throw InputError(
      place + ": expected a known key, found '" + key + "'; " +
      nearest_or_all(key, option_keys(), option_synonyms(), "cudp train --help-all lists them"));
}

void add_setting(Settings& settings, std::string_view key, const toml::node& node,
                 const std::string& source) {
  std::string place = line_of(node, source);
  place.append(", ").append(key);
  if (find_option(key) == nullptr) refuse_unknown(std::string(key), place);
  if (key == "config" || key == "resume" || key == "resume-or-start")
    throw InputError(place + ": expected on the command line only, found in a file");
  Value value = toml_value(node, place, "a single value");
  settings.insert_or_assign(std::string(key), Setting{std::move(value), std::move(place)});
}

}  // namespace

Settings parse_settings(std::string_view text, const std::string& source, std::string_view method) {
  const toml::table table = parse_toml(text, source);
  Settings settings, own;
  for (const auto& [name, node] : table) {
    const toml::table* const part = node.as_table();
    if (part == nullptr || find_method(name.str()) == nullptr) {
      add_setting(settings, name.str(), node, source);
      continue;
    }
    Settings of_method;
    for (const auto& [key, value] : *part) add_setting(of_method, key.str(), value, source);
    for (const char* const key : {"method", "preset"})
      if (const auto at = of_method.find(key); at != of_method.end())
        throw InputError(at->second.place + ": expected outside a method's table, found in [" +
                         std::string(name.str()) + "]");
    if (name.str() == method) own = std::move(of_method);
  }
  // A setting in the method's table replaces the settings outside the table that are mutually
  // exclusive with it: e.g. `steps` in the table replaces `epochs`.
  std::erase_if(settings, [&](const auto& setting) {
    const std::string& group = find_option(setting.first)->instead_of;
    return !group.empty() && std::any_of(own.begin(), own.end(), [&](const auto& other) {
      return find_option(other.first)->instead_of == group;
    });
  });
  for (auto& [key, setting] : own) settings.insert_or_assign(key, std::move(setting));
  return settings;
}

Settings read_settings(const std::filesystem::path& file, std::string_view method) {
  std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw InputError(file.string() + ": expected a readable TOML file, found none");
  return parse_settings(text.str(), file.string(), method);
}

}  // namespace cudp

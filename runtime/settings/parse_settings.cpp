#include "runtime/settings/parse_settings.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <toml++/toml.h>

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/synonyms.hpp"

namespace cudp {
namespace {

std::string at_line(const std::string& source, const toml::source_region& region) {
  return source + ", line " + std::to_string(region.begin.line);
}

Value value_of(const toml::node& node, const std::string& place) {
  if (const auto* b = node.as_boolean()) return b->get();
  if (const auto* i = node.as_integer()) return i->get();
  if (const auto* f = node.as_floating_point()) return f->get();
  if (const auto* s = node.as_string()) return s->get();
  std::ostringstream type;
  type << node.type();
  throw InputError(place + ": expected a single value, found " + type.str());
}

[[noreturn]] void refuse_unknown(const std::string& key, const std::string& place) {
  throw InputError(
      place + ": expected a known key, found '" + key + "'; " +
      nearest_or_all(key, option_keys(), option_synonyms(), "cudp train --help-all lists them"));
}

void add_setting(Settings& settings, std::string_view key, const toml::node& node,
                 const std::string& source) {
  std::string place = at_line(source, node.source());
  place.append(", ").append(key);
  if (find_option(key) == nullptr) refuse_unknown(std::string(key), place);
  if (key == "config" || key == "resume" || key == "resume-or-start")
    throw InputError(place + ": expected on the command line only, found in a file");
  Value value = value_of(node, place);
  settings.insert_or_assign(std::string(key), Setting{std::move(value), std::move(place)});
}

}  // namespace

Settings parse_settings(std::string_view text, const std::string& source, std::string_view method) {
  toml::table table;
  try {
    table = toml::parse(text, source);
  } catch (const toml::parse_error& e) {
    throw InputError(at_line(source, e.source()) + ": " + std::string(e.description()));
  }
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
  // In a method's table, steps replace epochs outside of it; likewise for other groups of mutually
  // exclusive settings.
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

#include "runtime/python/settings.hpp"

#include <algorithm>

#include <nanobind/stl/string.h>

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/settings/synonyms.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

std::string with_dashes(std::string key) {
  std::ranges::replace(key, '_', '-');
  return key;
}

const Option* find(const std::vector<Option>& options, const std::string& key) {
  const auto at = std::ranges::find_if(
      options, [&](const Option& option) { return with_dashes(option.key) == key; });
  return at == options.end() ? nullptr : &*at;
}

Value value_of(nb::handle value, const std::string& place) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) {
    std::int64_t whole = 0;
    if (!nb::try_cast<std::int64_t>(value, whole))
      throw InputError(place + ": expected a number below 2^63, found a larger one");
    return whole;
  }
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  throw InputError(place + ": expected a number, a text, True or False, found " +
                   nb::cast<std::string>(nb::repr(value.type())));
}

/// Returns the end of a message about an unknown setting that no known one is near to. Empty for
/// Accountant, which is no command: the message then has its few settings.
std::string where_listed(const std::string& command) {
  if (command == "Accountant") return "";
  const bool is_long = command == "train" || command == "tune";
  return "cudp " + command + (is_long ? " --help-all" : " --help") + " lists them";
}

}  // namespace

Settings settings_of(const nb::dict& given, const std::vector<Option>& options,
                     const std::string& command) {
  Settings settings;
  for (const auto& [name, value] : given) {
    const std::string typed = nb::cast<std::string>(name), key = with_dashes(typed);
    const Option* const option = find(options, key);
    if (option == nullptr) {
      if (const std::string_view how = column_hint(key);
          !how.empty() && find(options, "schema") != nullptr)
        throw InputError(command + ": expected a known setting, found '" + typed + "'; " +
                         std::string(how));
      std::vector<std::string> known;
      for (const Option& o : options) known.push_back("--" + o.key);
      throw InputError(command + ": expected a known setting, found '" + typed + "'; " +
                       nearest_or_all(key, known, option_synonyms(), where_listed(command)));
    }
    const std::string place = (option->positional ? "" : "--") + option->key;
    settings[option->key] = {value_of(value, place), place};
  }
  return settings;
}

TrainConfig config_of(const nb::dict& given, const std::vector<Option>& options,
                      const std::string& command) {
  TrainConfig config;
  const Settings settings = settings_of(given, options, command);
  for (const auto& [key, setting] : settings)
    std::ranges::find(options, key, &Option::key)->set(config, setting.value, setting.place);
  return config;
}

}  // namespace cudp::python

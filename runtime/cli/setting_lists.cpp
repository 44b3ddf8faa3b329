#include "runtime/cli/setting_lists.hpp"

#include <utility>

#include "runtime/settings/options.hpp"

namespace cudp {

std::vector<Option> list_options() {
  std::vector<Option> all;
  for (const Option& option : train_options()) {
    const bool own = option.key == "json" || option.key == "quiet";
    if (swept_option(option.key) == nullptr && !own) continue;
    all.push_back(option);
    if (!own && option.kind != ValueKind::toggle &&
        option.value_name.find(',') == std::string::npos)
      all.back().value_name += ",...";
  }
  return all;
}

GivenLists given_lists(const CommandFlags& settings) {
  GivenLists given;
  for (const auto& [key, texts] : settings.given_texts()) {
    if (key == "json" || key == "quiet") {
      (key == "json" ? given.json : given.quiet) = true;
      continue;
    }
    const std::string place = "--" + key;
    const Option& option = *swept_option(key);
    std::vector<Setting> values = option.kind == ValueKind::toggle
                                      ? std::vector<Setting>{{Value(true), place}}
                                      : parse_values(option, texts, place);
    TrainConfig tried;
    for (const Setting& value : values) option.set(tried, value.value, place);
    given.lists[key] = std::move(values);
  }
  if (given.json) given.quiet = true;
  return given;
}

void check_names(const SettingLists& lists) {
  for (const auto& [key, values] : lists)
    for (const Setting& value : values) {
      TrainConfig tried;
      swept_option(key)->set(tried, value.value, value.place);
      check_names(tried);
    }
}

}  // namespace cudp

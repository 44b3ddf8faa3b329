#include "runtime/cli/train_flags.hpp"

#include <CLI/CLI.hpp>

#include "runtime/settings/options.hpp"

namespace cudp {
namespace {

std::string help_text(const Option& option) {
  std::string help = option.help;
  if (option.kind == ValueKind::toggle) return help;
  const auto value = option.get(TrainConfig{});
  if (!value || *value == Value(std::string())) return help;
  const auto* text = std::get_if<std::string>(&*value);
  return help + " [" + (text ? *text : value_text(*value)) + "]";
}

}  // namespace

TrainFlags add_train_flags(CLI::App& command) {
  TrainFlags flags;
  for (const Option& option : train_options()) {
    const std::string name = "--" + option.key;
    const std::string help = help_text(option);
    CLI::Option* flag = nullptr;
    if (option.kind == ValueKind::toggle)
      flag = command.add_flag(name, help);
    else
      flag = command.add_option(name, help)->type_name(option.value_name);
    flags[option.key] =
        flag->group(option.group)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  return flags;
}

Settings given(const TrainFlags& flags) {
  Settings settings;
  for (const auto& [key, flag] : flags) {
    if (flag->count() == 0) continue;
    const std::string place = "--" + key;
    settings[key] = {parse_value(*find_option(key), flag->results().back(), place), place};
  }
  return settings;
}

}  // namespace cudp

#include "runtime/cli/command_flags.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "models/model.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/load.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"

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

std::string name_of(const Option& option) {
  return option.positional ? option.key : "--" + option.key;
}

CLI::Option* add_flag(CLI::App& command, const Option& option, Repeated repeated) {
  const std::string name = name_of(option), help = help_text(option);
  CLI::Option* flag = option.kind == ValueKind::toggle ? command.add_flag(name, help)
                                                       : command.add_option(name, help);
  if (!option.group.empty()) flag->group(option.group);
  if (option.kind != ValueKind::toggle) flag->type_name(option.value_name);
  if (option.kind == ValueKind::list) {
    flag->expected(CLI::detail::expected_max_vector_size);
    // Positional lists are paths, which may have commas in their names.
    return option.positional ? flag : flag->delimiter(',');
  }
  if (option.positional) flag->required(!option.may_lack);
  if (repeated == Repeated::all_count && option.kind != ValueKind::toggle)
    return flag->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  if (repeated != Repeated::refused) flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return flag;
}

/// Returns a flag's value as text. The elements of a list are separated by commas; those of a
/// positional list by line breaks.
std::string text_of(const Option& option, const CLI::Option& flag) {
  if (option.kind != ValueKind::list) return flag.results().back();
  std::string text;
  for (const std::string& part : flag.results())
    text += (option.positional ? "\n" : text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

CommandFlags::CommandFlags(CLI::App& command, std::vector<Option> options, Repeated repeated) {
  for (Option& option : options) {
    CLI::Option* const flag = add_flag(command, option, repeated);
    if (!option.needs.empty()) flag->needs(command.get_option("--" + option.needs));
    flags_.emplace_back(std::move(option), flag);
  }
}

Settings CommandFlags::given() const {
  Settings settings;
  for (const auto& [option, flag] : flags_) {
    if (flag->count() == 0) continue;
    const std::string place = name_of(option);
    settings[option.key] = {parse_value(option, text_of(option, *flag), place), place};
  }
  return settings;
}

std::map<std::string, std::vector<std::string>> CommandFlags::given_texts() const {
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& [option, flag] : flags_)
    if (flag->count() > 0) all[option.key] = flag->results();
  return all;
}

TrainConfig CommandFlags::values() const {
  TrainConfig config;
  const Settings settings = given();
  for (const auto& [option, flag] : flags_)
    if (const auto at = settings.find(option.key); at != settings.end())
      option.set(config, at->second.value, at->second.place);
  return config;
}

void add_command(CLI::App& app, CommandBody& body, Command command) {
  CLI::App* const sub = app.add_subcommand(command.name, command.description);
  sub->footer(command.examples);
  const auto flags = std::make_shared<CommandFlags>(*sub, std::move(command.options));
  sub->callback([&body, flags, run = std::move(command.run), check = std::move(command.check)] {
    body = {.run = [flags, run] { return run(flags->values()); },
            .check =
                [flags, check] {
                  const TrainConfig config = flags->values();
                  check_names(config);
                  if (check) check(config);
                }};
  });
}

void check_names(const TrainConfig& config) {
  if (!config.preset.empty()) (void)preset_settings(config.preset, config.method);
  (void)method_entry(config.method);
  const auto is_path = [](const std::string& text) {
    return text == "-" || text.find_first_of("./") != std::string::npos;
  };
  if (!config.dataset.empty() && !is_named_dataset(config.dataset) && !is_path(config.dataset))
    throw InputError("--dataset: expected the name of a data set or a path, found '" +
                     config.dataset + "'");
  if (!config.model.empty() && !config.model.ends_with(".toml") &&
      builtin_model(config.model).empty())
    throw InputError("--model: expected a built-in model or a .toml file, found '" + config.model +
                     "'");
}

Option shared_option(const char* key, const char* help) {
  Option option = *find_option(key);
  option.group.clear();
  option.help = help;
  return option;
}

Option json_option(const char* help) { return shared_option("json", help); }

}  // namespace cudp

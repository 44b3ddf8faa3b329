#include "runtime/cli/setting_lists.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/short_help.hpp"
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

void add_request_file(
    const ContinuedFolder& folder, const std::string& file, const std::string& resume,
    bool has_lists, const Settings& own,
    const std::function<void(const std::string& text, const std::string& source)>& add) {
  if (resume.empty()) {
    if (!file.empty()) add(read_user_file(file), file);
    return;
  }
  const bool more = std::ranges::any_of(own, [&](const auto& setting) {
    return std::ranges::find(folder.with, setting.first) == folder.with.end();
  });
  if (has_lists || more)
    throw InputError("--resume: expected no settings, no file and no --out with it, found some");
  const std::filesystem::path stored = std::filesystem::path(resume) / "private" / folder.stored;
  if (!std::filesystem::exists(stored))
    throw InputError("--resume " + resume + ": expected the folder of " + folder.of +
                     ", found none");
  add(read_file(stored), stored.string());
}

void add_lists_command(
    CLI::App& command, CommandBody& body, const std::string& help, std::vector<Option> own,
    std::function<int(const CommandFlags& settings, const CommandFlags& own)> run) {
  use_short_help(command, help);
  const auto settings =
      std::make_shared<CommandFlags>(command, list_options(), Repeated::all_count);
  const auto flags = std::make_shared<CommandFlags>(command, std::move(own), Repeated::last_counts);
  command.callback([&body, settings, flags, run = std::move(run)] {
    body = {.run = [settings, flags, run] { return run(*settings, *flags); },
            .check =
                [settings, flags] {
                  static_cast<void>(flags->values());
                  check_names(given_lists(*settings).lists);
                }};
  });
}

}  // namespace cudp

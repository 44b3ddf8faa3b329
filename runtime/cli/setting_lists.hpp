#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cli/command_flags.hpp"
#include "runtime/sweep/request.hpp"

namespace cudp {

/// Flags, as the user gave them, of a command that tries several values of each setting, such as
/// `cudp sweep`: a list of values for each setting of `cudp train`, and --json and --quiet.
struct GivenLists {
  SettingLists lists;
  bool json = false;
  bool quiet = false;
};

/// Returns the options of a command like `cudp sweep`: settings of `cudp train`, each with a list
/// of values, and --json and --quiet.
std::vector<Option> list_options();

/// Returns the settings that the user gave as flags of list_options(). Throws InputError.
GivenLists given_lists(const CommandFlags& settings);

/// Throws InputError if the lists name an unknown preset, method, built-in model or built-in data
/// set. Opens no file.
void check_names(const SettingLists& lists);

/// Request of a command over lists of settings, as the user gave it.
template <class Request>
struct GivenRequest {
  Request request;
  bool json = false;
  bool quiet = false;
};

/// Returns the request of the command line alone. settings: flags of list_options(). own: the
/// command's own flags. Throws InputError.
template <class Request>
GivenRequest<Request> request_on_command_line(const CommandFlags& settings,
                                              const CommandFlags& own) {
  GivenLists lists = given_lists(settings);
  using Flags = decltype(Request::flags);
  return {.request = {.lists = std::move(lists.lists), .flags = own.values().of<Flags>()},
          .json = lists.json,
          .quiet = lists.quiet};
}

/// Description of the folder of trainings that a command's --resume continues, for
/// add_request_file().
struct ContinuedFolder {
  const char* of = "";                   ///< "a sweep"
  const char* stored = "";               ///< file with its settings, in private/
  std::vector<std::string_view> with{};  ///< keys that may be given with --resume
};

/// Calls add(text, source) with the content of the settings file `file`, or, if `resume` is set, of
/// the settings file in that folder. has_lists: whether the command line has settings. own: the
/// command's own options that the command line sets. Throws InputError.
void add_request_file(
    const ContinuedFolder& folder, const std::string& file, const std::string& resume,
    bool has_lists, const Settings& own,
    const std::function<void(const std::string& text, const std::string& source)>& add);

/// Adds the flags of a command over lists of settings: list_options() and `own`. help: short help.
/// run: executes the command with both groups of flags.
void add_lists_command(
    CLI::App& command, CommandBody& body, const std::string& help, std::vector<Option> own,
    std::function<int(const CommandFlags& settings, const CommandFlags& own)> run);

}  // namespace cudp

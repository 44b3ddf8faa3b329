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

/// Returns the options of a command that tries several values of settings, such as `cudp sweep`:
/// settings of `cudp train`, each with a list of values, and --json and --quiet.
std::vector<Option> list_options();

/// Returns the lists of values that the user gave as flags on the command line, for flags made from
/// list_options(). Throws InputError if a value is not valid.
GivenLists given_lists(const CommandFlags& settings);

/// Throws InputError if the lists name an unknown preset, method, built-in model or built-in data
/// set. Opens no file.
void check_names(const SettingLists& lists);

/// The user's request to a command that tries several values of settings, such as `cudp sweep`, and
/// how its output is printed (as JSON, or quietly).
template <class Request>
struct GivenRequest {
  Request request;
  bool json = false;
  bool quiet = false;
};

/// Makes the request for a command that tries several values of settings, such as `cudp sweep`,
/// from the command line alone, without a settings file. settings: the flags with lists of values
/// for settings of `cudp train`. own: the flags of the command itself. Throws InputError if a value
/// is not valid.
template <class Request>
GivenRequest<Request> request_on_command_line(const CommandFlags& settings,
                                              const CommandFlags& own) {
  GivenLists lists = given_lists(settings);
  using Flags = decltype(Request::flags);
  return {.request = {.lists = std::move(lists.lists), .flags = own.values().of<Flags>()},
          .json = lists.json,
          .quiet = lists.quiet};
}

/// Describes the folder of a command that makes several trainings, such as `cudp sweep`: what
/// add_request_file() needs to continue an interrupted run of the command (--resume).
struct ContinuedFolder {
  const char* of = "";      ///< what the folder is, for messages, e.g. "a sweep"
  const char* stored = "";  ///< name of the file in private/ with the folder's settings
  std::vector<std::string_view> with{};  ///< keys that may be given with --resume
};

/// Reads the settings file of a command such as `cudp sweep`, and calls add(text, source) with the
/// file's content and name. The file is the one stored in the folder `resume` or, if no folder is
/// to be resumed (resume is ""), `file`. has_lists: whether the command line has settings of `cudp
/// train`. own: the command's own options on the command line. Throws InputError if the file cannot
/// be read. Also throws InputError if a folder is to be resumed and the command line has settings
/// of `cudp train`, or own options that are not in folder.with.
void add_request_file(
    const ContinuedFolder& folder, const std::string& file, const std::string& resume,
    bool has_lists, const Settings& own,
    const std::function<void(const std::string& text, const std::string& source)>& add);

/// Adds the flags of a command that tries several values of settings, such as `cudp sweep`, to its
/// parser `command`: the options of list_options(), and the command's own options `own`. help: text
/// that --help shows. run: executes the command with both groups of flags.
void add_lists_command(
    CLI::App& command, CommandBody& body, const std::string& help, std::vector<Option> own,
    std::function<int(const CommandFlags& settings, const CommandFlags& own)> run);

}  // namespace cudp

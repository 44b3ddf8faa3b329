#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/cli/command_flags.hpp"
#include "runtime/sweep/request.hpp"

namespace cudp {

/// Flags of a command that tries several values of each setting, such as `cudp sweep`: lists of
/// values by setting of `cudp train`, and --json and --quiet.
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

}  // namespace cudp

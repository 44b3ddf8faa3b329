#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/settings/settings.hpp"

namespace cudp {

/// Values to try for each setting of `cudp train`, by option key.
using SettingLists = std::map<std::string, std::vector<Setting>, std::less<>>;

/// Flags of `cudp sweep` that are not settings of its runs.
struct SweepFlags {
  std::string file;          ///< TOML file with settings, lists of settings and these keys
  std::string out;           ///< folder of the sweep
  std::string resume;        ///< folder of a sweep that is continued
  std::int64_t repeats = 1;  ///< runs of each combination of settings
  std::int64_t jobs = 0;     ///< maximum number of runs at a time; 0 to choose
  std::optional<double> total_epsilon;  ///< budget of all runs together
  std::optional<double> total_delta;
  std::string share;  ///< "K/N": this process makes every N-th run, from the K-th on
};

/// Returns the options of SweepFlags.
const std::vector<Option>& sweep_options();

/// Settings and lists of a sweep.
struct SweepRequest {
  SettingLists lists;
  SweepFlags flags;
};

/// Returns the option of `cudp train` if a sweep may set it for its runs; null if not.
const Option* swept_option(std::string_view key);

/// Parses a flag's values: parts between commas, unless a single value of the option may contain
/// commas. Throws InputError.
std::vector<Setting> parse_values(const Option& option, const std::vector<std::string>& texts,
                                  const std::string& place);

/// Throws InputError if a value occurs twice in the list, because the same runs would then count as
/// two settings.
void check_distinct(const std::vector<Setting>& values);

/// A command whose TOML file may have lists of settings and the command's own flags.
struct ListCommand {
  const char* name = "";  ///< name of the command
  const std::vector<Option>& options;
  std::vector<std::string> only_flags = {};  ///< keys that a file may not set
};

/// Adds the settings of a TOML file to the lists of the command line, which take priority, and
/// the command's own keys to `own`. given: keys of `own` that the command line sets. Throws
/// InputError.
void add_lists_file(std::string_view toml, const std::string& source, const ListCommand& command,
                    const Settings& given, TrainConfig& own, SettingLists& lists);

/// Adds the settings of a TOML file to the lists and flags of a request.
template <class Request>
void add_lists_file(std::string_view toml, const std::string& source, const ListCommand& command,
                    const Settings& given, Request& request) {
  using Flags = decltype(request.flags);
  TrainConfig own;
  own.of<Flags>() = request.flags;
  add_lists_file(toml, source, command, given, own, request.lists);
  request.flags = own.of<Flags>();
}

/// Adds the settings of a sweep's TOML file to a request. Flags of the command line take priority.
/// given: keys of SweepFlags that the command line sets. Throws InputError.
void add_sweep_file(std::string_view toml, const std::string& source, const Settings& given,
                    SweepRequest& request);

/// Formats lists of settings as TOML that add_lists_file() reads.
std::string lists_text(const SettingLists& lists);
/// Formats the settings and the number of repeats as a sweep file.
std::string sweep_text(const SweepRequest& request);

/// A combination of settings, with which a sweep makes SweepFlags::repeats trainings.
struct SweepCell {
  Settings settings;
  /// Settings of which the sweep has several values, with the text of this cell's value.
  std::vector<std::pair<std::string, std::string>> varied;
  TrainConfig config;
};

/// Returns "key value, key value" for the settings of which the sweep has several values; "" if
/// there are none.
std::string varied_text(const SweepCell& cell);

/// Returns all combinations of the lists, the last setting varying fastest. Settings are in the
/// order of train_options(). `config` stays unset: see resolve_cells(). Throws InputError if there
/// are too many combinations, each counted `repeats` times.
std::vector<SweepCell> combinations_of(const SettingLists& lists, std::int64_t repeats = 1);

/// Resolves the config of each combination. Throws InputError, with the settings, if one of them is
/// not valid. notes: receives lines for the user that apply to all of them.
void resolve_cells(std::vector<SweepCell>& cells, std::vector<std::string>& notes);

/// Returns all combinations of a sweep's settings, with their configs. notes: receives lines for
/// the user that apply to all of them. Throws InputError.
std::vector<SweepCell> cells_of(const SweepRequest& request, std::vector<std::string>& notes);

}  // namespace cudp

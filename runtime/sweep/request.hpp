#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/settings/settings.hpp"

namespace cudp {

/// Values to try for each setting. The map's key is the key of the setting, such as "batch".
using SettingLists = std::map<std::string, std::vector<Setting>, std::less<>>;

/// Flags of `cudp sweep` that concern the sweep as a whole (its folder, the number of processes,
/// ...) and are not settings of its runs.
struct SweepFlags {
  std::string file;          ///< TOML file with settings, lists of values, and these flags
  std::string out;           ///< folder of the sweep
  std::string resume;        ///< folder of a sweep that is continued
  std::int64_t repeats = 1;  ///< runs of each combination of settings
  std::int64_t jobs = 0;     ///< maximum number of runs at a time; 0 to choose
  std::optional<double> total_epsilon;  ///< budget of all runs together
  std::optional<double> total_delta;
  std::string share;  ///< "K/N": this process makes every N-th run, from the K-th on
};

/// Returns the options of `cudp sweep` that concern the sweep as a whole, one for each member of
/// SweepFlags.
const std::vector<Option>& sweep_options();

/// A sweep as the user describes it: for each setting of `cudp train` the values to try, and the
/// flags of the sweep itself.
struct SweepRequest {
  SettingLists lists;
  SweepFlags flags;
};

/// Returns the option of `cudp train` with this key; null if there is none, or if a sweep may not
/// set it for its runs.
const Option* swept_option(std::string_view key);

/// Parses the texts that the user gave for an option into a list of values. A text has several
/// values with commas between them, unless a single value of this option may contain commas. place:
/// where the texts were given, for messages. Throws InputError if a value is not valid.
std::vector<Setting> parse_values(const Option& option, const std::vector<std::string>& texts,
                                  const std::string& place);

/// Throws InputError if a value occurs twice in a list of values to try, because the same training
/// would then be made, and counted, twice.
void check_distinct(const std::vector<Setting>& values);

/// Describes a command (`cudp sweep`, `cudp tune`) that reads a TOML file with lists of values for
/// settings and with the command's own flags.
struct ListCommand {
  const char* name = "";  ///< name of the command
  const std::vector<Option>& options;
  std::vector<std::string> only_flags = {};  ///< keys that a file may not set
};

/// Reads a TOML file with settings: adds the values of settings of `cudp train` to `lists`, and the
/// command's own flags to `own`. The command line takes priority: settings that are in `lists`
/// already, and the flags in `given`, are not changed. source: name of the file, for messages.
/// Throws InputError if the file is not valid or has an unknown key.
void add_lists_file(std::string_view toml, const std::string& source, const ListCommand& command,
                    const Settings& given, TrainConfig& own, SettingLists& lists);

/// Reads a TOML file with settings into a request, the user's description of a sweep or tuning:
/// values of settings into request.lists, the command's own flags into request.flags. The command
/// line takes priority: what it has set already is not changed. given: own flags that the command
/// line has set. source: name of the file, for messages. Throws InputError if the file is not valid
/// or has an unknown key.
template <class Request>
void add_lists_file(std::string_view toml, const std::string& source, const ListCommand& command,
                    const Settings& given, Request& request) {
  using Flags = decltype(request.flags);
  TrainConfig own;
  own.of<Flags>() = request.flags;
  add_lists_file(toml, source, command, given, own, request.lists);
  request.flags = own.of<Flags>();
}

/// Adds the settings of a sweep's TOML file to a request. Flags of the command line take priority
/// over the file. given: flags of the sweep itself that the command line sets. source: name of the
/// file, for messages. Throws InputError if the file is not valid or has an unknown key.
void add_sweep_file(std::string_view toml, const std::string& source, const Settings& given,
                    SweepRequest& request);

/// Returns lists of values for settings as TOML text that add_lists_file() reads.
std::string lists_text(const SettingLists& lists);
/// Returns the settings and the number of repeats of a sweep as TOML text, in the form of the file
/// that `cudp sweep` reads.
std::string sweep_text(const SweepRequest& request);

/// One combination of settings of a sweep, which makes one or more trainings with it
/// (SweepFlags::repeats).
struct SweepCell {
  Settings settings;
  /// Settings of which the sweep has several values, each with this combination's value as text.
  std::vector<std::pair<std::string, std::string>> varied;
  TrainConfig config;
};

/// Returns a description of a combination, "key value, key value", with those settings of which the
/// sweep has several values; "" if there are none.
std::string varied_text(const SweepCell& cell);

/// Returns all combinations of the listed values, the last setting varying fastest. Settings are in
/// the order of the options of `cudp train`. The member `config` of the results stays unset until
/// resolve_cells(). Throws InputError if the number of combinations times `repeats` is too large.
std::vector<SweepCell> combinations_of(const SettingLists& lists, std::int64_t repeats = 1);

/// Sets the member `config` of each combination: its settings, completed with presets and default
/// values. notes: receives messages for the user that apply to all combinations. Throws InputError,
/// with the combination's settings, if these are not valid.
void resolve_cells(std::vector<SweepCell>& cells, std::vector<std::string>& notes);

/// Returns all combinations of a sweep's settings, each with its complete config. notes: receives
/// messages for the user that apply to all combinations. Throws InputError if there are too many
/// combinations, or if the settings of one are not valid.
std::vector<SweepCell> cells_of(const SweepRequest& request, std::vector<std::string>& notes);

}  // namespace cudp

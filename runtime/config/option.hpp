#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/config/config.hpp"

namespace cudp {

/// Value of a setting, from a flag or a TOML file.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// Range of valid numbers for an option.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  const char* text = "";  ///< description in an error message
  bool low_open = false;
  bool high_open = false;

  bool contains(double x) const {
    return std::isfinite(x) && (low_open ? x > low : x >= low) &&
           (high_open ? x < high : x <= high);
  }
};

/// Kind of an option's value. A list is a text of parts, separated by commas.
enum class ValueKind { toggle, integer, number, text, list };

/// Role of a setting: whether it is written to release/, the folder of public files, and whether a
/// resumed run may change it.
enum class Scope {
  experiment,  ///< affects the result: released, fixed for the life of a run
  origin,      ///< states where other settings come from: released, may change on resume
  machine,     ///< concerns the machine: stored in the private folder, may change on resume
  command      ///< applies to this call of the command only
};

/// An option of a command. The table of all options of `cudp train` defines its command line, TOML
/// files, presets and stored settings. Other commands have some of the table's options, and options
/// of their own.
struct Option {
  std::string key;          ///< name of the option, e.g. "batch" for the flag "--batch"
  bool positional = false;  ///< given by position instead of by name; required unless may_lack
  bool may_lack = false;    ///< a positional option that is not required
  /// Key of another option without which this one has no effect; "" if there is none.
  std::string needs;
  std::string group;
  /// For an option of a training method: key of a general option after which --help lists it.
  /// Empty: --help lists it in the method's own group.
  std::string listed_after;
  std::string value_name;
  std::string help;
  ValueKind kind = ValueKind::text;
  Scope scope = Scope::experiment;
  /// Name of a group of mutually exclusive options; "" if the option is in none. Setting one option
  /// of a group clears the values that the others have from sources of lower priority, such as a
  /// preset.
  std::string instead_of;
  std::vector<std::string> choices;  ///< allowed texts; empty: any
  std::optional<ValueRange> range;   ///< allowed integers or numbers

  /// Checks the value and stores it in the config. place: position of the value (flag, or file and
  /// line), for messages. Throws InputError, "POSITION: expected ..., found ...", if the value is
  /// not valid.
  std::function<void(TrainConfig&, const Value&, const std::string& place)> set;
  /// Returns the value in the config; nullopt if an optional setting is not set.
  std::function<std::optional<Value>(const TrainConfig&)> get;
  /// Removes the value from the config; null unless the setting is optional.
  std::function<void(TrainConfig&)> clear;
};

/// Parses the text of an option's value on the command line. place: its position, for messages.
/// Throws InputError if the text is not a value of the option's kind.
Value parse_value(const Option& option, const std::string& text, const std::string& place);

/// Formats a value as in TOML: true, 512, 0.5, "text".
std::string value_text(const Value& value);

}  // namespace cudp

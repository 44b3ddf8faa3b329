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

/// A setting as a flag or a TOML file gives it.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// The numbers that an option may be.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  const char* text = "";  ///< how an error message puts it
  bool low_open = false;
  bool high_open = false;

  bool holds(double x) const {
    return std::isfinite(x) && (low_open ? x > low : x >= low) &&
           (high_open ? x < high : x <= high);
  }
};

/// A list is a text: its parts, separated by commas.
enum class ValueKind { toggle, integer, number, text, list };

/// Who may see a setting, and whether a resumed run may change it.
enum class Scope {
  experiment,  ///< decides the result: released, fixed for the life of a run
  origin,      ///< where settings came from: released, free to change on resume
  machine,     ///< where and how it ran: kept in the private folder, free to change on resume
  command      ///< of this one call only
};

/// One row of the table from which the command line, the TOML file, the presets and the resolved
/// config are made; commands other than `train` have rows of their own, and some of its rows.
struct Option {
  std::string key;          ///< "batch"; the flag is "--batch"
  bool positional = false;  ///< it must be given, without a flag's name
  bool may_lack = false;    ///< a positional one that need not be given after all
  std::string needs;        ///< key of the option without which this one says nothing; or empty
  std::string group;
  /// The key of the option of all runs that this one of a method belongs with: it is listed behind
  /// that one, in its group. Empty: it is listed in the method's own group.
  std::string belongs_with;
  std::string value_name;
  std::string help;
  ValueKind kind = ValueKind::text;
  Scope scope = Scope::experiment;
  /// Options of one `instead_of` group answer the same question: whoever sets one of them also
  /// clears what lower-ranking sources said with the others.
  std::string instead_of;
  std::vector<std::string> choices;  ///< text only; empty: anything
  std::optional<ValueRange> range;   ///< of an integer or a number

  /// Checks the value and stores it. Throws InputError: "PLACE: expected ..., found ...".
  std::function<void(TrainConfig&, const Value&, const std::string& place)> set;
  /// Empty where an optional setting is not set.
  std::function<std::optional<Value>(const TrainConfig&)> get;
  std::function<void(TrainConfig&)> clear;  ///< optional settings only
};

/// The value that a flag's text means. Throws InputError.
Value parse_value(const Option& option, const std::string& text, const std::string& place);

/// The value as TOML writes it: true, 512, 0.5, "text".
std::string value_text(const Value& value);

}  // namespace cudp

#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/commands.hpp"
#include "runtime/settings/settings.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cudp {

/// What happens if a flag is given more than once: it is an error (refused), only the last value is
/// used (last_counts), or all values are used (all_count).
enum class Repeated { refused, last_counts, all_count };

/// The command-line flags of a subcommand, one for each option, and their values after the command
/// line was parsed.
class CommandFlags {
 public:
  /// Adds a flag for each option to the subcommand's parser, `command`, which must outlive this
  /// object.
  CommandFlags(CLI::App& command, std::vector<Option> options,
               Repeated repeated = Repeated::refused);

  /// Returns the values of the flags that the user gave, by the key of the option. Throws
  /// InputError if a value is not valid.
  Settings given() const;

  /// Returns the flags that the user gave, by the key of the option, each with the texts typed
  /// after it; "true" for a flag without a value.
  std::map<std::string, std::vector<std::string>> given_texts() const;

  /// Returns a config with default values, overwritten by the values of the flags that the user
  /// gave. Throws InputError if a value is not valid.
  TrainConfig values() const;

 private:
  std::vector<std::pair<Option, CLI::Option*>> flags_;
};

/// A subcommand of `cudp`, such as `cudp eval`: its name, its flags (`options`), the examples that
/// --help shows below them, and a function `run` that executes it with the values of the flags and
/// returns the exit code.
struct Command {
  std::string name;
  std::string description;
  std::string examples;
  std::vector<Option> options;
  std::function<int(const TrainConfig&)> run;
  /// Function that throws InputError if a setting has an unknown name, e.g. of a preset or model.
  /// It opens no file. May be empty.
  std::function<void(const TrainConfig&)> check{};
};

/// Throws InputError if the settings name an unknown preset, method, built-in model or built-in
/// data set. Opens no file.
void check_names(const TrainConfig& config);

/// Adds a subcommand to the command-line parser `app`. If the user gives this subcommand, parsing
/// sets the functions of `body`, which execute the subcommand and check its values.
void add_command(CLI::App& app, CommandBody& body, Command command);

/// Converts the options of a command from `config` to a struct of type Flags. Its base class Base
/// has the options that several commands have in common.
template <class Flags, class Base>
Flags flags_of(const TrainConfig& config) {
  Flags flags = config.of<Flags>();
  static_cast<Base&>(flags) = config.of<Base>();
  return flags;
}

/// Returns a copy of the option of `cudp train` with this key, for another command, with `help` as
/// its help text.
Option shared_option(const char* key, const char* help);

/// Returns the option --json, with which a command prints its output as JSON.
Option json_option(const char* help = "print JSON");

}  // namespace cudp

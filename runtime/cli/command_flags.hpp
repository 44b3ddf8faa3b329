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

/// What happens if a flag is given twice: an error, the last one counts, or both count.
enum class Repeated { refused, last_counts, all_count };

/// The command-line flags of a subcommand, one for each option.
class CommandFlags {
 public:
  /// Adds the flags to `command`, which must outlive this object.
  CommandFlags(CLI::App& command, std::vector<Option> options,
               Repeated repeated = Repeated::refused);

  /// Returns the values that the user gave, by option key. Throws InputError.
  Settings given() const;

  /// Returns the texts of each option that the user gave, by option key; "true" for a toggle.
  std::map<std::string, std::vector<std::string>> given_texts() const;

  /// Returns a config with default values, overwritten by the values that the user gave. Throws
  /// InputError.
  TrainConfig values() const;

 private:
  std::vector<std::pair<Option, CLI::Option*>> flags_;
};

/// A subcommand. `options` are its flags, and --help shows `examples` below them. `run` executes it
/// with the flags' values and returns the exit code.
struct Command {
  std::string name;
  std::string description;
  std::string examples;
  std::vector<Option> options;
  std::function<int(const TrainConfig&)> run;
  /// Checks names in the settings without opening a file; throws InputError on unknown ones. May be
  /// empty.
  std::function<void(const TrainConfig&)> check{};
};

/// Throws InputError if the settings name an unknown preset, method, built-in model or built-in
/// data set. Opens no file.
void check_names(const TrainConfig& config);

/// Adds the subcommand to `app`. If the command line contains it, parsing sets the functions of
/// `body` (commands.hpp).
void add_command(CLI::App& app, CommandBody& body, Command command);

/// Returns the values of a command's options as a struct Flags. Base: base class of Flags, with the
/// options that several commands have in common.
template <class Flags, class Base>
Flags flags_of(const TrainConfig& config) {
  Flags flags = config.of<Flags>();
  static_cast<Base&>(flags) = config.of<Base>();
  return flags;
}

/// Returns the option of `cudp train` with this key, with another help text, for another command.
Option shared_option(const char* key, const char* help);

/// Returns the option --json of commands that print an Answer.
Option json_option(const char* help = "print JSON");

}  // namespace cudp

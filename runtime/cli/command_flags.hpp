#pragma once
#include <functional>
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

/// The treatment of a flag that is given twice.
enum class Repeated { refused, last_counts };

/// The flags of a command, one for each row of its options.
class CommandFlags {
 public:
  /// Adds them to `command`, which outlives this.
  CommandFlags(CLI::App& command, std::vector<Option> options,
               Repeated repeated = Repeated::refused);

  /// The values that the user gave, by option key. Throws InputError.
  Settings given() const;

  /// The values that the user gave, over the initial values. Throws InputError.
  TrainConfig values() const;

 private:
  std::vector<std::pair<Option, CLI::Option*>> flags_;
};

/// A subcommand: `options` are its rows, `examples` stands below them in --help, and `run` is what
/// it does with their values; it returns the exit code.
struct Command {
  std::string name;
  std::string description;
  std::string examples;
  std::vector<Option> options;
  std::function<int(const TrainConfig&)> run;
  /// Throws InputError on names that it does not know, without opening a file; may be empty.
  std::function<void(const TrainConfig&)> check{};
};

/// Throws InputError if the settings name an unknown preset, method, built-in model or built-in
/// data set. Opens no file.
void check_names(const TrainConfig& config);

/// Adds the subcommand; see commands.hpp.
void add_command(CLI::App& app, CommandBody& body, Command command);

/// The values of a command whose options are rows of `Flags` itself and of a struct that it begins
/// with, its base.
template <class Flags, class Base>
Flags flags_of(const TrainConfig& config) {
  Flags flags = config.of<Flags>();
  static_cast<Base&>(flags) = config.of<Base>();
  return flags;
}

/// A row of `cudp train` for another command, which has this to say of it.
Option shared_option(const char* key, const char* help);

/// "--json", of every command that prints an Answer.
Option json_option(const char* help = "print JSON");

}  // namespace cudp

#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cudp {

class ReleaseObserver;  // runtime/gate/release_observer.hpp

/// Functions that execute or check the subcommand that the user gave, with its flags. Both throw
/// InputError if the command line is not valid.
struct CommandBody {
  std::function<int()> run;     ///< executes the subcommand, and returns the exit code
  std::function<void()> check;  ///< checks values and names only; opens no file
};

/// Adds the subcommand `cudp train` to `app`, with its options and examples. If the user gives this
/// subcommand, parsing sets the functions of `body`. The functions add_..._command below do the
/// same for the other subcommands. release_observer: object that receives the noisy values that a
/// training releases, e.g. in tests; may be null.
void add_train_command(CLI::App& app, CommandBody& body, ReleaseObserver* release_observer);
void add_schema_command(CLI::App& app, CommandBody& body);
void add_eval_command(CLI::App& app, CommandBody& body);
void add_predict_command(CLI::App& app, CommandBody& body);
void add_export_command(CLI::App& app, CommandBody& body);
void add_sweep_command(CLI::App& app, CommandBody& body);
void add_tune_command(CLI::App& app, CommandBody& body);
void add_audit_command(CLI::App& app, CommandBody& body);
void add_verify_command(CLI::App& app, CommandBody& body);
void add_account_command(CLI::App& app, CommandBody& body);
void add_report_command(CLI::App& app, CommandBody& body);
void add_calibrate_command(CLI::App& app, CommandBody& body);
void add_reproduce_command(CLI::App& app, CommandBody& body);
void add_info_command(CLI::App& app, CommandBody& body);

inline constexpr const char* kReproduceDescription =
    "Run a table or figure of a paper, next to its published numbers";

/// Function that adds all subcommands of a program to its command-line parser `app`.
using AddCommands = std::function<void(CLI::App& app, CommandBody& body)>;

/// Throws InputError if the program does not accept these words after "cudp". Checks commands,
/// flags, values, and the names of presets, methods, models, data sets and papers' tables. Runs
/// nothing and opens no file, so that settings may be incomplete.
void check_command_line(const std::vector<std::string>& words);
/// Throws InputError if a program whose subcommands `add` adds does not accept the command line
/// `words`. Runs nothing and opens no file.
void check_command_line(const std::vector<std::string>& words, const AddCommands& add);

/// Runs a program whose subcommands `add` adds. words: the command line without the program's name.
/// Returns the exit code. Prints an error as one line on stderr.
int run_commands(const AddCommands& add, const std::vector<std::string>& words);

/// Runs the whole program cudp with this command line and returns its exit code; prints an error as
/// one line on stderr. release_observer: object that receives the noisy values that `cudp train`
/// releases; used by tests, null in the program itself.
int run_command_line(int argc, char** argv, ReleaseObserver* release_observer = nullptr);

}  // namespace cudp

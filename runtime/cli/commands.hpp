#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cudp {

class ReleaseObserver;  // runtime/gate/release_observer.hpp

/// The chosen subcommand, with its flags. Both throw input errors.
struct CommandBody {
  std::function<int()> run;     ///< does its work, and returns the exit code
  std::function<void()> check;  ///< looks at values and names alone: no file is opened
};

/// Each adds one subcommand to `app`, with its options and examples; when the user names it,
/// parsing sets `body`. release_observer: of the trainings, see run_command_line.
void add_train_command(CLI::App& app, CommandBody& body, ReleaseObserver* release_observer);
void add_schema_command(CLI::App& app, CommandBody& body);
void add_eval_command(CLI::App& app, CommandBody& body);
void add_predict_command(CLI::App& app, CommandBody& body);
void add_export_command(CLI::App& app, CommandBody& body);
void add_audit_command(CLI::App& app, CommandBody& body);
void add_verify_command(CLI::App& app, CommandBody& body);
void add_account_command(CLI::App& app, CommandBody& body);
void add_calibrate_command(CLI::App& app, CommandBody& body);
void add_reproduce_command(CLI::App& app, CommandBody& body);
void add_info_command(CLI::App& app, CommandBody& body);

inline constexpr const char* kReproduceDescription =
    "Run a table or figure of a paper, beside its numbers";

/// Adds the commands of a program.
using AddCommands = std::function<void(CLI::App& app, CommandBody& body)>;

/// Throws InputError where these words behind "cudp" are none that the program takes: commands,
/// flags, values, and the names of presets, methods, models, data sets and papers' tables. It runs
/// nothing and opens no file, so that settings may be incomplete.
void check_command_line(const std::vector<std::string>& words);
/// Checks the words of a program that has the commands of `add` instead of cudp's.
void check_command_line(const std::vector<std::string>& words, const AddCommands& add);

/// Runs these words behind "cudp" as a program that has the commands of `add`. Returns the exit
/// code; an error is one line on stderr.
int run_commands(const AddCommands& add, const std::vector<std::string>& words);

/// The whole program cudp: main without the process, as run_commands. release_observer: who is
/// shown what leaves a training of `cudp train`, or null, as in the program itself; outlives the
/// call.
int run_command_line(int argc, char** argv, ReleaseObserver* release_observer = nullptr);

}  // namespace cudp

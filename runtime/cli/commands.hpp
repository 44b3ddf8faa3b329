#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace cudp {

class Witness;  // runtime/gate/witness.hpp

/// The work of the chosen subcommand. It returns the exit code, and throws input errors.
using CommandBody = std::function<int()>;

/// Each adds one subcommand to `app`, with its options and examples; when the user names it,
/// parsing sets `body`. witness: of the trainings, see run_command_line.
void add_train_command(CLI::App& app, CommandBody& body, Witness* witness);
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

/// The whole program: main without the process. Returns the exit code; what goes wrong is one line
/// on stderr. witness: who is shown what leaves a training of `cudp train`, or null, as in the
/// program itself; outlives the call.
int run_command_line(int argc, char** argv, Witness* witness = nullptr);

}  // namespace cudp

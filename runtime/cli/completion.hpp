#pragma once
#include "runtime/cli/commands.hpp"

namespace cudp {

/// Adds the subcommand that prints a script for shell completion, or the manual page, to the
/// command-line parser `app`. Both are generated from the commands of `app`, which must outlive
/// `body`.
void add_completion_command(CLI::App& app, CommandBody& body);

}  // namespace cudp

#pragma once
#include "runtime/cli/commands.hpp"

namespace cudp {

/// Adds the command that prints shell completion, or the manual page. Both are generated from the
/// commands of `app`, which must outlive `body`.
void add_completion_command(CLI::App& app, CommandBody& body);

}  // namespace cudp

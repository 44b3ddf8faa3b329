#pragma once

namespace CLI {
class App;
}

namespace cudp {

struct CommandBody;

/// Adds the subcommand `reproduce` to `app`; see runtime/cli/commands.hpp.
void add_reproductions(CLI::App& app, CommandBody& body);

}  // namespace cudp

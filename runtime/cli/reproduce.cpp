#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/cli/commands.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Replaces this process by the program cudp-reproduce (bench/reproduce) in the same folder. Throws
/// InputError if it is missing.
[[noreturn]] void start_reproduce(const std::vector<std::string>& words) {
  std::error_code unknown;
  const fs::path cudp = fs::read_symlink("/proc/self/exe", unknown);
  // /proc/self/exe gives the folder of this program. If it cannot be read, the function does not
  // look for cudp-reproduce in the working directory, because a file of that name there may be a
  // different program.
  if (unknown)
    throw InputError("reproduce: expected /proc/self/exe, which names the folder of cudp, found " +
                     unknown.message() + "; start cudp-reproduce itself");
  const std::string program = (cudp.parent_path() / "cudp-reproduce").string();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw InputError("reproduce: expected the program " + program + ", found " +
                   std::strerror(errno) +
                   "; `cmake --build BUILD --target cudp-reproduce` builds it from cudp's sources");
}

}  // namespace

void add_reproduce_command(CLI::App& app, CommandBody& body) {
  CLI::App* const command = app.add_subcommand("reproduce", kReproduceDescription);
  command->set_help_flag();   // the other program has its own --help
  command->prefix_command();  // all further words are for the other program
  command->callback([command, &body] {
    body = {.run = [command]() -> int { start_reproduce(command->remaining()); }, .check = [] {}};
  });
}

}  // namespace cudp

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/cli/commands.hpp"

namespace cudp {
namespace {

constexpr int kBadUsage = static_cast<int>(Exit::bad_input);

/// Refuses a word that a command does not understand, and names the nearest one that it does.
/// Throws InputError.
void refuse_leftovers(const CLI::App& app, const CLI::App* command) {
  const std::vector<std::string> left = (command ? command : &app)->remaining();
  if (left.empty()) return;
  std::vector<std::string> known;
  if (command) {
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  } else {
    for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  }
  const auto flag = std::ranges::find_if(left, [](const auto& word) { return word[0] == '-'; });
  const std::string word = flag == left.end() ? left.front() : flag->substr(0, flag->find('='));
  throw InputError((command ? command->get_name() + ": expected a known flag, found '"
                            : "expected a command, found '") +
                   word + "'; the nearest is '" + nearest(word, known) + "'");
}

int run(int argc, char** argv) {
  CLI::App app("cudp trains models with differential privacy, on CPU and on CUDA.", "cudp");
  const BuildInfo build = build_info();
  app.set_version_flag("--version",
                       std::string("cudp ") + build.version + " (" + build.commit + ")");
  app.footer("cudp COMMAND --help has examples.");
  CommandBody body;
  add_train_command(app, body);
  add_schema_command(app, body);
  add_eval_command(app, body);
  add_predict_command(app, body);
  add_audit_command(app, body);
  add_verify_command(app, body);
  add_account_command(app, body);
  add_calibrate_command(app, body);
  add_reproduce_command(app, body);
  add_info_command(app, body);
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    throw InputError(e.what());
  }
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  refuse_leftovers(app, chosen.empty() ? nullptr : chosen.front());
  if (!body) {
    std::cerr << app.help();
    return kBadUsage;
  }
  return body();
}

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    errno = 0;
    if (std::cout.flush()) return code;
    throw Error(std::string("stdout: cannot write the result: ") +
                (errno != 0 ? std::strerror(errno) : "an earlier write failed"));
  } catch (const Error& e) {
    std::cerr << "cudp: " << e.what() << "\n";
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::cerr << "cudp: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << "cudp: " << e.what() << "\n";
  }
  return static_cast<int>(Exit::failure);
}

}  // namespace cudp

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/completion.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/settings/synonyms.hpp"

namespace cudp {
namespace {

constexpr int kBadUsage = static_cast<int>(Exit::bad_input);

constexpr Synonym kCommands[] = {
    {"fit", "train"},         {"run", "train"},       {"learn", "train"},
    {"training", "train"},    {"resume", "train"},    {"grid", "sweep"},
    {"tuning", "tune"},       {"search", "tune"},     {"evaluate", "eval"},
    {"test", "eval"},         {"score", "eval"},      {"attack", "audit"},
    {"check", "verify"},      {"epsilon", "account"}, {"accountant", "account"},
    {"privacy", "account"},   {"spent", "account"},   {"explain", "account"},
    {"noise", "calibrate"},   {"sigma", "calibrate"}, {"calibration", "calibrate"},
    {"paper", "reproduce"},   {"version", "info"},    {"devices", "info"},
    {"inference", "predict"}, {"infer", "predict"},   {"apply", "predict"},
    {"onnx", "export"},       {"convert", "export"},  {"python", "export"},
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// Throws InputError if the first word is not a command, or if a flag such as --version is not
/// alone.
void check_first_word(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& first = words[0];
  const std::vector<std::string> commands = command_names(app);
  if (std::ranges::find(commands, first) != commands.end()) return;
  if (first == "--help" || first == "-h" || first == "--version") {
    if (words.size() > 1)
      throw InputError(first + ": expected nothing after it, found '" + words[1] +
                       "'; cudp COMMAND --help explains a command");
    return;
  }
  if (is_flag(first))
    throw InputError("expected a command as the first word, found '" + first +
                     "'; flags follow the command, and cudp --help lists commands");
  throw InputError("expected a command as the first word, found '" + first + "'; " +
                   nearest_or_all(first, commands, kCommands));
}

/// Returns whether the text is a number.
bool is_number(const std::string& text) {
  double value = 0.0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size();
}

/// Throws InputError if a word follows the value of a flag whose list has commas, as 2 in
/// `cudp sweep --epsilon 1 2`, and is no file.
void refuse_list_with_blanks(const CLI::App& command, const std::vector<std::string>& words) {
  if (command.get_option_no_throw("--repeats") == nullptr &&
      command.get_option_no_throw("--most-runs") == nullptr)
    return;
  for (std::size_t i = 1; i + 2 < words.size(); ++i) {
    const CLI::Option* const flag = command.get_option_no_throw(words[i]);
    if (!is_flag(words[i]) || flag == nullptr || flag->get_items_expected_max() == 0) continue;
    const std::string &value = words[i + 1], &next = words[i + 2];
    std::error_code none;
    if (is_flag(next) || next.ends_with(".toml") || std::filesystem::exists(next, none)) continue;
    throw InputError(
        fmt::format("{}: expected a flag after {} {}, found '{}'; values of a list have commas "
                    "between them: {} {},{}",
                    command.get_name(), words[i], value, next, words[i], value, next));
  }
}

/// Throws InputError if the command line has a word that the command does not know. The message
/// names similar known words.
void refuse_leftovers(const CLI::App& app, const CLI::App& command) {
  const std::vector<std::string> left = command.remaining();
  if (left.empty() || command.get_prefix_command()) return;
  const std::string& name = command.get_name();
  const auto flag = std::ranges::find_if(left, is_flag);
  if (flag == left.end()) {
    const std::vector<std::string> commands = command_names(app);
    const bool second = std::ranges::find(commands, left[0]) != commands.end();
    const bool data = command.get_option_no_throw("--dataset") != nullptr && !is_number(left[0]);
    throw InputError(name + ": expected " + (second ? "one command" : "flags") + ", found " +
                     (second ? "a second, '" : "the word '") + left[0] + "'" +
                     (!second && data ? "; --dataset " + left[0] + " if these are the data" : ""));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  const std::string word = flag->substr(0, flag->find('='));
  if (const std::string_view how = column_hint(word);
      !how.empty() && std::ranges::find(known, "--schema") != known.end())
    throw InputError(name + ": expected a known flag, found '" + word + "'; " + std::string(how));
  const std::string all = command.get_help_all_ptr() != nullptr ? " --help-all" : " --help";
  throw InputError(
      name + ": expected a known flag, found '" + word + "'; " +
      nearest_or_all(word, known, option_synonyms(), "cudp " + name + all + " lists them"));
}

/// Returns the message of the command-line parser's exception, reworded like the messages of cudp.
/// command: name of the command, or of the program if there is none.
std::string sentence_of(const CLI::ParseError& refusal, const std::string& command) {
  std::string text = refusal.what();
  if (constexpr std::string_view kRequired = " is required";
      refusal.get_name() == "RequiredError" && text.ends_with(kRequired))
    return command + ": expected " + text.substr(0, text.size() - kRequired.size()) +
           ", found none";
  const std::string flag = text.substr(0, text.find(':'));
  if (refusal.get_name() != "ArgumentMismatch" || flag == text) return text;
  if (text.ends_with(" missing")) return flag + ": expected a value, found none";
  if (const std::size_t at = text.find("received "); at != std::string::npos)
    return flag + ": expected it once, found it " + text.substr(at + 9) + " times";
  return text;
}

AddCommands commands_of_cudp(ReleaseObserver* release_observer) {
  return [release_observer](CLI::App& app, CommandBody& body) {
    add_train_command(app, body, release_observer);
    add_sweep_command(app, body);
    add_tune_command(app, body);
    add_schema_command(app, body);
    add_eval_command(app, body);
    add_predict_command(app, body);
    add_export_command(app, body);
    add_audit_command(app, body);
    add_verify_command(app, body);
    add_account_command(app, body);
    add_report_command(app, body);
    add_calibrate_command(app, body);
    add_reproduce_command(app, body);
    add_info_command(app, body);
    add_completion_command(app, body);
  };
}

/// The program's parser with all its commands, and the command that the user gave.
struct Program {
  explicit Program(const AddCommands& add) {
    const BuildInfo build = build_info();
    app.set_version_flag("--version",
                         std::string("cudp ") + build.version + " (" + build.commit + ")");
    app.footer("cudp COMMAND --help, or cudp help COMMAND, has examples.");
    add(app, body);
    app.require_subcommand(0, 1);  // otherwise a second one would run instead of the first
    for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  }

  /// Parses the command line. Returns the text of --help or --version if one of these was given; ""
  /// if a command is to run. Throws InputError if the command line is not valid.
  std::string parse(std::vector<std::string> words) {
    if (words.front() == "help") {
      words.erase(words.begin());
      words.emplace_back("--help");
    }
    check_first_word(app, words);
    try {
      std::vector<std::string> reversed(words.rbegin(),
                                        words.rend());  // the order that CLI11 expects
      app.parse(std::move(reversed));
    } catch (const CLI::ParseError& e) {
      if (e.get_exit_code() == 0) {
        std::ostringstream text;
        app.exit(e, text, text);
        return text.str();
      }
      const std::vector<CLI::App*> chosen = app.get_subcommands();
      throw InputError(sentence_of(e, chosen.empty() ? "cudp" : chosen.front()->get_name()));
    }
    const CLI::App& command = *app.get_subcommands().front();
    refuse_list_with_blanks(command, words);
    refuse_leftovers(app, command);
    return {};
  }

  CLI::App app{"cudp trains models with differential privacy, on CPU and on CUDA.", "cudp"};
  CommandBody body;
};

int run(const AddCommands& add, const std::vector<std::string>& words) {
  Program program(add);
  const auto fitting = [](const std::string& text, int file) {
    constexpr int kWidthOfFiles = 80;
    const int width = terminal_width(file);
    return wrapped_help(text, static_cast<std::size_t>(width > 0 ? width : kWidthOfFiles));
  };
  if (words.empty()) {
    std::cerr << fitting(program.app.help(), STDERR_FILENO);
    return kBadUsage;
  }
  if (const std::string text = program.parse(words); !text.empty()) {
    std::cout << fitting(text, STDOUT_FILENO);
    return static_cast<int>(Exit::ok);
  }
  return program.body.run();
}

void check(Program& program, const std::vector<std::string>& words) {
  if (words.empty()) throw InputError("expected a command, found none");
  if (program.parse(words).empty()) program.body.check();
}

}  // namespace

void check_command_line(const std::vector<std::string>& words) {
  static Program program(commands_of_cudp(nullptr));  // construction is much slower than a check
  check(program, words);
}

void check_command_line(const std::vector<std::string>& words, const AddCommands& add) {
  Program program(add);
  check(program, words);
}

int run_command_line(int argc, char** argv, ReleaseObserver* release_observer) {
  return run_commands(commands_of_cudp(release_observer), {argv + 1, argv + argc});
}

int run_commands(const AddCommands& add, const std::vector<std::string>& words) {
  try {
    const int code = run(add, words);
    errno = 0;
    if (std::cout.flush()) return code;
    throw Error(std::string("stdout: cannot write the result: ") +
                (errno != 0 ? std::strerror(errno) : "an earlier write failed"));
  } catch (const Error& e) {
    std::cerr << std::string("cudp: ") + e.what() + "\n";  // one write
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::cerr << "cudp: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << std::string("cudp: ") + e.what() + "\n";  // one write
  }
  return static_cast<int>(Exit::failure);
}

}  // namespace cudp

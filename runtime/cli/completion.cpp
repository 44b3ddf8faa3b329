#include "runtime/cli/completion.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "models/model.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"

namespace cudp {
namespace {

constexpr const char* kCompletionExamples = R"(Examples:
  cudp completion bash > ~/.local/share/bash-completion/completions/cudp
  cudp completion zsh > ~/.zfunc/_cudp
  cudp completion fish > ~/.config/fish/completions/cudp.fish
  cudp completion man > ~/.local/share/man/man1/cudp.1)";

/// A command's flag, with everything that a shell's completion needs.
struct Flag {
  std::string name;  ///< name with its dashes, e.g. "--epsilon"
  std::string help;
  std::string value_name;          ///< "" for a flag without a value
  std::vector<std::string> words;  ///< values that can be completed
  bool is_open = true;             ///< whether other values are allowed, such as a file
};

/// Description of a command and its flags, for a shell's completion and for the manual page.
struct Described {
  std::string name;
  std::string help;
  std::string footer;
  std::vector<Flag> positionals;
  std::vector<Flag> flags;
};

/// Sets flag.words to the values that the shell can complete, if the option has such values (names
/// of presets, methods, ...), and flag.is_open to whether other values are allowed.
void name_values(Flag& flag) {
  const std::string key = flag.name.substr(2);
  if (key == "preset") flag.words = preset_names();
  if (key == "method") flag.words = method_names();
  flag.is_open = flag.words.empty();
  if (key == "model") flag.words = model_names();
  if (key == "dataset")
    for (const NamedDataset& d : named_datasets()) flag.words.push_back(d.name);
  if (!flag.words.empty()) return;
  const Option* const option = find_option(key);
  if (option == nullptr || option->value_name != flag.value_name) return;
  flag.words = option->choices;
  flag.is_open = flag.words.empty();
}

std::vector<Described> described(const CLI::App& app) {
  std::vector<Described> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    Described c{.name = command->get_name(),
                .help = command->get_description(),
                .footer = command->get_footer(),
                .positionals = {},
                .flags = {}};
    for (const CLI::Option* option : command->get_options()) {
      Flag flag;
      flag.help = option->get_description();
      const bool takes_value = option->get_items_expected_max() > 0;
      if (takes_value) flag.value_name = option->get_type_name();
      if (takes_value && flag.value_name.empty()) flag.value_name = "VALUE";
      if (option->get_lnames().empty()) {
        flag.name = option->get_name();
        c.positionals.push_back(std::move(flag));
        continue;
      }
      flag.name = "--" + option->get_lnames().front();
      if (takes_value) name_values(flag);
      c.flags.push_back(std::move(flag));
    }
    commands.push_back(std::move(c));
  }
  return commands;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

/// Returns the text with a backslash before each character that occurs in `characters`.
std::string escaped(const std::string& text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Returns the text in single quotes, so that sh and zsh read it as one word.
std::string single_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> names_of(const std::vector<Flag>& flags) {
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const Flag& flag : flags) names.push_back(flag.name);
  return names;
}

std::string bash(const std::vector<Described>& commands) {
  std::vector<std::string> names;
  std::string flags, values;
  for (const Described& c : commands) {
    names.push_back(c.name);
    flags += fmt::format("    {}) flags='{}' ;;\n", c.name, joined(names_of(c.flags)));
    std::vector<std::string> files;
    for (const Flag& flag : c.flags) {
      if (flag.value_name.empty()) continue;
      const std::string pattern = fmt::format("'{} {}'", c.name, flag.name);
      if (flag.words.empty())
        files.push_back(pattern);
      else
        values += fmt::format("    {}) words='{}' files={} ;;\n", pattern, joined(flag.words),
                              flag.is_open ? 1 : 0);
    }
    if (!files.empty()) values += fmt::format("    {}) files=1 ;;\n", joined(files, " | "));
  }
  return fmt::format(R"(# bash completion of cudp, made by: cudp completion bash
_cudp() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} flags='' words='' files=0
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} help --help --version' -- "$word"))
    return
  fi
  case "$command $before" in
{}  esac
  if [[ -z $words && $files == 0 ]]; then
    if [[ $word == -* ]]; then
      case $command in
{}      esac
      words=$flags
    else
      files=1
    fi
  fi
  [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$word"))
  ((files == 0)) || COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _cudp cudp
)",
                     joined(names), values, flags);
}

std::string zsh(const std::vector<Described>& commands) {
  const auto value_of = [](const Flag& flag) -> std::string {
    if (flag.value_name.empty()) return "";
    const std::string name = ":" + escaped(flag.value_name, ":[]") + ":";
    if (flag.words.empty()) return name + "_files";
    const std::string words = "(" + joined(flag.words) + ")";
    return name +
           (flag.is_open ? "_alternative \"words::" + words + "\" \"files::_files\"" : words);
  };
  std::string list, bodies;
  for (const Described& c : commands) {
    list += "    " + single_quoted(escaped(c.name, ":") + ":" + c.help) + "\n";
    bodies += fmt::format("    {})\n      _arguments", c.name);
    for (const Flag& flag : c.flags)
      bodies += " \\\n        " +
                single_quoted(flag.name + "[" + escaped(flag.help, "[]\\") + "]" + value_of(flag));
    bodies += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef cudp
# zsh completion of cudp, made by: cudp completion zsh
_cudp() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_cudp "$@"
)",
                     list, bodies);
}

std::string fish(const std::vector<Described>& commands) {
  const auto text = [](const std::string& s) { return "'" + escaped(s, "\\'") + "'"; };
  std::string out = "# fish completion of cudp, made by: cudp completion fish\n";
  for (const Described& c : commands)
    out += fmt::format("complete -c cudp -n __fish_use_subcommand -f -a {} -d {}\n", c.name,
                       text(c.help));
  for (const Described& c : commands)
    for (const Flag& flag : c.flags) {
      out += fmt::format("complete -c cudp -n '__fish_seen_subcommand_from {}' -l {} -d {}", c.name,
                         flag.name.substr(2), text(flag.help));
      if (!flag.value_name.empty()) out += flag.is_open ? " -r" : " -x";
      if (!flag.words.empty()) out += " -a " + text(joined(flag.words));
      out += '\n';
    }
  return out;
}

/// Escapes a text for a manual page (troff), so that no line is read as a troff command and hyphens
/// stay hyphens.
std::string man_text(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && (line[0] == '.' || line[0] == '\'')) out += "\\&";
    for (const char c : line)
      out += c == '\\' ? "\\e" : c == '-' ? std::string("\\-") : std::string(1, c);
    out += '\n';
  }
  return out;
}

std::string man(const std::vector<Described>& commands, const std::string& description) {
  std::string out = fmt::format(R"(.TH CUDP 1 "" "cudp {}"
.SH NAME
cudp \- trains models with differential privacy
.SH SYNOPSIS
.B cudp
.I COMMAND
[flags]
.SH DESCRIPTION
{}.SH COMMANDS
)",
                                build_info().version, man_text(description));
  for (const Described& c : commands) {
    out += fmt::format(".SS {}\n{}", c.name, man_text(c.help + "."));
    const auto entries = [&](const std::vector<Flag>& flags, bool named) {
      for (const Flag& flag : flags) {
        std::string line = ".TP\n.B " + man_text(flag.name);
        line.pop_back();
        if (named && !flag.value_name.empty()) {
          std::string value = man_text(flag.value_name);
          value.pop_back();
          line += " \\fI" + value + "\\fR";
        }
        out += line + "\n" + man_text(flag.help.empty() ? "\\ " : flag.help);
      }
    };
    entries(c.positionals, false);
    entries(c.flags, true);
    // The page is read at 80 columns, and its paragraphs are indented by 7.
    if (!c.footer.empty()) out += ".PP\n.nf\n" + man_text(wrapped_help(c.footer, 73)) + ".fi\n";
  }
  return out + R"(.SH EXIT STATUS
0: done. 1: failed, or a check does not hold. 2: wrong flags or input. 75: interrupted, with a checkpoint; the same
command with \-\-resume\-or\-start goes on.
.SH FILES
RUN/release/ may be published, RUN/private/ may not.
)";
}

}  // namespace

void add_completion_command(CLI::App& app, CommandBody& body) {
  CLI::App* const sub =
      app.add_subcommand("completion", "Completion for a shell, or the manual page");
  sub->footer(kCompletionExamples);
  const auto form = std::make_shared<std::string>();
  sub->add_option("shell", *form, "bash, zsh, fish or man")->required()->type_name("NAME");
  sub->callback([&app, &body, form] {
    using Make = std::string (*)(const std::vector<Described>&);
    Make make = nullptr;
    if (*form == "bash") make = bash;
    if (*form == "zsh") make = zsh;
    if (*form == "fish") make = fish;
    const bool is_man = *form == "man";
    if (make == nullptr && !is_man)
      throw InputError("completion: expected bash, zsh, fish or man, found '" + *form + "'");
    body = {.run =
                [&app, make] {
                  const std::vector<Described> commands = described(app);
                  std::cout << (make != nullptr ? make(commands)
                                                : man(commands, app.get_description()));
                  return 0;
                },
            .check = [] {}};
  });
}

}  // namespace cudp

#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/config/option.hpp"

namespace CLI {
class App;
}

namespace cudp {

/// A line of a short help: the key of an option, and a short description. A line without a key is a
/// heading.
struct HelpLine {
  const char* key;
  const char* text;
};

/// Returns the lines of the short help of `cudp train`: the options that most users need, with
/// headings.
std::span<const HelpLine> train_help_lines();

/// Returns the short help: one line per option with its flag, value, description and default.
/// lines: which options, by key, and their descriptions. own: the command's own options; any other
/// key is that of an option of `cudp train`.
std::string help_lines_text(std::span<const HelpLine> lines, std::span<const Option> own = {});

/// Breaks the lines of a help text at blanks, so that none is wider than `width` columns (a longer
/// word is a line of its own). Continuation lines are indented like the description. In a broken
/// example each line ends in a backslash, so that it can be copied; its comment becomes a line
/// before it.
std::string wrapped_help(const std::string& text, std::size_t width);

/// Returns a help text as it should be written to the file descriptor `file`: with lines broken to
/// the terminal's width if it is a terminal, otherwise unchanged.
std::string fitting_text(const std::string& text, int file);

/// Makes --help of a command show `text` instead of all options, which are too many for one screen.
/// Adds the flag --help-all, which shows all of them.
void use_short_help(CLI::App& command, std::string text);

}  // namespace cudp

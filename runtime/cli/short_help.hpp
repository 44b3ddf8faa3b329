#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/config/option.hpp"

namespace CLI {
class App;
}

namespace cudp {

/// A line of a short help: an option by its key, and what it is in a few words. A line without a
/// key is a heading.
struct HelpLine {
  const char* key;
  const char* text;
};

/// The options of `cudp train` that most people need.
std::span<const HelpLine> train_help_lines();

/// One line an option: its flag, what it takes, its text and its default. The options are those of
/// `cudp train`, and `own`.
std::string help_lines_text(std::span<const HelpLine> lines, std::span<const Option> own = {});

/// The text of a help with its lines broken at blanks, so that none is wider than `width` columns
/// if its words are not. What continues stands under the text that it continues. Examples are left
/// as they are, to be copied.
std::string wrapped_help(const std::string& text, std::size_t width);

/// Lets --help of a command that has too many options for one screen show `text`, and adds
/// --help-all, which lists them all.
void use_short_help(CLI::App& command, std::string text);

}  // namespace cudp

#include "runtime/cli/short_help.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/reporter.hpp"
#include "runtime/settings/options.hpp"

namespace cudp {
namespace {

constexpr HelpLine kTrainLines[] = {
    {"", "Data"},
    {"dataset", "a name (glyphs needs no files), a table, .npy or images"},
    {"data-dir", "folder with the files of named data sets"},
    {"schema", "a table's columns, categories and bounds"},
    {"test-data", "table on which accuracy is measured; without one it is not"},
    {"size-is-public", "the number of rows is no secret: less noise"},
    {"", "Model and length"},
    {"preset", "tuned settings of a data set, to start from"},
    {"model", "logistic, svm, mlp, cnn, ... or a .toml file of layers"},
    {"method", "how it is trained; sgd is without privacy"},
    {"batch", "expected batch size"},
    {"epochs", "length of the training (or --steps)"},
    {"", "Privacy"},
    {"epsilon", "budget, to which the noise is calibrated"},
    {"delta", "probability that the guarantee fails, well below 1 / rows"},
    {"clip", "bound on the norm of one example's gradient"},
    {"sigma", "noise multiplier, where it is not to follow from --epsilon"},
    {"", "Optimisation"},
    {"optimizer", "sgd, momentum, nesterov, adam or adamw"},
    {"lr", "learning rate; 0.001 with adam and adamw"},
    {"schedule", "of the learning rate: constant, step, cosine, ..."},
    {"", "Machine and files"},
    {"device", "auto, cpu or cuda"},
    {"threads", "CPU threads, 0: every core"},
    {"config", "TOML file of settings under these names; flags win"},
    {"out", "folder of the run"},
    {"resume", "go on with an interrupted run"},
    {"seed", "reproducible, and so not for release"},
    {"json", "print the result as JSON"},
};

/// Formatter that shows a fixed text as the help of a command.
class ShortHelp final : public CLI::Formatter {
 public:
  explicit ShortHelp(std::string text) : text_(std::move(text)) {}
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return mode == CLI::AppFormatMode::Normal
               ? text_
               : CLI::Formatter::make_help(app, std::move(name), mode);
  }

 private:
  std::string text_;
};

std::string default_text(const Option& option) {
  if (option.kind == ValueKind::toggle) return "";
  const auto value = option.get(TrainConfig{});
  if (!value || *value == Value(std::string())) return "";
  const auto* text = std::get_if<std::string>(&*value);
  return " [" + (text ? *text : value_text(*value)) + "]";
}

}  // namespace

std::span<const HelpLine> train_help_lines() { return kTrainLines; }

std::string help_lines_text(std::span<const HelpLine> lines, std::span<const Option> own) {
  std::string all;
  for (const HelpLine& line : lines) {
    if (*line.key == '\0') {
      all += std::string(line.text) + ":\n";
      continue;
    }
    const auto found = std::ranges::find(own, line.key, &Option::key);
    const Option* const option = found != own.end() ? &*found : find_option(line.key);
    if (option == nullptr) throw std::logic_error(std::string(line.key) + ": no such option");
    const std::string flag =
        "--" + option->key + (option->value_name.empty() ? "" : " " + option->value_name);
    all += fmt::format("  {:<18}  {}{}\n", flag, line.text, default_text(*option));
  }
  return all;
}

namespace {

/// Returns the column at which the description in a line of a help text begins: after an option's
/// flag and value, or after the indentation if the line has no option.
std::size_t begin_of_text(const std::string& line) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent == 0 || indent >= 20) return indent;
  const std::size_t gap = line.find("  ", indent);
  if (gap == std::string::npos) return indent;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

/// Returns the text of `words` from index `at` on, broken at blanks into lines of at most `width`
/// characters. row: text at the start of the first line. indent: text at the start of all other
/// lines. tail: text at the end of every line except the last.
std::string broken(const std::string& words, std::size_t at, std::string row,
                   const std::string& indent, const std::string& tail, std::size_t width) {
  std::string out;
  bool empty = true;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    const std::size_t tail_size = end < words.size() ? tail.size() : 0;
    if (!empty && row.size() + 1 + word.size() + tail_size > width) {
      out += row + tail + "\n";
      row = indent;
      empty = true;
    }
    row += (empty ? "" : " ") + word;
    empty = false;
    at = end + 1;
  }
  return out + row + "\n";
}

/// Returns an example command of a help text, broken into lines of at most `width` characters. The
/// command can still be copied, because its lines end in a backslash. Its comment becomes a line
/// before it.
std::string broken_example(const std::string& line, std::size_t width) {
  const std::size_t comment = line.find("  # ");
  std::string out;
  if (comment != std::string::npos) out = broken(line, comment + 4, "  # ", "  # ", "", width);
  const std::string command = line.substr(0, comment);
  return out + broken(command.substr(0, command.find_last_not_of(' ') + 1), 2, "  ", "      ",
                      " \\", width);
}

std::string wrapped_line(const std::string& line, std::size_t width) {
  const std::size_t begin = begin_of_text(line);
  constexpr std::size_t kMinWords = 20;  // minimum width of the description [characters]
  if (line.size() <= width) return line + "\n";
  if (line.starts_with("  cudp ")) return broken_example(line, width);
  if (begin + kMinWords > width) return line + "\n";
  return broken(line, begin, line.substr(0, begin), std::string(begin, ' '), "", width);
}

}  // namespace

std::string wrapped_help(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  std::string wrapped;
  for (std::string line; std::getline(lines, line);) wrapped += wrapped_line(line, width);
  return wrapped;
}

std::string fitting_text(const std::string& text, int file) {
  const int width = terminal_width(file);
  return width > 0 ? wrapped_help(text, static_cast<std::size_t>(width)) : text;
}

void use_short_help(CLI::App& command, std::string text) {
  command.set_help_all_flag("--help-all", "Print this, all options");
  command.formatter(std::make_shared<ShortHelp>(std::move(text)));
}

}  // namespace cudp

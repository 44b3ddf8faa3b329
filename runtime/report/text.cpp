#include <algorithm>
#include <cstddef>

#include "runtime/report/document.hpp"
#include "runtime/report/escape.hpp"

namespace cudp::page {
namespace {

/// Length of the lines of a text file [characters].
constexpr std::size_t kTextWidth = 80;

/// Returns the number of characters of a UTF-8 text.
std::size_t length(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Returns the text wrapped to lines of kTextWidth characters. The first line begins with `first`,
/// the others with as many spaces.
std::string wrapped(const std::string& text, const std::string& first) {
  const std::string line = one_line(text);
  const std::string indent(length(first), ' ');
  std::string all, current = first;
  bool empty = true;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t space = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, space - at);
    at = space + 1;
    if (!empty && length(current) + 1 + length(word) > kTextWidth) {
      all += current + "\n";
      current = indent;
      empty = true;
    }
    current += (empty ? "" : " ") + word;
    empty = false;
  }
  return all + current + "\n";
}

std::string underlined(const std::string& title, char with) {
  const std::string line = one_line(title);
  return line + "\n" + std::string(length(line), with) + "\n";
}

/// Writes the blocks of a section as plain text, one after another, and appends each to `s`.
struct TextBlocks {
  std::string s;

  void operator()(const Paragraph& p) { s += "\n" + wrapped(p.text, ""); }
  void operator()(const Alarm& a) { s += "\n" + wrapped(a.text, "!! "); }
  void operator()(const Bullets& b) {
    if (!b.items.empty()) s += '\n';
    for (const std::string& item : b.items) s += wrapped(item, "- ");
  }
  void operator()(const Answers& a) {
    for (const auto& [question, sentences] : a.questions) {
      s += "\n" + one_line(question) + "\n";
      for (const std::string& sentence : sentences) s += wrapped(sentence, "    ");
    }
  }
  /// Writes a table as text: each row as its heading, and a line below for each other cell.
  void operator()(const Table& t) {
    s += "\n" + wrapped(t.caption, "") + "\n";
    if (t.columns.size() == 2) {
      for (const auto& row : t.rows) s += wrapped(row[0] + ": " + row[1], "  ");
      return;
    }
    for (const auto& row : t.rows) {
      s += wrapped(row[0], "  ");
      for (std::size_t i = 1; i < row.size(); ++i)
        if (!row[i].empty()) s += wrapped(t.columns[i] + ": " + row[i], "    ");
    }
  }
  void operator()(const Chart& c) { s += "\n" + wrapped(c.title + ". " + c.description, ""); }
  void operator()(const Code& c) {
    s += '\n';
    for (std::size_t at = 0; at < c.text.size();) {
      const std::size_t end = std::min(c.text.find('\n', at), c.text.size());
      s += "    " + one_line(c.text.substr(at, end - at)) + "\n";
      at = end + 1;
    }
  }
};

}  // namespace

std::string to_text(const Document& d) {
  TextBlocks text{underlined(d.title, '=')};
  if (!d.subtitle.empty()) text.s += wrapped(d.subtitle, "");
  if (!d.not_for_release.empty()) {
    text.s += "\n" + wrapped(d.not_for_release, "!! ");
    for (const std::string& reason : d.reasons) text.s += wrapped(reason, "!! - ");
  }
  for (const std::string& alarm : d.alarms) text(Alarm{alarm});
  for (const Section& section : d.sections) {
    text.s += "\n\n" + underlined(section.title, '-');
    for (const Block& block : section.blocks) std::visit(text, block);
  }
  return std::move(text.s);
}

}  // namespace cudp::page

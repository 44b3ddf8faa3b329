#include <algorithm>

#include "runtime/report/document.hpp"
#include "runtime/report/escape.hpp"

namespace cudp::page {
namespace {

/// Writes the blocks of a section as Markdown, one after another, and appends each to `s`.
struct MarkdownBlocks {
  std::string s;

  void operator()(const Paragraph& p) { s += "\n" + markdown(p.text) + "\n"; }
  void operator()(const Alarm& a) { s += "\n> **" + markdown(a.text) + "**\n"; }
  void operator()(const Bullets& b) {
    if (!b.items.empty()) s += '\n';
    for (const std::string& item : b.items) s += "- " + markdown(item) + "\n";
  }
  void operator()(const Answers& a) {
    for (const auto& [question, sentences] : a.questions) {
      s += "\n**" + markdown(question) + "**";
      for (const std::string& sentence : sentences) s += " " + markdown(sentence);
      s += '\n';
    }
  }
  void operator()(const Table& t) {
    s += "\n" + markdown(t.caption) + "\n\n|";
    for (const std::string& c : t.columns) s += " " + markdown(c) + " |";
    s += "\n|";
    for (std::size_t i = 0; i < t.columns.size(); ++i) s += "---|";
    for (const auto& row : t.rows) {
      s += "\n|";
      for (const std::string& cell : row) s += " " + markdown(cell) + " |";
    }
    s += '\n';
  }
  void operator()(const Chart& c) {
    s += "\n" + markdown(c.title) + ". " + markdown(c.description) + "\n";
  }
  /// Writes a code block. Texts of users occur in code only as string literals of one line, so they
  /// cannot end the block early.
  void operator()(const Code& c) { s += "\n```" + c.language + "\n" + c.text + "```\n"; }
};

}  // namespace

std::string to_markdown(const Document& d) {
  MarkdownBlocks text{"# " + markdown(d.title) + "\n"};
  if (!d.subtitle.empty()) text(Paragraph{d.subtitle});
  if (!d.not_for_release.empty()) {
    text(Alarm{d.not_for_release});
    text(Bullets{d.reasons});
  }
  for (const std::string& alarm : d.alarms) text(Alarm{alarm});
  for (const Section& section : d.sections) {
    text.s += "\n## " + markdown(section.title) + "\n";
    for (const Block& block : section.blocks) std::visit(text, block);
  }
  return std::move(text.s);
}

}  // namespace cudp::page

#include <algorithm>
#include <span>

#include <spdlog/fmt/fmt.h>

#include "runtime/report/document.hpp"
#include "runtime/report/escape.hpp"

#include "report_template.hpp"

namespace cudp::page {
namespace {

std::string list(const std::vector<std::string>& items) {
  std::string s = "<ul>\n";
  for (const std::string& item : items) s += "<li>" + html(item) + "</li>\n";
  return s + "</ul>\n";
}

/// Returns the lines of a listing of code for an HTML page: escaped, with line breaks kept.
std::string lines_of(const std::string& text) {
  std::string s;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    s += html(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return s;
}

/// Renders the blocks of a section as HTML. Consecutive charts are placed next to each other.
class Blocks {
 public:
  std::string take() {
    close_row();
    return std::move(s_);
  }
  void add(const Block& block) {
    if (!std::holds_alternative<Chart>(block)) close_row();
    std::visit(*this, block);
  }

  void operator()(const Paragraph& p) { s_ += "<p>" + html(p.text) + "</p>\n"; }
  void operator()(const Alarm& a) { s_ += "<p class=\"alarm\">" + html(a.text) + "</p>\n"; }
  void operator()(const Bullets& b) {
    if (!b.items.empty()) s_ += list(b.items);
  }
  void operator()(const Answers& a) {
    s_ += a.in_short ? "<div class=\"short\">\n" : "<div class=\"answers\">\n";
    for (const auto& [question, sentences] : a.questions) {
      s_ += "<div>\n<h3>" + html(question) + "</h3>\n<div>\n";
      for (const std::string& sentence : sentences) s_ += "<p>" + html(sentence) + "</p>\n";
      s_ += "</div>\n</div>\n";
    }
    s_ += "</div>\n";
  }
  void operator()(const Table& t) {
    s_ += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + html(t.caption) +
          "\">\n<table>\n<caption>" + html(t.caption) + "</caption>\n<thead>\n<tr>";
    for (const std::string& c : t.columns) s_ += "<th scope=\"col\">" + html(c) + "</th>";
    s_ += "</tr>\n</thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : t.rows) {
      s_ += "<tr>";
      for (std::size_t i = 0; i < row.size(); ++i)
        s_ += i == 0 ? "<th scope=\"row\">" + html(row[i]) + "</th>"
                     : "<td>" + html(row[i]) + "</td>";
      s_ += "</tr>\n";
    }
    s_ += "</tbody>\n</table>\n</div>\n";
  }
  void operator()(const Chart& c) {
    if (!in_row_) s_ += "<div class=\"charts\">\n";
    in_row_ = true;
    s_ += "<figure>\n" + to_svg(c) + "<figcaption>" + html(c.title) + "</figcaption>\n</figure>\n";
  }
  void operator()(const Code& c) {
    s_ += "<pre tabindex=\"0\"><code>" + lines_of(c.text) + "</code></pre>\n";
  }

 private:
  void close_row() {
    if (in_row_) s_ += "</div>\n";
    in_row_ = false;
  }

  std::string s_;
  bool in_row_ = false;
};

std::string top_of(const Document& d) {
  std::string s = "<header>\n<h1>" + html(d.title) + "</h1>\n";
  if (!d.subtitle.empty()) s += "<p class=\"subtitle\">" + html(d.subtitle) + "</p>\n";
  if (!d.not_for_release.empty()) {
    s += "<div class=\"alarm\" role=\"note\">\n<p><strong>" + html(d.not_for_release) +
         "</strong></p>\n";
    if (!d.reasons.empty()) s += list(d.reasons);
    s += "</div>\n";
  }
  for (const std::string& a : d.alarms) s += "<p class=\"alarm\">" + html(a) + "</p>\n";
  return s + "</header>\n";
}

std::string contents_of(const Document& d) {
  std::string s = "<nav aria-label=\"Contents\">\n<ul>\n";
  for (const Section& section : std::span(d.sections).subspan(1))
    s += "<li><a href=\"#" + section.id + "\">" + html(section.title) + "</a></li>\n";
  return s + "</ul>\n</nav>\n";
}

void put(std::string& text, std::string_view mark, const std::string& content) {
  text.replace(text.find(mark), mark.size(), content);
}

}  // namespace

std::string to_html(const Document& d) {
  std::string body = top_of(d);
  for (std::size_t i = 0; i < d.sections.size(); ++i) {
    const Section& section = d.sections[i];
    Blocks blocks;
    for (const Block& block : section.blocks) blocks.add(block);
    body += "<section aria-labelledby=\"" + section.id + "\">\n<h2 id=\"" + section.id + "\">" +
            html(section.title) + "</h2>\n" + blocks.take() + "</section>\n";
    if (i == 0 && d.sections.size() > 2) body += contents_of(d);
  }
  std::string page(report_template().front().text);
  put(page, "TITLE", html(d.title + (d.subtitle.empty() ? "" : ": " + d.subtitle)));
  put(page, "BODY", body);
  return page;
}

}  // namespace cudp::page

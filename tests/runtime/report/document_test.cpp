#include "runtime/report/document.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cudp::page {
namespace {

const std::string kHostile = "</td><script>alert(1)</script>\n---\n![x](http://evil)\xe2\x80\xae";

/// A document with the text everywhere that a text can stand.
Document full_of(const std::string& text) {
  const Chart chart{.title = text,
                    .x = text,
                    .y = text,
                    .curves = {{.name = text, .points = {{0.0, 1.0}, {1.0, 2.0}}}},
                    .description = text};
  return {.title = text,
          .subtitle = text,
          .not_for_release = text,
          .reasons = {text},
          .alarms = {text},
          .sections = {{.id = "one",
                        .title = text,
                        .blocks = {Paragraph{text}, Alarm{text}, Bullets{{text, text}},
                                   Answers{{{text, {text, text}}}}, chart,
                                   Table{text, {text, text}, {{text, text}}},
                                   Table{text, {text, text, text}, {{text, text, text}}},
                                   Code{"sh", "true\n"}}},
                       {.id = "two", .title = text, .blocks = {}},
                       {.id = "three", .title = text, .blocks = {}}}};
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(PageDocument, HtmlOfHostileTextsHasTheMarksOfHarmlessOnes) {
  const std::string harmless = to_html(full_of("text")), hostile = to_html(full_of(kHostile));
  for (const char* const mark : {"<", ">", "\"", "<td>", "<script", "href="})
    EXPECT_EQ(count(hostile, mark), count(harmless, mark)) << mark;
  EXPECT_EQ(hostile.find("<script"), std::string::npos);
  EXPECT_EQ(hostile.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(count(hostile, "\n"), count(harmless, "\n"));
}

TEST(PageDocument, MarkdownAndTextOfHostileTextsHaveAsManyParagraphsAsHarmlessOnes) {
  EXPECT_EQ(count(to_markdown(full_of(kHostile)), "\n"), count(to_markdown(full_of("text")), "\n"));
  EXPECT_EQ(count(to_markdown(full_of(kHostile)), "<"), 0u);
  EXPECT_EQ(count(to_text(full_of(kHostile)), "\n---"), count(to_text(full_of("text")), "\n---"));
}

TEST(PageDocument, TextFitsEightyColumns) {
  std::string many;
  for (int i = 0; i < 60; ++i) many += "größe ";
  const std::string text = to_text(full_of(many));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    std::size_t characters = 0;
    for (const char c : line) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (line.find_first_not_of("=-") != std::string::npos && at > 0 && characters > 80) {
      EXPECT_EQ(line.find("größe größe größe größe größe größe größe"), 0u) << line;  // a title
    }
    at = end + 1;
  }
}

TEST(PageDocument, HtmlAsksForNothing) {
  const std::string html = to_html(full_of("text"));
  for (const char* const word :
       {"src=", "url(", "@import", "http:", "https:", "<link", "<script"}) {
    const std::size_t allowed = std::string(word) == "http:" ? 1 : 0;  // the name space of SVG
    EXPECT_EQ(count(html, word), allowed) << word;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count(html, "<th>"), 0u) << "each heading of a table has a scope";
}

/// Relative luminance of a colour, "#rrggbb" (WCAG 2).
double luminance(const std::string& colour) {
  const auto part = [&](std::size_t at) {
    const double c = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

TEST(PageDocument, LinesAreSeenInLightInDarkAndInPrint) {
  const std::string html = to_html(full_of("text"));
  int pages = 0;
  for (std::size_t at = html.find("--page: #"); at != std::string::npos;
       at = html.find("--page: #", at + 1), ++pages) {
    const auto colour_after = [&](const std::string& name) {
      const std::size_t found = html.find(name, at);
      return found == std::string::npos ? "" : html.substr(found + name.size(), 7);
    };
    const double page = luminance(colour_after("--page: "));
    for (int line = 0; line < 6; ++line) {
      const std::string colour = colour_after("--c" + std::to_string(line) + ": ");
      ASSERT_EQ(colour.size(), 7u);
      const double other = luminance(colour);
      EXPECT_GE((std::max(page, other) + 0.05) / (std::min(page, other) + 0.05), 3.0)
          << colour << " on page " << pages;  // WCAG 1.4.11
    }
  }
  EXPECT_EQ(pages, 3);
}

TEST(PageSvg, DrawsWhateverTheNumbersAre) {
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<std::pair<double, double>>> curves = {
      {},
      {{1.0, nan}},
      {{1.0, infinite}, {2.0, 1.0}},
      {{1.0, 0.0}},
      {{5.0, 7.0}},
      {{1.0, 1e300}},
      {{0.0, -1e-9}, {1.0, 1e-9}},
      {{1.0, 3.0}, {2.0, 3.0}},
      {{nan, nan}},
      {{-1e14, -1e14}, {1e14, 1e14}}};
  for (const auto& points : curves) {
    Chart chart{.title = "t",
                .x = "x",
                .y = "y",
                .curves = {{.name = "c", .points = points}},
                .y_min = std::nullopt,
                .description = "d"};
    for (const bool from_zero : {false, true}) {
      if (from_zero) chart.y_min = 0.0;
      const std::string svg = to_svg(chart);
      EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
      EXPECT_LT(svg.size(), 20000u);
      EXPECT_TRUE(svg.ends_with("</svg>\n"));
    }
  }
}

TEST(PageSvg, LabelsAreRoundNumbers) {
  const std::string svg = to_svg({.title = "t",
                                  .x = "epoch",
                                  .y = "epsilon",
                                  .curves = {{.name = "c", .points = {{1.0, 0.57}, {40.0, 1.0}}}},
                                  .y_min = 0.0,
                                  .description = "d"});
  for (const char* const label : {">0<", ">0.25<", ">0.5<", ">0.75<", ">1<", ">10<", ">40<"})
    EXPECT_NE(svg.find(label), std::string::npos) << label << "\n" << svg;
}

}  // namespace
}  // namespace cudp::page

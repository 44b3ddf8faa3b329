#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// A page as data. Texts are plain: each renderer escapes them (runtime/report/escape.hpp).

namespace cudp::page {

struct Paragraph {
  std::string text;
};

/// A warning, shown in red.
struct Alarm {
  std::string text;
};

struct Bullets {
  std::vector<std::string> items;
};

/// A part of a page: questions, each with the sentences of its answer.
struct Answers {
  std::vector<std::pair<std::string, std::vector<std::string>>> questions;
  bool in_short = false;  ///< whether the answers are shown as boxes side by side
};

/// A table. The first cell of each row is the row's heading.
struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`
};

/// A curve in a line chart. Points with a NaN or an infinity are not drawn.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool dashed = false;
};

/// A line chart. y_min: start of the vertical axis; if empty, the axis starts near the smallest
/// value.
struct Chart {
  std::string title;
  std::string x;  ///< name of the horizontal axis, with its unit
  std::string y;
  std::vector<Curve> curves;
  std::optional<double> y_min = {};
  std::string description = {};  ///< content of the chart in words, for readers who do not see it
};

struct Code {
  std::string language;
  std::string text;
};

using Block = std::variant<Paragraph, Alarm, Bullets, Answers, Table, Chart, Code>;

/// A section of a page: heading and content.
struct Section {
  std::string id;  ///< letters and '-' only
  std::string title;
  std::vector<Block> blocks;
};

/// A page of a report: its title, warnings and sections. to_html(), to_text() and to_markdown()
/// write it.
struct Document {
  std::string title;
  std::string subtitle;
  /// Warning at the top of the page, which states that the page, or the run that it describes, must
  /// not be published; empty if it may be.
  std::string not_for_release;
  std::vector<std::string> reasons;  ///< reasons why the page or the run is not for release
  std::vector<std::string> alarms;   ///< other warnings
  std::vector<Section> sections;
};

/// Returns the page as one HTML file, without scripts and without links to other files, so that it
/// opens without a network. Its style follows the reader's choice of a light or dark screen.
std::string to_html(const Document& document);
/// Returns the page as plain text of 80 columns. A chart is replaced by its description in words.
std::string to_text(const Document& document);
/// Returns the page as Markdown. A chart is replaced by its description in words.
std::string to_markdown(const Document& document);

/// Returns a chart as an SVG element, for an HTML page that defines its colours
/// (runtime/report/page.html).
std::string to_svg(const Chart& chart);

}  // namespace cudp::page

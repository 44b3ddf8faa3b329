// The picture of a table: a plot per group, and one legend for all of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "bench/reproduce/reproduction.hpp"
#include "runtime/base/gnuplot.hpp"

namespace cudp {
namespace {

constexpr int kPlotWidth = 560;  ///< [pixels]
constexpr int kPlotHeight = 400;
constexpr int kTitleHeight = 40;
constexpr int kLegendLine = 22;
constexpr int kLetterWidth = 8;

/// How the rows of a method are drawn.
struct Line {
  std::string name;
  int type = 0;  ///< line type of runtime/base/style.gp
};

/// Returns the name of the method that a row belongs to: a published row has that of the measured
/// row whose value it is.
const std::string& method_of(const ResultRow& row) { return row.of.empty() ? row.name : row.of; }

bool is_drawn(const ResultRow& row) {
  return row.drawn && std::ranges::any_of(row.values, [](double v) { return std::isfinite(v); });
}

std::vector<const ResultRow*> drawn_rows(const TableGroup& g) {
  std::vector<const ResultRow*> rows;
  for (const auto* part : {&g.measured, &g.published})
    for (const ResultRow& row : *part)
      if (is_drawn(row)) rows.push_back(&row);
  return rows;
}

/// Gives each method of the table a line type, the same in all plots.
std::vector<Line> lines_of(const ReproducedTable& t) {
  std::vector<Line> lines;
  int colours = 0;
  for (const TableGroup& g : t.groups)
    for (const ResultRow* row : drawn_rows(g)) {
      const std::string& name = method_of(*row);
      if (std::ranges::any_of(lines, [&](const Line& line) { return line.name == name; })) continue;
      const int type = name.starts_with("without privacy") ? kLineWithoutPrivacy
                       : name.starts_with("majority")      ? kLineByChance
                                                           : colours++ % kLineColours + 1;
      lines.push_back({name, type});
    }
  return lines;
}

int type_of(const std::vector<Line>& lines, const ResultRow& row) {
  return std::ranges::find_if(lines, [&](const Line& line) { return line.name == method_of(row); })
      ->type;
}

/// Smallest and largest of some numbers.
struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double x) {
    if (!std::isfinite(x)) return;
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

/// Returns the power of ten at or below the smallest positive value of a group: the lower end of a
/// logarithmic axis.
double least_power(const TableGroup& g) {
  Span positive;
  for (const ResultRow* row : drawn_rows(g))
    for (const double v : row->values)
      if (v > 0.0) positive.add(v);
  return std::isfinite(positive.low) ? std::pow(10.0, std::floor(std::log10(positive.low))) : 1e-3;
}

/// Returns the ends of the error bar of value number i. That of a value that is not negative ends
/// at 0; on a logarithmic axis, which has no 0, it has no lower half then.
std::pair<double, double> bar_of(const ResultRow& row, std::size_t i, bool logarithmic) {
  const double value = row.values[i];
  const double d = row.deviations.empty() ? 0.0 : row.deviations[i];
  double low = value - d;
  if (value >= 0.0 && low <= 0.0) low = logarithmic ? value : 0.0;
  return {low, value + d};
}

/// Returns a block of data: column, value, and the ends of the error bar. shift: factor of the
/// columns, by which error bars of several rows stand side by side.
std::string data_block(const std::string& name, const ResultRow& row,
                       const std::vector<double>& columns, bool logarithmic, double shift) {
  std::string block = name + " << EOD\n";
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (!std::isfinite(row.values[i])) continue;
    const auto [low, high] = bar_of(row, i, logarithmic);
    block += fmt::format("{} {} {} {}\n", columns[i] * shift, row.values[i], low, high);
  }
  return block + "EOD\n";
}

/// Returns the style of a row. A published value is dashed, in the colour of its method; values
/// with gaps between them are rings, because a line over a gap would show values that are not
/// there.
std::string style_of(const ResultRow& row, int type, bool bars) {
  const bool gaps = std::ranges::any_of(row.values, [](double v) { return std::isnan(v); });
  if (row.published && gaps) return fmt::format("points lt {} pt 6 ps 1.7", type);
  return fmt::format("{} lt {}{}", bars ? "yerrorlines" : "linespoints", type,
                     row.published ? " dt 2 lw 1.5" : "");
}

/// Draws a group as curves over its columns.
std::string curves_script(const ReproducedTable& t, const TableGroup& g,
                          const std::vector<Line>& lines) {
  const std::vector<double>& columns = t.columns_of(g);
  Span range;
  std::string tics;
  for (const double c : columns) {
    range.add(c);
    tics += fmt::format("{}'{:g}' {}", tics.empty() ? "" : ", ", c, c);
  }
  const double margin = std::pow(range.high / range.low, 0.05);
  std::string s = fmt::format(
      "set logscale x 2\nset xtics ({})\nset xrange [{}:{}]\nset xlabel {}\nset ylabel {}\n", tics,
      range.low / margin, range.high * margin, gnuplot_text(t.column_label),
      gnuplot_text(t.picture_label()));
  if (t.log_values)
    s += fmt::format("set logscale y\nset format y '%g'\nset yrange [{}:*]\n", least_power(g));
  const std::vector<const ResultRow*> rows = drawn_rows(g);
  const auto with_bars = static_cast<double>(
      std::ranges::count_if(rows, [](const ResultRow* row) { return !row->deviations.empty(); }));
  double bar = 0.0;
  std::string plots;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ResultRow& row = *rows[r];
    const bool bars = !row.deviations.empty();
    const double steps = bars ? bar++ - (with_bars - 1.0) / 2.0 : 0.0;
    const std::string name = fmt::format("$row{}", r);
    s += data_block(name, row, columns, t.log_values, std::pow(margin, 0.12 * steps));
    plots += fmt::format("{}{} using 1:2{} with {}", plots.empty() ? "plot " : ", ", name,
                         bars ? ":3:4" : "", style_of(row, type_of(lines, row), bars));
  }
  return s + plots + "\n";
}

/// Returns a step between labels of a linear axis, at which five or fewer stand on the span: 1, 2
/// or 5 times a power of ten. gnuplot's own steps leave no room between labels of a narrow plot.
double label_step(const Span& span) {
  const double least = (span.high - span.low) / 5.0;
  if (!(least > 0.0)) return 1.0;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double m : {1.0, 2.0, 5.0})
    if (least <= m * power) return m * power;
  return 10.0 * power;
}

/// Draws a group with a single column: a line per method, with its value from left to right.
std::string dots_script(const ReproducedTable& t, const TableGroup& g,
                        const std::vector<Line>& lines) {
  std::vector<std::string> methods;
  std::string blocks, plots;
  Span range;
  const std::vector<const ResultRow*> rows = drawn_rows(g);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ResultRow& row = *rows[r];
    auto at = std::ranges::find(methods, method_of(row));
    if (at == methods.end()) at = methods.insert(at, method_of(row));
    const auto [low, high] = bar_of(row, 0, t.log_values);
    range.add(low);
    range.add(high);
    blocks += fmt::format("$row{} << EOD\n{} {} {} {}\nEOD\n", r, row.values[0],
                          at - methods.begin(), low, high);
    const bool bars = !row.deviations.empty() && row.runs > 1;
    plots +=
        fmt::format("{}$row{} using 1:2{} with {} lt {} pt {} ps 1.3",
                    plots.empty() ? "plot " : ", ", r, bars ? ":3:4" : "",
                    bars ? "xerrorbars" : "points", type_of(lines, row), row.published ? 6 : 7);
  }
  std::string tics;
  for (std::size_t m = 0; m < methods.size(); ++m)
    tics += fmt::format("{}{} {}", m ? ", " : "", gnuplot_text(methods[m]), m);
  return fmt::format(
             "set ytics ({})\nset yrange [{}:-0.5]\nset offsets graph 0.05, graph 0.05, 0, 0\n"
             "set xlabel {}\nunset ylabel\n{}",
             tics, static_cast<double>(methods.size()) - 0.5,
             gnuplot_text(fmt::format("{}, {} = {:g}", t.picture_label(), t.column_label,
                                      t.columns_of(g)[0])),
             t.log_values ? std::string("set logscale x\nset format x '%g'\n")
                          : fmt::format("set xtics {}\n", label_step(range))) +
         blocks + plots + "\n";
}

/// Entries of the legend, in its order, and what each looks like.
std::vector<std::pair<std::string, std::string>> legend_of(const ReproducedTable& t,
                                                           const std::vector<Line>& lines,
                                                           bool dots) {
  if (dots)
    return {{"this run", "points lt 9 pt 7 ps 1.3"}, {"published", "points lt 9 pt 6 ps 1.3"}};
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Line& line : lines) {
    std::vector<std::string> names;
    for (const bool published : {false, true})
      for (const TableGroup& g : t.groups)
        for (const ResultRow* row : drawn_rows(g)) {
          if (row->published != published || method_of(*row) != line.name) continue;
          if (std::ranges::find(names, row->name) != names.end()) continue;
          names.push_back(row->name);
          entries.emplace_back(row->name.substr(row->name.find_first_not_of(' ')),
                               style_of(*row, line.type, false));
        }
  }
  return entries;
}

/// A place in the picture [pixels], from its top left corner.
struct Box {
  int x, y, width, height;
};

std::string placed(const Box& box, PictureSize size) {
  const auto share = [](int part, int whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return fmt::format("set origin {},{}\nset size {},{}\n", share(box.x, size.width),
                     1.0 - share(box.y + box.height, size.height), share(box.width, size.width),
                     share(box.height, size.height));
}

/// Draws the legend as a plot of its own, of which only the key is seen.
std::string legend_script(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string plots;
  for (const auto& [name, style] : entries)
    plots += fmt::format("{}NaN with {} title {}", plots.empty() ? "plot " : ", ", style,
                         gnuplot_text(name));
  return "unset border\nunset tics\nunset grid\nunset xlabel\nunset ylabel\nunset title\n"
         "set xrange [0:1]\nset yrange [0:1]\nset lmargin 0\nset rmargin 0\n"
         "set key inside left center Left reverse samplen 3 spacing 1.3 opaque\n" +
         plots + "\n";
}

}  // namespace

bool draw_table(const ReproducedTable& t, const std::filesystem::path& picture) {
  const auto groups = static_cast<int>(t.groups.size());
  const bool dots = std::ranges::all_of(
      t.groups, [&](const TableGroup& g) { return t.columns_of(g).size() == 1; });
  const std::vector<Line> lines = lines_of(t);
  const auto entries = legend_of(t, lines, dots);
  std::size_t longest = 0;
  for (const auto& [name, style] : entries) longest = std::max(longest, name.size());

  const int across = groups > 1 ? 2 : 1;
  const int down = (groups + across - 1) / across;
  // The legend stands at the right, or in the cell that an odd number of groups leaves.
  const bool in_cell = across * down > groups;
  const int legend_width = static_cast<int>(longest) * kLetterWidth + 90;
  const int height =
      std::max(kPlotHeight, down > 1 ? 0 : kLegendLine * (static_cast<int>(entries.size()) + 1));
  const PictureSize size{.width = kPlotWidth * across + (in_cell ? 0 : legend_width),
                         .height = kTitleHeight + height * down};
  std::string s = gnuplot_header(t.title, size) + "unset title\nset multiplot title " +
                  gnuplot_text(t.title) + "\nunset key\n";
  for (int i = 0; i < groups; ++i) {
    const TableGroup& g = t.groups[static_cast<std::size_t>(i)];
    s += placed({.x = kPlotWidth * (i % across),
                 .y = kTitleHeight + height * (i / across),
                 .width = kPlotWidth,
                 .height = height},
                size) +
         "set title " + gnuplot_text(g.name) + "\n" +
         (dots ? dots_script(t, g, lines) : curves_script(t, g, lines)) +
         "unset logscale\nset autoscale\n";
  }
  if (in_cell)
    s += placed({.x = kPlotWidth * (across - 1),
                 .y = kTitleHeight + height * (down - 1),
                 .width = kPlotWidth,
                 .height = height},
                size);
  else
    s += placed({.x = kPlotWidth * across,
                 .y = kTitleHeight,
                 .width = legend_width,
                 .height = height * down},
                size);
  return run_gnuplot(s + legend_script(entries) + "unset multiplot\n", picture);
}

}  // namespace cudp

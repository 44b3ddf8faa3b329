#include <algorithm>
#include <cmath>
#include <cstdio>

#include <spdlog/fmt/fmt.h>

#include "bench/reproduce/reproduction.hpp"
#include "runtime/base/gnuplot.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

std::string row_text(const ResultRow& row, std::size_t width) {
  std::string line = fmt::format("  {:<{}}", row.name, width);
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const bool known = std::isfinite(row.values[i]);
    const std::string value = known ? fmt::format("{:.2f}", row.values[i]) : "-";
    // A single run has no deviation.
    const std::string spread = row.deviations.empty() || !known || row.runs == 1
                                   ? ""
                                   : fmt::format(" +-{:.2f}", row.deviations[i]);
    line += fmt::format("  {:<12}", value + spread);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

Json row_json(const ResultRow& row) {
  Json j{{"name", row.name}, {"values", row.values}};
  if (!row.deviations.empty()) {
    j["deviations"] = row.deviations;
    j["runs"] = row.runs;
  }
  return j;
}

}  // namespace

std::string table_text(const ReproducedTable& t) {
  std::size_t width = t.column_label.size();
  for (const TableGroup& g : t.groups)
    for (const auto* rows : {&g.measured, &g.published})
      for (const ResultRow& row : *rows) width = std::max(width, row.name.size());
  std::string text = t.title + ", " + t.value_label + "\n";
  for (const TableGroup& g : t.groups) {
    text += "\n" + g.name + "\n" + fmt::format("  {:<{}}", t.column_label, width);
    for (const double c : t.columns_of(g)) text += fmt::format("  {:<12g}", c);
    text = text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    for (const ResultRow& row : g.measured) text += row_text(row, width);
    for (const ResultRow& row : g.published) text += row_text(row, width);
  }
  for (const std::string& note : t.notes) text += "\n" + note;
  return text + "\n";
}

Json table_json(const ReproducedTable& t) {
  Json j{{"title", t.title}, {t.column_label, t.columns}, {"values_are", t.value_label}};
  j["groups"] = Json::array();
  for (const TableGroup& g : t.groups) {
    Json group{{"name", g.name}};
    if (!g.columns.empty()) group[t.column_label] = g.columns;
    group.update({{"measured", Json::array()}, {"published", Json::array()}});
    for (const ResultRow& row : g.measured) group["measured"].push_back(row_json(row));
    for (const ResultRow& row : g.published) group["published"].push_back(row_json(row));
    j["groups"].push_back(group);
  }
  j["notes"] = t.notes;
  return j;
}

/// Returns the colour of a row. A published row has that of the measured row of the same name, any
/// other row a colour of its own.
int colour_of(const TableGroup& g, const ResultRow& row, int number) {
  for (std::size_t m = 0; m < g.measured.size(); ++m)
    if (row.name == g.measured[m].name + ", paper") return static_cast<int>(m) + 1;
  return number + 1;
}

bool draw_table(const ReproducedTable& t, const std::filesystem::path& picture) {
  constexpr int kAcross = 2;
  const int groups = static_cast<int>(t.groups.size());
  const int across = std::min(groups, kAcross);
  const int down = (groups + kAcross - 1) / kAcross;
  std::string s = fmt::format(
      "set terminal pngcairo size {},{} font 'Sans,11' noenhanced\n"
      "set multiplot layout {},{} title {}\n"
      "set grid lc rgb '#e0e0e0'\nset border 3 lc rgb '#808080'\nset tics nomirror\n"
      "set key below samplen 3\nset logscale x 2\n"
      // Adds four colours to gnuplot's eight.
      "set linetype 9 lc rgb '#909090'\nset linetype 10 lc rgb '#8c564b'\n"
      "set linetype 11 lc rgb '#bcbd22'\nset linetype 12 lc rgb '#17becf'\nset linetype cycle 12\n"
      "set xlabel {}\nset ylabel {}\n",
      680 * across, 500 * down, down, across, gnuplot_text(t.title), gnuplot_text(t.column_label),
      gnuplot_text(t.value_label));
  if (t.log_values) s += "set logscale y\n";
  for (const TableGroup& g : t.groups) {
    const std::vector<double>& columns = t.columns_of(g);
    s += "set xtics (";
    for (std::size_t i = 0; i < columns.size(); ++i)
      s += fmt::format("{}'{:g}' {}", i ? ", " : "", columns[i], columns[i]);
    s += ")\n";
    std::string plots;
    int number = 0;
    for (const auto* rows : {&g.measured, &g.published})
      for (const ResultRow& row : *rows) {
        if (!row.drawn) continue;
        s += fmt::format("$data{} << EOD\n", number);
        for (std::size_t i = 0; i < row.values.size(); ++i)
          if (std::isfinite(row.values[i]))
            s += fmt::format("{} {} {}\n", columns[i], row.values[i],
                             row.deviations.empty() ? 0.0 : row.deviations[i]);
        s += "EOD\n";
        const bool measured = rows == &g.measured;
        const bool bars = !row.deviations.empty();
        plots += fmt::format("{}$data{} using 1:2{} with {} lw {} dt {} lc {} pt 7 ps 0.5 title {}",
                             number ? ", " : "plot ", number, bars ? ":3" : "",
                             bars ? "yerrorlines" : "linespoints", measured ? 2 : 1,
                             measured ? 1 : 2, colour_of(g, row, number), gnuplot_text(row.name));
        ++number;
      }
    s += "set title " + gnuplot_text(g.name) + "\n" + plots + "\n";
  }
  return run_gnuplot(s + "unset multiplot\n", picture);
}

}  // namespace cudp

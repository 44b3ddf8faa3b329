#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <spdlog/fmt/fmt.h>

#include "bench/reproduce/reproduction.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a value of a row as text, with its deviation.
std::string cell_text(const ResultRow& row, std::size_t i) {
  if (!std::isfinite(row.values[i])) return "-";
  const std::string value = fmt::format("{:.2f}", row.values[i]);
  // A single run has no deviation.
  if (row.deviations.empty() || row.runs == 1) return value;
  return value + fmt::format(" +-{:.2f}", row.deviations[i]);
}

/// Returns a line of the table: the name, and cells of one width.
std::string line_text(const std::string& name, std::size_t names,
                      const std::vector<std::string>& cells, std::size_t width) {
  std::string line = fmt::format("  {:<{}}", name, names);
  for (const std::string& cell : cells) line += fmt::format("  {:<{}}", cell, width);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::vector<std::string> cells_of(const ResultRow& row) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < row.values.size(); ++i) cells.push_back(cell_text(row, i));
  return cells;
}

Json row_json(const ResultRow& row) {
  Json j{{"name", row.name}, {"values", row.values}};
  if (!row.deviations.empty()) {
    j["deviations"] = row.deviations;
    j["runs"] = row.runs;
  }
  if (!row.of.empty()) j["of"] = row.of;
  if (!row.drawn) j["drawn"] = false;
  return j;
}

}  // namespace

std::string table_text(const ReproducedTable& t) {
  std::size_t names = t.column_label.size();
  std::size_t width = 0;
  const auto each_row = [&](const auto& use) {
    for (const TableGroup& g : t.groups)
      for (const auto* rows : {&g.measured, &g.published})
        for (const ResultRow& row : *rows) use(row);
  };
  each_row([&](const ResultRow& row) {
    names = std::max(names, row.name.size());
    for (const std::string& cell : cells_of(row)) width = std::max(width, cell.size());
  });
  std::string text = t.title + ", " + t.value_label + "\n";
  for (const TableGroup& g : t.groups) {
    std::vector<std::string> columns;
    for (const double c : t.columns_of(g)) columns.push_back(fmt::format("{:g}", c));
    text += "\n" + g.name + "\n" + line_text(t.column_label, names, columns, width);
    for (const auto* rows : {&g.measured, &g.published})
      for (const ResultRow& row : *rows) text += line_text(row.name, names, cells_of(row), width);
  }
  for (const std::string& note : t.notes) text += "\n" + note;
  return text + "\n";
}

Json table_json(const ReproducedTable& t) {
  Json j{{"title", t.title}, {t.column_label, t.columns}, {"values_are", t.value_label}};
  if (!t.picture_shows.empty()) j["picture_shows"] = t.picture_shows;
  if (t.log_values) j["logarithmic"] = true;
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

namespace {

std::vector<double> numbers_of(const Json& j) {
  std::vector<double> numbers;
  for (const Json& x : j)
    numbers.push_back(x.is_null() ? std::numeric_limits<double>::quiet_NaN() : x.get<double>());
  return numbers;
}

std::vector<ResultRow> rows_of(const Json& j, bool published) {
  std::vector<ResultRow> rows;
  for (const Json& row : j)
    rows.push_back({.name = row.at("name").get<std::string>(),
                    .values = numbers_of(row.at("values")),
                    .deviations = numbers_of(row.value("deviations", Json::array())),
                    .runs = row.value("runs", 0),
                    .drawn = row.value("drawn", true),
                    .published = published,
                    .of = row.value("of", "")});
  return rows;
}

}  // namespace

ReproducedTable table_from_json(const Json& j) {
  ReproducedTable t;
  t.title = j.at("title").get<std::string>();
  t.column_label = std::next(j.begin()).key();  // it stands after the title
  t.columns = numbers_of(j.at(t.column_label));
  t.value_label = j.at("values_are").get<std::string>();
  t.picture_shows = j.value("picture_shows", "");
  t.log_values = j.value("logarithmic", false);
  for (const Json& g : j.at("groups"))
    t.groups.push_back({.name = g.at("name").get<std::string>(),
                        .measured = rows_of(g.at("measured"), false),
                        .published = rows_of(g.at("published"), true),
                        .columns = numbers_of(g.value(t.column_label, Json::array()))});
  t.notes = j.at("notes").get<std::vector<std::string>>();
  return t;
}

}  // namespace cudp

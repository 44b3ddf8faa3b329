#include "runtime/sweep/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/gnuplot.hpp"
#include "runtime/base/mean.hpp"
#include "runtime/base/number_text.hpp"

namespace cudp {
namespace {

using SweepJson = nlohmann::ordered_json;

/// Returns the noisy metric of held-out rows that a table shows; null if the run has none.
const ErrorBar* held_out(const RunResult& r) {
  return r.held_out.empty() ? nullptr : &r.held_out.front();
}

std::string plain_text(double value) { return fmt::format("{:.4g}", value); }

/// Returns the text as a field of a CSV file, in quotation marks if it contains special characters.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::vector<double> values_of(const SweptCell& cell, const std::string& key) {
  std::vector<double> values;
  for (const SweptRun& run : cell.runs)
    if (run.result)
      if (const auto value = figure_of(*run.result, key); value && std::isfinite(*value))
        values.push_back(*value);
  return values;
}

std::size_t finished(const SweptCell& cell) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell.runs, [](const SweptRun& r) { return r.result.has_value(); }));
}

/// Returns the largest finite value of epsilon or delta (`member`) over the finished runs of a
/// combination of settings; nullopt if there is none.
std::optional<double> largest(const SweptCell& cell, double RunResult::*member) {
  std::optional<double> most;
  for (const SweptRun& run : cell.runs)
    if (run.result && std::isfinite(run.result.value().*member))
      most = std::fmax(most.value_or(0.0), run.result.value().*member);
  return most;
}

/// Returns how many runs a cell has, and the state of those whose results the table does not have:
/// "2 runs", "1 run, not for release", "1 of 3 runs; 1 missing, 1 not for release".
std::string runs_text(const SweptCell& cell) {
  const auto runs = [](std::size_t n) { return fmt::format("{} run{}", n, n == 1 ? "" : "s"); };
  const std::size_t all = cell.runs.size(), done = finished(cell);
  std::map<std::string, std::size_t> others;  // number of runs by status
  for (const SweptRun& run : cell.runs)
    if (!run.result) ++others[run.status];
  if (others.empty()) return runs(all);
  if (others.size() == 1 && done == 0) return runs(all) + ", " + others.begin()->first;
  std::string text = fmt::format("{} of {}", done, runs(all));
  const char* separator = "; ";
  for (const auto& [status, count] : others) {
    text += fmt::format("{}{} {}", separator, count, status);
    separator = ", ";
  }
  return text;
}

std::string optional_number(const std::optional<double>& x) { return x ? privacy::number(*x) : ""; }

}  // namespace

SweepTable released_part(SweepTable table) {
  for (SweptCell& cell : table.cells)
    for (SweptRun& run : cell.runs) {
      if (!run.result) continue;
      RunResult& r = *run.result;
      if (!r.for_release || !std::isfinite(r.epsilon)) {
        run = {.folder = run.folder, .status = "not for release", .result = std::nullopt};
        continue;
      }
      if (r.test_set != "public") {
        r.test.values.clear();
        r.majority_class.reset();
      }
      r.seconds = 0.0;
      r.examples_per_second = 0.0;
    }
  return table;
}

std::vector<SweptFigure> figures_of(const SweepTable& table) {
  std::vector<SweptFigure> all;
  const auto add = [&](SweptFigure figure) {
    if (std::ranges::find(all, figure.key, &SweptFigure::key) == all.end())
      all.push_back(std::move(figure));
  };
  for (const SweptCell& cell : table.cells)
    for (const SweptRun& run : cell.runs) {
      if (!run.result) continue;
      const RunResult& r = *run.result;
      if (!r.test.values.empty())
        for (const Metric& m : metrics(r.test.kind))
          if (m.in_result) add({m.key, m.name, m.text});
      if (const ErrorBar* const bar = held_out(r))
        add({"held_out " + bar->name, bar->name + " of held-out rows, with noise", plain_text});
    }
  return all;
}

std::optional<double> figure_of(const RunResult& r, const std::string& key) {
  if (const ErrorBar* const bar = held_out(r); bar != nullptr && key == "held_out " + bar->name)
    return bar->value;
  return r.test.of(key);
}

std::vector<std::pair<std::string, std::string>> rows_of(const SweepTable& table) {
  std::vector<std::pair<std::string, std::string>> rows;
  const std::vector<SweptFigure> figures = figures_of(table);
  for (const SweptCell& cell : table.cells) {
    std::string name;
    for (std::size_t i = 0; i < table.keys.size(); ++i)
      name += (i > 0 ? ", " : "") + table.keys[i] + " " + cell.settings[i];
    std::string text;
    if (!figures.empty()) {
      const SweptFigure& figure = figures.front();
      const std::vector<double> values = values_of(cell, figure.key);
      if (!values.empty()) {
        const MeanAndDeviation m = mean_and_deviation(values);
        text = figure.name + " " + figure.text(m.mean);
        if (values.size() > 1) text += " +- " + figure.text(m.deviation);
        text += ", ";
      }
    }
    text += runs_text(cell);
    rows.emplace_back(name.empty() ? "all runs" : name, text);
  }
  return rows;
}

std::string cells_csv(const SweepTable& table) {
  const std::vector<SweptFigure> figures = figures_of(table);
  std::string csv;
  for (const std::string& key : table.keys) csv += field(key) + ",";
  // The setting epsilon is the budget that was requested; spent_epsilon is the largest epsilon that
  // a run of the cell spent.
  csv += "runs,spent_epsilon,spent_delta";
  for (const SweptFigure& f : figures)
    csv += "," + field(f.key + "_mean") + "," + field(f.key + "_deviation");
  csv += '\n';
  for (const SweptCell& cell : table.cells) {
    for (const std::string& value : cell.settings) csv += field(value) + ",";
    csv +=
        fmt::format("{},{},{}", finished(cell), optional_number(largest(cell, &RunResult::epsilon)),
                    optional_number(largest(cell, &RunResult::delta)));
    for (const SweptFigure& f : figures) {
      const std::vector<double> values = values_of(cell, f.key);
      const MeanAndDeviation m = mean_and_deviation(values);
      csv += values.empty() ? "," : "," + privacy::number(m.mean);
      csv += values.size() < 2 ? "," : "," + privacy::number(m.deviation);
    }
    csv += '\n';
  }
  return csv;
}

std::string runs_csv(const SweepTable& table) {
  const std::vector<SweptFigure> figures = figures_of(table);
  std::string csv = "run,status";
  for (const std::string& key : table.keys) csv += "," + field(key);
  csv += ",spent_epsilon,spent_delta";
  for (const SweptFigure& f : figures) csv += "," + field(f.key);
  csv += '\n';
  for (const SweptCell& cell : table.cells)
    for (const SweptRun& run : cell.runs) {
      csv += field(run.folder) + "," + run.status;
      for (const std::string& value : cell.settings) csv += "," + field(value);
      const bool is_private = run.result && std::isfinite(run.result->epsilon);
      csv += is_private ? "," + privacy::number(run.result->epsilon) + "," +
                              privacy::number(run.result->delta)
                        : ",,";
      for (const SweptFigure& f : figures) {
        const auto value = run.result ? figure_of(*run.result, f.key) : std::nullopt;
        csv += value && std::isfinite(*value) ? "," + privacy::number(*value) : ",";
      }
      csv += '\n';
    }
  return csv;
}

SweepJson to_json(const SweepTable& table) {
  const auto or_null = [](const std::optional<double>& x) {
    return x ? SweepJson(*x) : SweepJson();
  };
  SweepJson j{{"settings", table.keys},
              {"epsilon_of_all_runs", or_null(table.epsilon)},
              {"delta_of_all_runs", or_null(table.delta)},
              {"stated_as", "as chosen on the way"},
              {"cells", SweepJson::array()}};
  const std::vector<SweptFigure> figures = figures_of(table);
  for (const SweptCell& cell : table.cells) {
    SweepJson c{{"settings", SweepJson::object()}, {"runs", SweepJson::array()}};
    for (std::size_t i = 0; i < table.keys.size(); ++i)
      c["settings"][table.keys[i]] = cell.settings[i];
    c["finished"] = finished(cell);
    c["spent_epsilon"] = or_null(largest(cell, &RunResult::epsilon));
    c["spent_delta"] = or_null(largest(cell, &RunResult::delta));
    for (const SweptFigure& f : figures) {
      const std::vector<double> values = values_of(cell, f.key);
      if (values.empty()) continue;
      const MeanAndDeviation m = mean_and_deviation(values);
      c[f.key] = {{"mean", m.mean},
                  {"deviation", values.size() > 1 ? SweepJson(m.deviation) : SweepJson()}};
    }
    for (const SweptRun& run : cell.runs) {
      SweepJson r{{"run", run.folder}, {"status", run.status}};
      for (const SweptFigure& f : figures)
        if (run.result)
          if (const auto value = figure_of(*run.result, f.key); value && std::isfinite(*value))
            r[f.key] = *value;
      c["runs"].push_back(std::move(r));
    }
    j["cells"].push_back(std::move(c));
  }
  return j;
}

namespace {

/// Size of the picture of a sweep, and gnuplot's command for its legend.
struct Legend {
  PictureSize size;
  std::string command;
};

/// Returns the legend of curves with these names: below the axes if they are few. If not, it is
/// beside the axes, in a picture as high as the legend needs, and without it if there are too many.
Legend legend_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxBelow = 6, kMaxNamed = 100;
  constexpr int kLine = 24, kLetter = 8;  // [pixels]
  if (names.size() <= kMaxBelow)
    return {.size = {}, .command = "set key outside bottom center horizontal\n"};
  if (names.size() > kMaxNamed) return {.size = {}, .command = "unset key\n"};
  std::size_t longest = 0;
  for (const std::string& name : names)
    longest = std::max(longest, std::min<std::size_t>(name.size(), 100));
  PictureSize size;
  size.height = std::max(size.height, kLine * static_cast<int>(names.size() + 6));
  size.width += kLetter * static_cast<int>(longest) / 2;
  return {.size = size, .command = "set key outside right center vertical maxcols 1\n"};
}

}  // namespace

bool draw_sweep(const SweepTable& table, const std::filesystem::path& picture, unsigned mode) {
  const std::vector<SweptFigure> figures = figures_of(table);
  if (figures.empty() || table.keys.empty()) return false;
  const SweptFigure& figure = figures.front();
  // The axis is the first setting whose values are all numbers; if there is none, the first
  // setting.
  std::size_t axis = table.keys.size();
  for (std::size_t k = 0; k < table.keys.size() && axis == table.keys.size(); ++k)
    if (std::ranges::all_of(table.cells, [&](const SweptCell& c) {
          return read_number<double>(c.settings[k]).has_value();
        }))
      axis = k;
  const bool numbers = axis < table.keys.size();
  if (!numbers) axis = 0;
  std::vector<std::string> ticks;
  std::map<std::string, std::string> series;  // points, by the values of the other settings
  std::vector<std::string> order;
  double low = INFINITY, high = 0.0;
  bool any = false, repeated = false;
  for (const SweptCell& cell : table.cells) {
    std::string name;
    for (std::size_t k = 0; k < table.keys.size(); ++k)
      if (k != axis) name += (name.empty() ? "" : ", ") + table.keys[k] + " " + cell.settings[k];
    if (!series.contains(name)) order.push_back(name);
    std::string& points = series[name];
    const std::string& value = cell.settings[axis];
    auto at = std::ranges::find(ticks, value);
    if (at == ticks.end()) at = ticks.insert(ticks.end(), value);
    const double x =
        numbers ? *read_number<double>(value) : static_cast<double>(at - ticks.begin());
    low = std::fmin(low, x);
    high = std::fmax(high, x);
    const std::vector<double> values = values_of(cell, figure.key);
    if (values.empty()) continue;
    repeated = repeated || values.size() > 1;
    const MeanAndDeviation m = mean_and_deviation(values);
    points += fmt::format("{} {} {}\n", x, m.mean, m.deviation);
    any = true;
  }
  if (!any) return false;
  const bool logarithmic = numbers && low > 0.0 && high / low > 8.0;
  std::erase_if(order, [&](const std::string& name) { return series[name].empty(); });
  const Legend legend = legend_of(order);
  std::string s = gnuplot_header(
      figure.name + (repeated ? ", mean and standard deviation of single runs" : ""), legend.size);
  s += "set xlabel " + gnuplot_text(table.keys[axis]) + "\nset ylabel " +
       gnuplot_text(figure.name) + "\n" + legend.command;
  const double margin = high > low ? 0.05 * (high - low) : 0.5;
  s += logarithmic ? fmt::format("set logscale x\nset xrange [{}:{}]\n", low / 1.2, high * 1.2)
                   : fmt::format("set xrange [{}:{}]\n", low - margin, high + margin);
  s += "set xtics (";
  for (std::size_t i = 0; i < ticks.size(); ++i)
    s += (i > 0 ? ", " : "") + gnuplot_text(ticks[i]) + " " +
         (numbers ? ticks[i] : std::to_string(i));
  s += ")\n";
  std::string plots;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i];
    s += fmt::format("$data{} << EOD\n{}EOD\n", i, series[name]);
    // A dash for each round of the colours.
    plots += fmt::format("{}$data{} using 1:2:3 with yerrorlines lt {} dt {} {}",
                         plots.empty() ? "plot " : ", ", i, i % kLineColours + 1,
                         i / kLineColours % 5 + 1,
                         name.empty() ? "notitle" : "title " + gnuplot_text(name));
  }
  return run_gnuplot(s + plots + "\n", picture, mode);
}

}  // namespace cudp

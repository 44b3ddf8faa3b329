#include "runtime/report/charts.hpp"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <variant>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"

namespace cudp {
namespace {

using page::Block;
using page::Chart;
using page::Curve;
using page::Paragraph;

/// Returns an epsilon as text, rounded up; "no finite epsilon" if it is infinite, NaN or negative.
std::string epsilon_text(double epsilon) {
  return std::isfinite(epsilon) && epsilon >= 0.0 ? short_rounded_up(epsilon) : "no finite epsilon";
}

/// Returns the part of an epsilon from a Renyi bound that is due to delta alone: the epsilon to
/// which a divergence of 0 at this Renyi order is converted (Canonne, Kamath, Steinke 2020,
/// Proposition 12).
double price_of_delta(double order, double delta) {
  return std::log1p(-1.0 / order) - (std::log(delta) + std::log(order)) / (order - 1.0);
}

/// Returns a sentence that explains why the curve of epsilon does not start near 0, if its first
/// value is more than a quarter of its last; otherwise "". price: result of price_of_delta(), if
/// the bound is a Renyi bound.
std::string why_it_starts_high(const RunFacts& f, std::optional<double> price) {
  const double first = f.rows.front().spent_by_training();
  const double last = f.rows.back().spent_by_training();
  if (!(first > 0.25 * last)) return "";
  const std::string begin =
      fmt::format("The curve starts at {} of {} ", epsilon_text(first), epsilon_text(last));
  if (price)
    return begin +
           fmt::format(
               "since epsilon is read at one fixed Renyi order, {:.4g}: there, delta alone costs "
               "{} (dashed), however little was released. What grows with the steps is the part "
               "above it.",
               f.certificate->stated.order, epsilon_text(*price));
  const bool before =
      f.certificate->stated.size_noise > 0.0 || f.certificate->json.contains("feature_release");
  return begin + "since epsilon does not grow by equal parts: the first steps cost most." +
         (before ? " What was released before them, such as a noisy row count, is in it." : "");
}

std::vector<Block> budget_chart(const RunFacts& f) {
  const MetricsRow& last = f.rows.back();
  Curve spent{.name = f.certificate->stated.holdout || f.certificate->stated.tuning
                          ? "spent by training"
                          : "spent",
              .points = {}};
  for (const MetricsRow& r : f.rows) spent.points.emplace_back(r.epoch, r.spent_by_training());
  std::optional<double> price;
  const verify::StatedNumbers& c = f.certificate->stated;
  if (c.order_fixed && c.order > 1.0 && c.delta > 0.0)
    if (const double p = price_of_delta(c.order, c.training_delta - c.failure);
        p > 0.0 && p < last.spent_by_training())
      price = p;
  const double whole = c.training_epsilon;
  Chart chart{.title = "Privacy budget by epoch",
              .x = "epoch",
              .y = "epsilon",
              .curves = {spent},
              .y_min = 0.0,
              .description = {}};
  const double from = f.rows.front().epoch, to = last.epoch;
  const auto level = [&](const char* name, double at) {
    chart.curves.push_back({.name = name, .points = {{from, at}, {to, at}}, .dashed = true});
  };
  if (std::isfinite(whole)) level("promised", whole);
  if (price) level("price of delta", *price);
  chart.description = fmt::format(
      "A line chart. Epsilon spent goes from {} at epoch {:.4g} to {} at epoch {:.4g}; {} was "
      "promised.",
      epsilon_text(f.rows.front().spent_by_training()), from,
      epsilon_text(last.spent_by_training()), to, epsilon_text(whole));
  return {chart};
}

/// Returns the curve of a metric over epochs, in percent if the metric is a fraction.
Curve curve_of(const RunFacts& f, const Metric& metric, const std::string& name) {
  const double scale = metric.text == percent_text ? 100.0 : 1.0;
  Curve c{.name = name, .points = {}};
  for (const MetricsRow& r : f.rows)
    if (const std::optional<double> value = r.test.of(metric.key))
      c.points.emplace_back(r.epoch, scale * *value);
  return c;
}

std::string axis_of(const Metric& metric) {
  return name_of_test(metric) + (metric.text == percent_text ? " (%)" : "");
}

Chart figure_chart(const RunFacts& f) {
  const PredictionKind kind = f.rows.back().test.kind;
  const Metric& metric = metric_of(kind, f.metric);
  const std::string name = name_of_test(metric);
  Chart chart{.title = name + " by epoch", .x = "epoch", .y = axis_of(metric), .curves = {}};
  chart.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(chart.title[0])));
  chart.curves.push_back(curve_of(f, metric, name));
  const std::string key = metric.key;
  const char* const baseline = key == "test_accuracy" ? "majority_baseline"
                               : key == "rmse"        ? "mean_baseline_rmse"
                                                      : nullptr;
  if (baseline != nullptr) {
    chart.curves.push_back(curve_of(
        f, metric_of(kind, baseline),
        key == "rmse" ? "baseline: always the mean" : "majority baseline: always the same class"));
    chart.curves.back().dashed = true;
  }
  const auto text = [&](const MetricsRow& r) {
    return metric.text(r.test.of(metric.key).value_or(std::nan("")));
  };
  chart.description = fmt::format(
      "A line chart. The {} goes from {} at epoch {:.4g} to {} at epoch "
      "{:.4g}.",
      name, text(f.rows.front()), f.rows.front().epoch, text(f.rows.back()), f.rows.back().epoch);
  return chart;
}

/// Returns the name of a metric. If it ends with a class's number, the schema's name of that class
/// is appended: "recall of class 1 (YES)".
std::string with_class(const std::string& figure, const RunFacts& f) {
  constexpr std::string_view kOfClass = " of class ";
  const std::size_t at = figure.rfind(kOfClass);
  if (at == std::string::npos || !f.schema) return figure;
  const char* const begin = figure.data() + at + kOfClass.size();
  const char* const end = figure.data() + figure.size();
  std::size_t index = 0;
  const auto [stop, error] = std::from_chars(begin, end, index);
  if (error != std::errc() || stop != end) return figure;
  for (const Column& column : f.schema->columns)
    if (const auto* label = std::get_if<Label>(&column.kind); label && index < label->values.size())
      if (label->values[index] != std::to_string(index))
        return figure + " (" + label->values[index] + ")";
  return figure;
}

/// Returns a table of the noisy test metrics of held-out rows, from holdout.json. Throws InputError
/// if the file has none.
std::vector<Block> holdout_figures(const ReportFiles& files, const RunFacts& f) {
  const auto j = nlohmann::json::parse(files.holdout, nullptr, false);
  if (!j.is_object() || !j.contains("bars") || !j["bars"].is_array())
    throw InputError("holdout.json: expected figures of held-out rows, found none");
  page::Table table{.caption = "Figures of held-out rows, with noise that their budget paid for",
                    .columns = {"figure", "value", "95 % interval"},
                    .rows = {}};
  for (const auto& bar : j["bars"]) {
    if (!bar.is_object()) continue;
    const auto number = [&](const char* key) {
      return bar.contains(key) && bar[key].is_number()
                 ? fmt::format("{:.4g}", bar[key].get<double>())
                 : std::string("not defined");
    };
    const std::string name =
        bar.contains("metric") && bar["metric"].is_string() ? bar["metric"].get<std::string>() : "";
    table.rows.push_back(
        {with_class(name, f), number("value"), number("low") + " to " + number("high")});
  }
  return {table};
}

}  // namespace

std::vector<Block> charts_of(const RunFacts& f) {
  std::vector<Block> blocks;
  if (f.rows.empty()) return {Paragraph{"Nothing was measured on the way."}};
  const bool curves = f.rows.size() > 1;
  if (!curves)
    blocks.push_back(Paragraph{fmt::format(
        "The run was measured once, at its end (epoch {:.4g}, step {}), so there is no curve.",
        f.rows.front().epoch, f.rows.front().step)});
  if (curves && f.is_private())
    for (Block& b : budget_chart(f)) blocks.push_back(std::move(b));
  if (curves && f.has_figures()) blocks.push_back(figure_chart(f));
  if (!f.is_private()) return blocks;
  const verify::StatedNumbers& c = f.certificate->stated;
  std::optional<double> price;
  if (c.order_fixed && c.order > 1.0 && c.delta > 0.0)
    price = price_of_delta(c.order, c.training_delta - c.failure);
  if (curves)
    if (const std::string why = why_it_starts_high(f, price); !why.empty())
      blocks.push_back(Paragraph{why});
  return blocks;
}

std::vector<Block> figures_of(const RunFacts& f, const ReportFiles& files) {
  std::vector<Block> blocks;
  if (f.has_figures()) {
    const Metrics& last = f.rows.back().test;
    page::Table table{.caption = "Figures of the test rows at the end of the run",
                      .columns = {"figure", "value"},
                      .rows = {}};
    for (std::size_t i = 0; i < last.values.size(); ++i) {
      const Metric& m = metrics(last.kind)[i];
      table.rows.push_back({m.name, m.text(last.values[i])});
    }
    blocks.push_back(table);
  }
  if (!files.holdout.empty())
    for (Block& b : holdout_figures(files, f)) blocks.push_back(std::move(b));
  return blocks;
}

std::vector<Block> compared_charts(const std::vector<NamedFacts>& runs) {
  const NamedFacts* first = nullptr;
  Chart chart;
  for (const NamedFacts& run : runs) {
    if (!run.facts.has_figures()) continue;
    if (first == nullptr) first = &run;
    const PredictionKind kind = first->facts.rows.back().test.kind;
    if (run.facts.rows.back().test.kind != kind) continue;
    const Metric& metric = metric_of(kind, first->facts.metric);
    chart.curves.push_back(curve_of(run.facts, metric, run.name));
    chart.y = axis_of(metric);
    const double last = run.facts.rows.back().test.of(metric.key).value_or(std::nan(""));
    chart.description += fmt::format("{}{} ends at {}", chart.description.empty() ? "" : "; ",
                                     run.name, metric.text(last));
  }
  if (chart.curves.size() < 2) return {};
  chart.title = chart.y + " by epoch";
  chart.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(chart.title[0])));
  chart.x = "epoch";
  chart.description = "A line chart of the runs. " + chart.description + ".";
  return {chart};
}

}  // namespace cudp

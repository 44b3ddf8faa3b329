#include "runtime/report/comparison.hpp"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/rounded_text.hpp"

namespace cudp {
namespace {

using page::Block;
using page::Paragraph;
using page::Section;

bool claims_epsilon(const RunFacts& f) {
  return f.certificate && std::isfinite(f.certificate->stated.epsilon);
}

bool is_for_release(const RunFacts& f) {
  return f.certificate && !f.has_unpaid && f.certificate->texts("not_for_release").empty();
}

/// Returns the value of a metric in the last line of metrics as text; "" if it was not measured.
std::string last_text(const RunFacts& f, const Metric& metric) {
  if (!f.has_figures()) return "";
  const std::optional<double> value = f.rows.back().test.of(metric.key);
  return value ? metric.text(*value) : "";
}

/// Returns the main metric (accuracy, RMSE, or the one that the user states) of the first run that
/// has metrics; nullptr if none has.
const Metric* common_metric(const std::vector<NamedFacts>& runs) {
  for (const NamedFacts& run : runs)
    if (run.facts.has_figures())
      return &metric_of(run.facts.rows.back().test.kind, run.facts.metric);
  return nullptr;
}

page::Table table_of_runs(const std::vector<NamedFacts>& runs, const Metric* metric) {
  page::Table table{.caption = "The runs",
                    .columns = {"run", "data set", "model and method", "epsilon", "delta"},
                    .rows = {}};
  if (metric != nullptr) table.columns.push_back(name_of_test(*metric));
  table.columns.emplace_back("for release");
  for (const NamedFacts& run : runs) {
    const RunFacts& f = run.facts;
    const bool claims = claims_epsilon(f);
    std::vector<std::string> row = {
        run.name, f.dataset, (f.model.empty() ? "" : f.model + ", ") + f.setting("method"),
        claims ? rounded_up(f.certificate->stated.epsilon) : "none: without privacy",
        claims ? short_rounded_up(f.certificate->stated.delta) : ""};
    if (metric != nullptr) row.push_back(last_text(f, *metric));
    row.emplace_back(is_for_release(f)               ? "yes"
                     : f.has_unpaid && f.certificate ? "its release/, not this page"
                                                     : "no");
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Returns a table that compares each private run with the run without privacy: the difference of
/// their values of this metric.
std::vector<Block> cost_of_privacy(const std::vector<NamedFacts>& runs, const Metric& metric) {
  const auto value_of = [&](const RunFacts& f) {
    return f.has_figures() ? f.rows.back().test.of(metric.key).value_or(std::nan(""))
                           : std::nan("");
  };
  const auto reference = std::ranges::find_if(runs, [&](const NamedFacts& run) {
    return !run.facts.certificate && std::isfinite(value_of(run.facts));
  });
  if (reference == runs.end())
    return {
        Paragraph{"None of the runs was made without privacy. cudp train --method sgd with the "
                  "same data and model makes one to compare with."}};
  const double without = value_of(reference->facts);
  const bool share = metric.text == percent_text;
  std::vector<Block> blocks;
  for (const NamedFacts& run : runs) {
    const double with = value_of(run.facts);
    if (!claims_epsilon(run.facts) || !std::isfinite(with)) continue;
    const double gap = with - without;
    const std::string by = share ? fmt::format("{:.2f} points", 100.0 * std::abs(gap))
                                 : fmt::format("{:.4g}", std::abs(gap));
    blocks.push_back(Paragraph{fmt::format(
        "{}: the {} is {} at epsilon {}, and {} without privacy ({}): {} {}.", run.name,
        name_of_test(metric), metric.text(with), rounded_up(run.facts.certificate->stated.epsilon),
        metric.text(without), reference->name, by,
        gap == 0.0  ? "apart"
        : gap < 0.0 ? "lower with privacy"
                    : "higher with privacy")});
    if (run.facts.dataset != reference->facts.dataset)
      blocks.push_back(page::Alarm{"These two runs are on data sets of different names."});
  }
  if (blocks.empty()) blocks.push_back(Paragraph{"No private run has a figure to compare."});
  return blocks;
}

Section together_of(const std::optional<SpentTogether>& spent) {
  Section s{.id = "together", .title = "What the private runs spend together", .blocks = {}};
  if (!spent) {
    s.blocks.push_back(Paragraph{
        "They cannot be added up: cudp account RUN RUN says why. (Runs of one neighbouring "
        "relation and one delta can.)"});
    return s;
  }
  s.blocks.push_back(Paragraph{
      "If the runs are on the same rows, whoever sees all of them has more chances than with one. "
      "Together, at delta " +
      short_rounded_up(spent->delta) + ":"});
  s.blocks.push_back(page::Table{
      .caption = "Epsilon of all private runs together",
      .columns = {"it holds", "epsilon"},
      .rows = {
          {"if a run may have been chosen by looking at another", rounded_up(spent->as_chosen)},
          {"if no run was chosen by looking at another", rounded_up(spent->fixed_ahead)}}});
  s.blocks.push_back(Paragraph{
      "If they are on rows of different persons, the largest epsilon of one run holds for each."});
  return s;
}

}  // namespace

page::Document comparison(const std::vector<NamedFacts>& runs,
                          const std::optional<SpentTogether>& together) {
  page::Document d{.title = "Comparison of runs",
                   .subtitle = {},
                   .not_for_release = {},
                   .reasons = {},
                   .alarms = {},
                   .sections = {}};
  for (const NamedFacts& run : runs) {
    const RunFacts& f = run.facts;
    d.subtitle += (d.subtitle.empty() ? "" : ", ") + run.name;
    if (!is_for_release(f)) d.not_for_release = "NOT FOR RELEASE: for the runs' owner alone";
    if (!f.certificate)
      d.reasons.push_back(run.name + " was trained without privacy; its figures are exact");
    else if (f.has_unpaid)
      d.reasons.push_back(run.name + ": exact figures of it were not paid for");
    else if (!is_for_release(f))
      d.reasons.push_back(run.name + " is not for release");
  }
  const Metric* const metric = common_metric(runs);
  Section in_short{.id = "in-short", .title = "In short", .blocks = {table_of_runs(runs, metric)}};
  for (Block& chart : compared_charts(runs)) in_short.blocks.push_back(std::move(chart));
  d.sections.push_back(std::move(in_short));
  if (metric != nullptr)
    d.sections.push_back(
        {.id = "cost", .title = "What privacy costs", .blocks = cost_of_privacy(runs, *metric)});
  if (std::ranges::count_if(runs, [](const NamedFacts& r) { return claims_epsilon(r.facts); }) > 1)
    d.sections.push_back(together_of(together));
  return d;
}

}  // namespace cudp

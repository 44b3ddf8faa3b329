#include "runtime/tune/score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cudp {
namespace {

/// Score of a training that has none, e.g. because it could not train: lower than all others.
constexpr double kNone = -std::numeric_limits<double>::infinity();

Score ranked(std::string name, double value, bool less_is_better) {
  const double rank = !std::isfinite(value) ? kNone : less_is_better ? -value : value;
  return {.name = std::move(name), .value = value, .rank = rank};
}

bool less_is_better(const std::string& key) {
  return key == "rmse" || key == "RMSE" || key == "test_loss" || key == "brier_score" ||
         key == "calibration_error" || key == "log_loss";
}

}  // namespace

Score score_of(const std::optional<RunResult>& result, ScoreRows rows, const std::string& metric) {
  if (!result) return {.name = "none", .value = 0.0, .rank = kNone};
  const bool is_accuracy = metric.empty() || metric == "accuracy";
  if (rows == ScoreRows::held_out) {
    const auto& bars = result->held_out;
    if (bars.empty()) return {.name = "none", .value = 0.0, .rank = kNone};
    auto bar = bars.begin();
    if (!is_accuracy) {
      const auto balanced = std::ranges::find(bars, "balanced accuracy", &ErrorBar::name);
      if (balanced != bars.end()) bar = balanced;
    }
    return ranked(bar->name, bar->value, less_is_better(bar->name));
  }
  std::string key = metric;
  std::ranges::replace(key, '-', '_');
  for (const Metric& m : metrics(result->test.kind))
    if (m.key == key || (is_accuracy && &m == &metrics(result->test.kind).front()))
      if (const auto value = result->test.of(m.key))
        return ranked(m.name, *value, less_is_better(m.key));
  const auto first = result->test.first();
  const Metric& m = metrics(result->test.kind).front();
  return ranked(m.name, first.value_or(kNone), less_is_better(m.key));
}

}  // namespace cudp

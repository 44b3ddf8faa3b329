#include "runtime/results/metrics.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

LossValue loss_of(const Predictions& p, std::size_t example) {
  return evaluate_loss(p.loss, p.logits.data() + example * static_cast<std::size_t>(p.outputs),
                       p.outputs, p.labels[example], nullptr);
}

double accuracy(const Predictions& p) {
  std::size_t correct = 0;
  for (std::size_t i = 0; i < p.size(); ++i) correct += loss_of(p, i).correct ? 1 : 0;
  return p.size() > 0 ? static_cast<double>(correct) / static_cast<double>(p.size()) : 0.0;
}

/// Summed in blocks, so that the rounding error grows with their number.
double mean_loss(const Predictions& p) {
  constexpr std::size_t kBlock = 16;
  double sum = 0.0;
  for (std::size_t at = 0; at < p.size(); at += kBlock) {
    double of_block = 0.0;
    for (std::size_t i = at; i < std::min(at + kBlock, p.size()); ++i)
      of_block += static_cast<double>(loss_of(p, i).value);
    sum += of_block;
  }
  return p.size() > 0 ? sum / static_cast<double>(p.size()) : 0.0;
}

std::string percent(double value) { return fmt::format("{:.2f} %", 100.0 * value); }
std::string four_digits(double value) { return fmt::format("{:.4f}", value); }

constexpr Metric kMetrics[] = {
    {"test_accuracy", "test accuracy", percent, accuracy, true},
    {"test_loss", "test loss", four_digits, mean_loss, false},
};

/// JSON has no word for the numbers of a training that diverged.
double number(const nlohmann::json& j) {
  return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
}

/// A metric that was not known when the row was written is NaN.
Metrics decode_values(const nlohmann::json& row) {
  Metrics m;
  if (!row.contains(kMetrics[0].key)) return m;
  for (const Metric& metric : kMetrics)
    m.values.push_back(row.contains(metric.key) ? number(row.at(metric.key))
                                                : std::numeric_limits<double>::quiet_NaN());
  return m;
}

}  // namespace

std::vector<double> losses(const Predictions& predictions) {
  std::vector<double> all;
  for (std::size_t i = 0; i < predictions.size(); ++i)
    all.push_back(static_cast<double>(loss_of(predictions, i).value));
  return all;
}

std::span<const Metric> metrics() { return kMetrics; }

std::optional<double> Metrics::accuracy() const {
  if (values.empty()) return std::nullopt;
  return values.front();
}

Metrics measure(const Predictions& predictions) {
  Metrics m;
  for (const Metric& metric : kMetrics) m.values.push_back(metric.value(predictions));
  return m;
}

std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows) {
  for (MetricsRow& r : rows) r.test = {};
  return rows;
}

std::string encode_metrics(const std::vector<MetricsRow>& rows) {
  std::string text;
  for (const MetricsRow& r : rows) {
    nlohmann::ordered_json j{{"epoch", r.epoch},
                             {"step", r.step},
                             {"epsilon", r.epsilon},
                             {"learning_rate", r.learning_rate}};
    for (std::size_t i = 0; i < r.test.values.size(); ++i) j[kMetrics[i].key] = r.test.values[i];
    text += j.dump() + "\n";
  }
  return text;
}

std::vector<MetricsRow> decode_metrics(const std::string& text) {
  std::vector<MetricsRow> rows;
  try {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const auto j = nlohmann::json::parse(text.substr(begin, end - begin));
      rows.push_back({number(j.at("epoch")), j.at("step").get<std::uint64_t>(),
                      number(j.at("epsilon")), number(j.at("learning_rate")), decode_values(j)});
      if (end == std::string::npos) break;
      begin = end + 1;
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(std::string("metrics: ") + e.what());
  }
  return rows;
}

}  // namespace cudp

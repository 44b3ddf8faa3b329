#include "runtime/results/evaluation_report.hpp"

#include <cmath>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Maximum number of classes for which tables list each class.
constexpr int kMaxShownClasses = 20;

Json number(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

/// Returns a class's name without control characters: names come from the model's file and could
/// otherwise control the terminal.
std::string shown_name(const std::vector<std::string>& names, int number) {
  std::string text = class_name(names, number);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

/// Returns a row of the confusion matrix such as "NO 9700, YES 300".
std::string confusion_row(const Evaluation& e, const std::vector<std::string>& names, int label) {
  std::string text;
  for (int c = 0; c < e.classes; ++c)
    text += fmt::format(
        "{}{} {}", c > 0 ? ", " : "", shown_name(names, c),
        e.confusion[static_cast<std::size_t>(label) * static_cast<std::size_t>(e.classes) +
                    static_cast<std::size_t>(c)]);
  return text;
}

}  // namespace

std::string class_name(const std::vector<std::string>& names, int number) {
  const auto at = static_cast<std::size_t>(number);
  return at < names.size() ? names[at] : std::to_string(number);
}

Json to_json(const Evaluation& e, const std::vector<std::string>& names) {
  Json j = Json::object();
  const PredictionKind kind = prediction_kind(e);
  for (const Metric& m : metrics(kind)) j[m.key] = number(m.value(e));
  j["test_examples"] = e.examples;
  if (kind == PredictionKind::target) {
    j["no_better_than_mean"] = !(e.target.r2 > 0.0);
    return j;
  }
  j["majority_class"] = class_name(names, e.majority_class);
  j["no_better_than_majority"] = e.accuracy <= e.majority_baseline;
  j["classes"] = Json::array();
  j["confusion"] = Json::array();
  for (int c = 0; c < e.classes; ++c) {
    const Evaluation::ClassFigures& of = e.of_class[static_cast<std::size_t>(c)];
    j["classes"].push_back({{"class", class_name(names, c)},
                            {"examples", of.examples},
                            {"predicted", of.predicted},
                            {"precision", number(of.precision)},
                            {"recall", number(of.recall)},
                            {"f1", number(of.f1)}});
    const auto row = e.confusion.begin() + std::ptrdiff_t{c} * e.classes;
    j["confusion"].push_back(std::vector<std::uint64_t>(row, row + e.classes));
  }
  if (e.reliability.empty()) return j;
  for (const auto& [key, bins] : {std::pair("reliability", &e.reliability),
                                  std::pair("reliability_by_count", &e.reliability_by_count)}) {
    j[key] = Json::array();
    for (const Evaluation::Bin& b : *bins)
      j[key].push_back({{"examples", b.examples},
                        {"confidence", number(b.confidence)},
                        {"share", number(b.share)}});
  }
  for (const ThresholdCounts& at : e.thresholds) j["thresholds"].push_back(to_json(at));
  if (e.at_threshold) j["at_threshold"] = to_json(*e.at_threshold);
  return j;
}

Json to_json(const ThresholdCounts& at) {
  return {{"threshold", at.threshold},
          {"true_positives", at.true_positives},
          {"false_positives", at.false_positives},
          {"true_negatives", at.true_negatives},
          {"false_negatives", at.false_negatives},
          {"sensitivity", number(at.sensitivity())},
          {"specificity", number(at.specificity())},
          {"ppv", number(at.ppv())},
          {"npv", number(at.npv())}};
}

std::string threshold_text(double threshold) { return privacy::number(threshold); }

std::string text_of(const ThresholdCounts& at) {
  return fmt::format("sensitivity {}, specificity {}, PPV {}, NPV {}, {} positive",
                     percent_text(at.sensitivity()), percent_text(at.specificity()),
                     percent_text(at.ppv()), percent_text(at.npv()),
                     at.true_positives + at.false_positives);
}

std::vector<std::pair<std::string, std::string>> threshold_table(
    const Evaluation& e, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (e.thresholds.empty()) return rows;
  const auto cell = [](double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.2f} %", 100.0 * value);
  };
  const auto line = [](const std::string& sensitivity, const std::string& specificity,
                       const std::string& ppv, const std::string& npv,
                       const std::string& positive) {
    return fmt::format("{:>11}  {:>11}  {:>9}  {:>9}  {:>10}", sensitivity, specificity, ppv, npv,
                       positive);
  };
  rows.emplace_back("p of " + shown_name(names, 1),
                    line("sensitivity", "specificity", "PPV", "NPV", "positive"));
  for (const ThresholdCounts& at : e.thresholds)
    rows.emplace_back(">= " + threshold_text(at.threshold),
                      line(cell(at.sensitivity()), cell(at.specificity()), cell(at.ppv()),
                           cell(at.npv()), std::to_string(at.true_positives + at.false_positives)));
  return rows;
}

std::vector<std::pair<std::string, std::string>> table_of(const Evaluation& e,
                                                          const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> rows;
  const PredictionKind kind = prediction_kind(e);
  for (const Metric& m : metrics(kind)) rows.emplace_back(m.name, m.text(m.value(e)));
  if (kind == PredictionKind::target) {
    if (const auto warning = no_better_than_mean(e.target.r2)) rows.emplace_back("", *warning);
    rows.emplace_back("test examples", std::to_string(e.examples));
    return rows;
  }
  // No warning if the user chose a threshold, which trades accuracy for sensitivity.
  if (const auto warning = no_better_than_majority(e.accuracy, e.majority_baseline,
                                                   shown_name(names, e.majority_class));
      warning && !e.at_threshold)
    rows.insert(rows.begin() + 1, {"", *warning});
  rows.emplace_back("test examples", std::to_string(e.examples));
  if (e.classes > kMaxShownClasses) return rows;
  for (int c = 0; c < e.classes; ++c) {
    const Evaluation::ClassFigures& of = e.of_class[static_cast<std::size_t>(c)];
    rows.emplace_back("class " + shown_name(names, c),
                      fmt::format("precision {}, recall {}, F1 {}", percent_text(of.precision),
                                  percent_text(of.recall), percent_text(of.f1)));
  }
  if (e.at_threshold)
    rows.emplace_back("threshold " + threshold_text(e.at_threshold->threshold),
                      text_of(*e.at_threshold));
  for (int c = 0; c < e.classes; ++c)
    rows.emplace_back("labelled " + shown_name(names, c),
                      "predicted " + confusion_row(e, names, c));
  return rows;
}

std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class) {
  if (!(accuracy <= majority_baseline)) return std::nullopt;
  return "no better than always saying " + majority_class;
}

std::optional<std::string> no_better_than_mean(double r2) {
  if (r2 > 0.0) return std::nullopt;
  return "no better than always saying the mean";
}

}  // namespace cudp

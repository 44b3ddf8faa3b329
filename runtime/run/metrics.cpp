#include "runtime/run/metrics.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace cudp {

std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows) {
  for (MetricsRow& r : rows) {
    r.test_accuracy.reset();
    r.test_loss.reset();
  }
  return rows;
}

std::string encode_metrics(const std::vector<MetricsRow>& rows) {
  std::string text;
  for (const MetricsRow& r : rows) {
    nlohmann::ordered_json j{{"epoch", r.epoch},
                             {"step", r.step},
                             {"epsilon", r.epsilon},
                             {"learning_rate", r.learning_rate}};
    if (r.test_accuracy) j["test_accuracy"] = *r.test_accuracy;
    if (r.test_loss) j["test_loss"] = *r.test_loss;
    text += j.dump() + "\n";
  }
  return text;
}

namespace {

/// JSON has no word for the numbers of a training that diverged.
double number(const nlohmann::json& j) {
  return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
}
std::optional<double> number_if_any(const nlohmann::json& j, const char* key) {
  if (!j.contains(key)) return std::nullopt;
  return number(j.at(key));
}

}  // namespace

std::vector<MetricsRow> decode_metrics(const std::string& text) {
  std::vector<MetricsRow> rows;
  try {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const auto j = nlohmann::json::parse(text.substr(begin, end - begin));
      rows.push_back({number(j.at("epoch")), j.at("step").get<std::uint64_t>(),
                      number(j.at("epsilon")), number(j.at("learning_rate")),
                      number_if_any(j, "test_accuracy"), number_if_any(j, "test_loss")});
      if (end == std::string::npos) break;
      begin = end + 1;
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(std::string("metrics: ") + e.what());
  }
  return rows;
}

}  // namespace cudp

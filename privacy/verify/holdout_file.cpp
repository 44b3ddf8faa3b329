#include "privacy/verify/holdout_file.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "privacy/text/json_text.hpp"
#include "privacy/text/number.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using privacy::number;

constexpr const char* kBarsAre =
    "bounds that hold in 95 of 100 runs for the population that the rows are drawn from: which "
    "rows were held out, and noise, are both in";

/// Implementation of check_holdout_file(): compares release/holdout.json with the certificate.
class HoldoutFile {
 public:
  HoldoutFile(const Json& json, const privacy::Certificate::Holdout& held)
      : json_(json), held_(held) {}

  std::vector<std::string> run() {
    same("share", held_.share);
    same("epsilon", held_.epsilon);
    same("delta", held_.delta);
    same("noise_std", held_.sigma);  // the sensitivity is 1
    same("releases", static_cast<double>(held_.releases));
    std::set<std::string> known = {"share",    "epsilon", "delta",   "noise_std",
                                   "releases", "bars",    "bars_are"};
    if (json_.contains("confusion")) {
      known.insert({"classes", "confusion", "threshold"});
      check_confusion();
    } else {
      known.insert("sums_over_width");
      check_sums();
    }
    for (const auto& [key, value] : json_.items())
      if (!known.contains(key)) wrong_.push_back(key + ": expected no such field, found one");
    if (json_.value("bars_are", "") != kBarsAre)
      wrong_.push_back("bars_are: expected '" + std::string(kBarsAre) + "'");
    check_bars();
    return std::move(wrong_);
  }

 private:
  void same(const char* key, double expected) {
    if (!json_.contains(key) || !json_[key].is_number() || json_[key].get<double>() != expected)
      wrong_.push_back(std::string(key) + ": expected the certificate's " + number(expected) +
                       ", found " + (json_.contains(key) ? json_[key].dump() : "none"));
  }
  /// Checks that a released value is a multiple of the noise's grid, a power of two that is at most
  /// 2^-16 of the standard deviation.
  void released_number(const std::string& where, const Json& value) {
    const double grid = std::ldexp(1.0, std::min(0, std::ilogb(held_.sigma)) - 39);
    if (!value.is_number_float() || !std::isfinite(value.get<double>()) ||
        std::remainder(value.get<double>(), grid) != 0.0)
      wrong_.push_back(where + ": expected a number on the noise's grid, found " + value.dump());
  }

  void check_confusion() {
    if (held_.releases != 1)
      wrong_.push_back("confusion: expected 1 release, the certificate has " +
                       std::to_string(held_.releases));
    const Json& rows = json_["confusion"];
    const std::size_t n = rows.is_array() ? rows.size() : 0;
    if (n < 2) wrong_.push_back("confusion: expected 2 rows or more, found " + rows.dump());
    if (!json_.contains("classes") || !json_["classes"].is_array() ||
        !(json_["classes"].empty() || json_["classes"].size() == n) ||
        !std::ranges::all_of(json_["classes"], [](const Json& c) { return c.is_string(); }))
      wrong_.emplace_back("classes: expected as many names as the confusion matrix has rows");
    for (std::size_t i = 0; i < n; ++i) {
      if (!rows[i].is_array() || rows[i].size() != n) {
        wrong_.push_back("confusion: expected a square, found " + rows[i].dump());
        continue;
      }
      for (const Json& count : rows[i]) released_number("confusion", count);
    }
  }

  void check_sums() {
    static constexpr const char* kNames[] = {"rows", "absolute_errors", "squared_errors",
                                             "fourth_powers"};
    if (held_.releases != std::size(kNames))
      wrong_.push_back("sums_over_width: expected 4 releases, the certificate has " +
                       std::to_string(held_.releases));
    if (!json_.contains("sums_over_width") || !json_["sums_over_width"].is_object() ||
        json_["sums_over_width"].size() != std::size(kNames)) {
      wrong_.emplace_back("sums_over_width: expected 4 sums, or a confusion matrix, found none");
      return;
    }
    for (const char* const name : kNames)
      released_number(name, json_["sums_over_width"].value(name, Json()));
  }

  void check_bars() {
    if (!json_.contains("bars") || !json_["bars"].is_array()) {
      wrong_.emplace_back("bars: expected a list, found none");
      return;
    }
    for (const Json& bar : json_["bars"]) {
      bool holds =
          bar.is_object() && bar.size() == 4 && bar.contains("metric") && bar["metric"].is_string();
      for (const char* const key : {"value", "low", "high"})
        holds = holds && bar.contains(key) && (bar[key].is_number() || bar[key].is_null());
      if (!holds)
        wrong_.push_back("bars: expected a metric, its value and bounds, found " + bar.dump());
    }
  }

  const Json& json_;
  const privacy::Certificate::Holdout& held_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const StatedNumbers& c) {
  const bool due = c.is_finished() && c.holdout && c.holdout->releases > 0;
  if (!text || !due) {
    if (!text && !due) return {};
    return {due ? "holdout.json: expected it, as the certificate states figures of held-out rows, "
                  "found none"
                : "holdout.json: expected none, as the certificate states no figures of held-out "
                  "rows, found one"};
  }
  const Json json = privacy::parse_json(*text);
  if (!json.is_object()) return {"holdout.json: expected an object"};
  return HoldoutFile(json, *c.holdout).run();
}

}  // namespace cudp::verify

#include "runtime/methods/outcome.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/folders.hpp"

namespace cudp {
namespace {

template <class Any, class Visit>
void for_each_comparison_field(Any& comparison, const Visit& visit) {
  visit("run", comparison.run);
  visit("dataset", comparison.dataset);
  visit("method", comparison.method);
  visit("epsilon", comparison.epsilon);
  visit("test_accuracy", comparison.test_accuracy);
}

}  // namespace

Comparison read_comparison(const std::string& run) {
  const auto release = std::filesystem::path(run) / "release";
  const std::string expected = "--compare-with: expected the folder of a finished run with privacy";
  if (const std::string tuning = tuning_of(run).string(); !tuning.empty())
    throw InputError(
        fmt::format("{}, found a training of a tuning, which releases the best one "
                    "alone: --compare-with {}",
                    expected, tuning));
  if (!std::filesystem::exists(release / "privacy.json"))
    throw InputError(fmt::format("{}, found no release/privacy.json in {}", expected, run));
  try {
    const auto certificate = nlohmann::json::parse(read_file(release / "privacy.json"));
    if (const std::string status = certificate.value("status", "finished"); status != "finished")
      throw InputError(fmt::format("{}, found one that is {} in {}", expected, status, run));
    std::string rows = read_file(release / "metrics.jsonl");
    while (rows.ends_with('\n')) rows.pop_back();
    const auto last = nlohmann::json::parse(rows.substr(rows.rfind('\n') + 1));
    if (!last.contains("test_accuracy"))
      throw InputError(fmt::format("{} and a released test accuracy, found none in {}", expected,
                                   (release / "metrics.jsonl").string()));
    return {.run = run,
            .dataset = certificate.at("dataset").get<std::string>(),
            .method = certificate.at("method").get<std::string>(),
            .epsilon = certificate.at("epsilon").get<double>(),
            .test_accuracy = last.at("test_accuracy").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    throw InputError(fmt::format("{}, found {}: {}", expected, run, e.what()));
  }
}

void to_json(nlohmann::ordered_json& json, const Comparison& comparison) {
  json = nlohmann::ordered_json::object();
  for_each_comparison_field(comparison,
                            [&](const char* key, const auto& value) { json[key] = value; });
}

void from_json(const nlohmann::ordered_json& json, Comparison& comparison) {
  for_each_comparison_field(comparison,
                            [&](const char* key, auto& value) { json.at(key).get_to(value); });
}

}  // namespace cudp

#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/certificate/certificate.hpp"
#include "runtime/methods/outcome.hpp"
#include "runtime/results/holdout_bars.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

/// Result of a finished run (metrics, epsilon, duration, ...), as it is printed and as it is stored
/// in the file private/result.json.
struct RunResult {
  std::string test_set = "public";  ///< public, private or none
  Metrics test;                     ///< test metrics; the file has those with Metric::in_result
  /// Name of the most frequent class of the test set; nullopt if there is no test set, or if the
  /// model is a regression.
  std::optional<std::string> majority_class;
  double epsilon = 0.0;  ///< epsilon of everything that the run released; infinite without privacy
  double delta = 0.0;
  /// Epsilon and delta of the training alone, without the release of noisy test metrics of held-out
  /// rows. Set only if rows were held out of the training data.
  std::optional<double> training_epsilon, training_delta;
  /// Estimates of accuracy and other metrics from the noisy test results of held-out rows; empty if
  /// no rows are held out.
  std::vector<ErrorBar> held_out;
  Outcome outcome;
  double seconds = 0.0;  ///< duration of the training [s]
  double examples_per_second = 0.0;
  std::string run_dir;
  bool for_release = true;
  std::vector<std::string> not_for_release;  ///< reasons why the run is not for release
  std::string dataset;
  std::string model;
  std::size_t parameters = 0;
  std::string backend;
};

nlohmann::ordered_json to_json(const RunResult& result);
/// Reads a run's result from JSON as to_json() writes it. Throws nlohmann::json::exception if a
/// field has a wrong type.
RunResult result_from_json(const nlohmann::ordered_json& json);

}  // namespace cudp

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

/// The result of a finished run, on stdout and in private/result.json.
struct RunResult {
  std::string test_set = "public";  ///< or none, or private
  Metrics test;  ///< on the test set; only what Metric::in_result has is kept in a file
  std::optional<std::string> majority_class;  ///< of the test set, where there is one
  double epsilon = 0.0;                       ///< of all that is released; infinite without privacy
  double delta = 0.0;
  /// Of the training alone, where rows were held out.
  std::optional<double> training_epsilon, training_delta;
  std::vector<ErrorBar> held_out;  ///< what was released of them; empty where nothing was
  Outcome outcome;
  double seconds = 0.0;  ///< of training
  double examples_per_second = 0.0;
  std::string run_dir;
  bool for_release = true;
  std::vector<std::string> not_for_release;  ///< why, in words
  std::string dataset;
  std::string model;
  std::size_t parameters = 0;
  std::string backend;
};

nlohmann::ordered_json to_json(const RunResult& result);
/// Throws nlohmann::json::exception where a field is of another type.
RunResult result_from_json(const nlohmann::ordered_json& json);

}  // namespace cudp

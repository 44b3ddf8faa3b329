#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace cudp {

/// Released result of a finished run with privacy, to compare with a run without privacy (--method
/// sgd).
struct Comparison {
  std::string run;  ///< folder of the run
  std::string dataset;
  std::string method;
  double epsilon = 0.0;
  double test_accuracy = 0.0;
};

/// Returns the dataset, method, epsilon and test accuracy of a finished run, read from the files in
/// its folder's release/. run: path of the run's folder. Throws InputError unless the run is
/// finished, has privacy and released a test accuracy.
Comparison read_comparison(const std::string& run);

void to_json(nlohmann::ordered_json& json, const Comparison& comparison);
void from_json(const nlohmann::ordered_json& json, Comparison& comparison);

/// Number of steps and noise of a finished training, which are reported together with its privacy
/// guarantee.
struct Outcome {
  std::uint64_t steps = 0;
  std::optional<double> sigma = {};  ///< noise multiplier, if there is one
  /// Number of noisy releases, for a method that makes several in a step; nullopt for others.
  std::optional<std::uint64_t> releases = {};
  std::optional<Comparison> compared_with = {};
};

}  // namespace cudp

#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace cudp {

/// Released result of a finished private run, to compare a run without privacy with.
struct Comparison {
  std::string run;  ///< folder of the run
  std::string dataset;
  std::string method;
  double epsilon = 0.0;
  double test_accuracy = 0.0;
};

/// Reads the released result from release/ in a run's folder. Throws InputError unless the run is
/// finished, has privacy and released a test accuracy.
Comparison read_comparison(const std::string& run);

void to_json(nlohmann::ordered_json& json, const Comparison& comparison);
void from_json(const nlohmann::ordered_json& json, Comparison& comparison);

/// How long a training was; reported together with its guarantee.
struct Outcome {
  std::uint64_t steps = 0;
  std::optional<double> sigma = {};  ///< noise multiplier, if there is one
  /// Number of noisy releases, for a method that makes several in a step.
  std::optional<std::uint64_t> releases = {};
  std::optional<Comparison> compared_with = {};
};

}  // namespace cudp

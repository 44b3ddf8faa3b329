#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace cudp {

/// The result that a finished run with privacy released, for a run without to be compared with.
struct Comparison {
  std::string run;  ///< folder
  std::string dataset;
  std::string method;
  double epsilon = 0.0;
  double test_accuracy = 0.0;
};

/// Reads release/ of a run's folder. Throws InputError where it is not that of a finished run with
/// privacy and a released test accuracy.
Comparison read_comparison(const std::string& run);

void to_json(nlohmann::ordered_json& json, const Comparison& comparison);
void from_json(const nlohmann::ordered_json& json, Comparison& comparison);

/// How long a method trained, which is stated beside its promise.
struct Outcome {
  std::uint64_t steps = 0;
  std::optional<double> sigma = {};            ///< noise multiplier, where there is one
  std::optional<std::uint64_t> releases = {};  ///< of a method that makes any number in a step
  std::optional<Comparison> compared_with = {};
};

}  // namespace cudp

#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/reproduce/reproduction.hpp"

namespace cudp {

/// The result of one training. Accuracies are in percent.
struct Trained {
  double last = 0.0;  ///< test accuracy of the model at the end
  double best = 0.0;  ///< the largest that was seen on the way: chosen on the test set
  double epsilon = 0.0;
  double sigma = 0.0;
  double seconds = 0.0;
};

/// Runs the trainings of a table and keeps their results, one line of JSON for each, in
/// ReproduceOptions::kept: a table that was interrupted goes on where it was. A line counts for
/// trainings of the very same settings only, defaults included.
class Trainings {
 public:
  Trainings(const ReproduceOptions& options, Reporter& reporter);

  /// Trains as `cudp train --config SETTINGS --seed SEED` does; `what` names it to the user. Throws
  /// Error when a signal interrupts it.
  Trained run(const std::string& what, const std::string& settings, std::uint64_t seed);

  /// "60 trainings, 1h 05m in all", of those asked for, whenever they were made.
  std::string effort() const;

 private:
  Trained kept_or_made(const std::string& what, const std::string& settings, std::uint64_t seed);

  const ReproduceOptions& options_;
  Reporter& reporter_;
  std::map<std::string, Trained> kept_;  ///< by the digest of the settings
  int count_ = 0;
  double seconds_ = 0.0;
};

/// Mean and deviation of runs, a column each, as a row.
ResultRow row_of(const std::string& name, const std::vector<std::vector<double>>& runs_by_column);

}  // namespace cudp

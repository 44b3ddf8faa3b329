#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/reproduce/reproduction.hpp"
#include "runtime/training/loaded_data.hpp"

namespace cudp {

/// Result of one training. Accuracies are in percent.
struct Trained {
  double last = 0.0;  ///< test accuracy of the final model
  double best = 0.0;  ///< largest test accuracy during the training: chosen on the test set
  double epsilon = 0.0;
  double sigma = 0.0;
  double seconds = 0.0;
};

/// Runs the trainings of a table. Results are stored in ReproduceOptions::results_file, one line of
/// JSON each, so that an interrupted table resumes. A stored result is used only if all settings,
/// including defaults, are the same.
class Trainings {
 public:
  Trainings(const ReproduceOptions& options, Reporter& reporter);

  /// Trains as `cudp train --config SETTINGS --seed SEED` does, or returns the stored result.
  /// `what`: name of the training for the user. Throws Error if a signal interrupts it.
  Trained run(const std::string& what, const std::string& settings, std::uint64_t seed);

  /// Returns "60 trainings, 1h 05m in all": all trainings of this table, stored ones included.
  std::string effort() const;

 private:
  Trained finished_or_trained(const std::string& what, const std::string& settings,
                              std::uint64_t seed);

  const ReproduceOptions& options_;
  Reporter& reporter_;
  std::map<std::string, Trained> finished_;  ///< key: digest of the settings
  /// Data of the last training, for those after it that read the same, and their loading_key.
  std::shared_ptr<LoadedData> loaded_;
  std::string loaded_key_;
  int count_ = 0;
  double seconds_ = 0.0;
};

/// Returns a row with the mean and the deviation of the runs of each column.
ResultRow row_of(const std::string& name, const std::vector<std::vector<double>>& runs_by_column);

}  // namespace cudp

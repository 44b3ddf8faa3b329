#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"

namespace cudp {

/// Public value of the number of training examples: exact, or released with noise. Everything that
/// needs a size uses it; only loops over the examples themselves use the real number.
struct TrainingSize {
  double value = 0.0;  ///< N, or a noisy whole number >= 1
  double noise = 0.0;  ///< standard deviation; 0 if N is public
  /// Maximum number of examples by which neighbours differ, those of one unit:
  /// DataSplit::unit_rows.
  std::uint64_t unit_rows = 1;

  bool is_public() const { return noise == 0.0; }
  /// Returns the number of steps in an epoch: N / batch, rounded, at least 1.
  std::uint64_t steps_per_epoch(std::int64_t batch) const;
  /// Returns an upper bound on the real number, also after a group of units is added. If N is
  /// private, it fails with probability at most `failure`, in (0, 1).
  double max_examples(double failure) const;
};

/// Returns the noise of a released number of examples for this budget, at least 1/16, if a unit has
/// up to `unit_rows` of them and the method's proof treats the number as one more release.
double size_noise_for(double epsilon, double delta, std::uint64_t unit_rows);

/// Returns the noise of the released number of examples; 0 if the number is public. It is a
/// function of public settings. batch_follows: the batch is chosen once the number is known, and is
/// as coarse as that. Throws BudgetError if the number would be too noisy to use.
double size_noise(const DataSplit& data, const TrainConfig& config, bool batch_follows = false);

/// Returns N if noise is 0. Otherwise releases N plus Gaussian noise through the gate, rounded to a
/// whole number of at least 1. This is a release of the Gaussian mechanism with noise multiplier
/// `noise`, and must be charged.
TrainingSize training_size(const DataSplit& data, double noise, Gate& gate);

}  // namespace cudp

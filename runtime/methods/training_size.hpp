#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"

namespace cudp {

/// The number of training examples as far as a run may know it. Everything that needs a size takes
/// it from here; only loops over the examples themselves see the real one.
struct TrainingSize {
  double value = 0.0;  ///< N, or a noisy whole number >= 1
  double noise = 0.0;  ///< standard deviation, 0 where N is public
  /// DataSplit::unit_rows: neighbours differ by up to so many examples, those of one unit.
  std::uint64_t unit_rows = 1;

  bool is_public() const { return noise == 0.0; }
  /// Steps that make an epoch: N / batch, rounded, at least 1.
  std::uint64_t steps_per_epoch(std::int64_t batch) const;
  /// An upper bound on the real number, also with a group of units added; where N is private it
  /// fails with probability at most `failure`, in (0, 1).
  double max_examples(double failure) const;
};

/// Noise of a released number of examples for this budget, at least 1/16, where a unit has up to
/// `unit_rows` of them, and the method's proof takes it as one release more.
double size_noise_for(double epsilon, double delta, std::uint64_t unit_rows);

/// Noise of the released number of examples; 0 where the data set's is public. A
/// function of public settings alone. batch_follows: the batch is chosen once the number is known,
/// and is as coarse as that. Throws BudgetError where the number would be of no use.
double size_noise(const DataSplit& data, const TrainConfig& config, bool batch_follows = false);

/// N where noise is 0; else N plus Gaussian noise by the gate, rounded to a whole number of at
/// least 1: a release of the Gaussian mechanism of noise multiplier `noise`, which must be charged.
TrainingSize training_size(const DataSplit& data, double noise, Gate& gate);

}  // namespace cudp

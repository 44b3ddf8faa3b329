#pragma once
#include <cstdint>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"

namespace cudp {

/// Public number of training examples: the exact number, or a noisy one that was released. All code
/// that needs the number uses this one. Only loops over the examples use the true number.
struct TrainingSize {
  double value = 0.0;  ///< number of examples, or a noisy whole number >= 1 if it is private
  double noise = 0.0;  ///< standard deviation of the noise in `value`; 0 if the number is public
  /// Maximum number of examples of one unit of privacy. Neighbouring data sets differ by one unit.
  std::uint64_t unit_rows = 1;

  bool is_public() const { return noise == 0.0; }
  /// Returns the number of steps in an epoch: `value` / batch, rounded, at least 1.
  std::uint64_t steps_per_epoch(std::int64_t batch) const;
  /// Returns an upper bound on the true number of examples, which holds also after a group of units
  /// of privacy is added. If the number is private, the bound fails with probability at most
  /// `failure`, in (0, 1).
  double max_examples(double failure) const;
};

/// Returns the standard deviation of the noise with which a private number of examples is released,
/// at least 1/16. Used if the method's own privacy proof covers this release, so that no separate
/// part of the budget is reserved for it. unit_rows: maximum number of examples of one unit of
/// privacy.
double size_noise_for(double epsilon, double delta, std::uint64_t unit_rows);

/// Returns the standard deviation of the noise on the released number of examples; 0 if the number
/// is public. Depends on public settings only. batch_follows: whether the batch size is chosen
/// after the number was released; a less accurate number then suffices. Throws BudgetError if the
/// number would be too noisy to use.
double size_noise(const DataSplit& data, const TrainConfig& config, bool batch_follows = false);

/// Returns the number N of examples as it may be used publicly: N itself if noise is 0; otherwise
/// releases N plus Gaussian noise of this standard deviation, added by `gate`, rounded to a whole
/// number of at least 1. That release must have been charged as a Gaussian mechanism with noise
/// multiplier `noise`.
TrainingSize training_size(const DataSplit& data, double noise, Gate& gate);

}  // namespace cudp

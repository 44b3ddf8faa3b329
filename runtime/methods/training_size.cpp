#include "runtime/methods/training_size.hpp"

#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/registry.hpp"

namespace cudp {
namespace {

/// Minimum standard deviation of the noise on the number of examples. Less noise would make no
/// difference, because the released number is rounded to a whole one. The minimum also keeps the
/// noisy number, in grid steps, within 63 bits.
constexpr double kMinNoise = 0x1p-4;
/// Maximum standard deviation of the noise, relative to the batch size. With more noise the number
/// cannot be used to compute a sampling rate.
constexpr double kMaxNoiseOfBatch = 100.0;

}  // namespace

std::uint64_t TrainingSize::steps_per_epoch(std::int64_t batch) const {
  const double steps = std::round(value / static_cast<double>(batch));
  return steps >= 1.0 ? static_cast<std::uint64_t>(steps) : 1;
}

/// Returns an upper bound on the true number of examples, after a group of kLargestGroup units of
/// privacy may have been added. If the number is private, the bound is computed from the noisy
/// number and a margin, and holds with probability 1 - failure: noise of standard deviation s is
/// below -z s with probability at most exp(-z^2 / 2). The margin also covers rounding, which
/// changes the noisy number by at most 1/2; raising it to at least 1 only increases the bound.
double TrainingSize::max_examples(double failure) const {
  const double margin = is_public() ? 0.0 : 1.0 + noise * std::sqrt(-2.0 * std::log(failure));
  return value + margin + static_cast<double>(kLargestGroup * unit_rows);
}

/// Returns the standard deviation of the noise on the number of examples: s = 10 u
/// sqrt(ln(1/delta)) / epsilon, at least kMinNoise, where u (unit_rows) is the largest change of
/// the number by one unit of privacy. It is chosen so that the release costs about 1/50 of the
/// budget: (epsilon, delta) allows zCDP with rho of about epsilon^2 / (4 ln(1/delta)), and the
/// release has rho = u^2 / (2 s^2) = epsilon^2 / (200 ln(1/delta)).
double size_noise_for(double epsilon, double delta, std::uint64_t unit_rows) {
  return std::fmax(kMinNoise,
                   10.0 * static_cast<double>(unit_rows) * std::sqrt(-std::log(delta)) / epsilon);
}

double size_noise(const DataSplit& data, const TrainConfig& config, bool batch_follows) {
  if (data.size_is_public) return 0.0;
  const std::optional<privacy::CountSplit> split = count_split(config, data);
  const double noise =
      split ? split->sigma : size_noise_for(*config.epsilon, *config.delta, data.unit_rows);
  if (batch_follows || noise <= kMaxNoiseOfBatch * static_cast<double>(config.batch)) return noise;
  const bool has_batch = takes(method_entry(config.method), "batch");
  throw BudgetError(fmt::format(
      "with this budget the number of training examples is known only to within +-{:.3g}, too "
      "coarse {}; raise --epsilon{}{}",
      noise, has_batch ? fmt::format("for batches of {}", config.batch) : "to train with",
      has_batch ? fmt::format(", type --batch {:.0f} or more", std::ceil(noise / kMaxNoiseOfBatch))
                : "",
      config.holdout ? "" : ", or pass --size-is-public if the number is public"));
}

TrainingSize training_size(const DataSplit& data, double noise, Gate& gate) {
  const auto n = static_cast<double>(data.train.whole_size());
  if (noise == 0.0) return {n, 0.0, data.unit_rows};
  // The grid is at most 1: the number of examples is whole, and so a multiple of every power of two
  // up to 1.
  const double grid = noise_grid(noise, 1.0);
  const double noisy = gate.release({.name = "size of the training set",
                                     .purpose = Stream::dataset_size,
                                     .step = 0,
                                     .grid = grid,
                                     .noise_std = noise,
                                     .sensitivity = 1.0,
                                     .charge = {privacy::Gaussian{noise}, {}}},
                                    units_of(n, grid));
  return {std::fmax(1.0, std::round(noisy)), noise, data.unit_rows};
}

}  // namespace cudp

#pragma once
#include <cstdint>

namespace cudp::privacy {

/// The share of epsilon, and of delta, that pays for a noisy number of examples.
inline constexpr double kCountEpsilonShare = 0.04;
inline constexpr double kCountDeltaShare = 0.1;
/// The least noise of that number, which is published as a whole one: less would not show in it.
inline constexpr double kMinCountNoise = 0x1p-4;

/// A budget in two parts that are fixed ahead: one for a noisy number of examples, which is
/// released first, the other for a training that is planned by looking at that number. For adding
/// or removing one unit of privacy, of up to `group` examples.
///
/// The number n + N(0, sigma^2) is (count_epsilon, count_delta)-DP by the exact bound of the
/// Gaussian mechanism (rdp/gaussian.hpp). All that is released after it is, for every value of it,
/// (training_epsilon, training_delta)-DP. Then both together are (epsilon, delta)-DP: basic
/// composition, which allows the second to be chosen by looking at the first (proof in README.md).
struct CountSplit {
  double sigma = 0.0;  ///< noise of the count, in examples
  double epsilon = 0.0, delta = 0.0;
  double count_epsilon = 0.0, count_delta = 0.0;
  double training_epsilon = 0.0, training_delta = 0.0;
  std::uint64_t group = 1;
  bool operator==(const CountSplit&) const = default;
};

/// The split of (epsilon, delta), from these three numbers alone. Throws std::invalid_argument for
/// numbers out of range, std::domain_error where no noise is enough for the count.
CountSplit split_for_count(double epsilon, double delta, std::uint64_t group);

/// Throws std::invalid_argument, with the value, unless the fields are in their ranges, the parts
/// add up to no more than the whole, and the count's noise is enough for its part.
void check(const CountSplit& split);

}  // namespace cudp::privacy

#pragma once
#include <cstdint>

namespace cudp::privacy {

/// Fractions of a budget's epsilon and delta that are spent on releasing the noisy number of
/// examples, if that number is private.
inline constexpr double kCountEpsilonShare = 0.04;
inline constexpr double kCountDeltaShare = 0.1;
/// Smallest standard deviation of the noise on the released number of examples, which is rounded to
/// an integer: less noise would make no difference.
inline constexpr double kMinCountNoise = 0x1p-4;

/// A privacy budget divided into two parts, which are fixed in advance. One is for a noisy number
/// of examples, which is released first. The other is for a training that is planned with that
/// number. Neighbours differ by one unit of privacy, of up to `group` examples.
///
/// The number n + N(0, sigma^2) is (count_epsilon, count_delta)-DP by the exact bound of the
/// Gaussian mechanism (rdp/gaussian.hpp). Everything released after it is, for every value of the
/// number, (training_epsilon, training_delta)-DP. Both together are then (epsilon, delta)-DP by
/// basic composition, which allows the second part to depend on the result of the first (proof in
/// privacy/README.md).
struct CountSplit {
  double sigma = 0.0;  ///< standard deviation of the noise on the number of examples
  double epsilon = 0.0, delta = 0.0;
  double count_epsilon = 0.0, count_delta = 0.0;
  double training_epsilon = 0.0, training_delta = 0.0;
  std::uint64_t group = 1;
  bool operator==(const CountSplit&) const = default;
};

/// Returns how (epsilon, delta) is divided between the noisy number of examples and the training;
/// the division depends on the three arguments alone. group: maximum number of examples of a unit
/// of privacy. Throws std::invalid_argument if an argument is out of range, std::domain_error if no
/// noise on the number is enough for its part.
CountSplit split_for_count(double epsilon, double delta, std::uint64_t group);

/// Returns how (epsilon, delta) is divided for a training that is a part of a larger mechanism,
/// such as a selection among trainings. The larger mechanism has the budget `larger`, and released
/// the noisy number of examples that the training uses. The number takes the same epsilon and delta
/// as in `larger`; the training has the rest. Throws std::invalid_argument if there is no rest.
CountSplit split_with_count_of(const CountSplit& larger, double epsilon, double delta);

/// Throws std::invalid_argument, with the wrong value, unless the fields are in their ranges, the
/// two parts add up to no more than the whole budget, and sigma is enough noise for the number's
/// part.
void check(const CountSplit& split);

}  // namespace cudp::privacy

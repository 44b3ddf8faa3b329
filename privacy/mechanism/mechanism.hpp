#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace cudp::privacy {

// Mechanisms of one release. sigma is always the noise multiplier: the standard deviation of the
// noise divided by the largest change of the sum by one example (the clipping norm).

/// Mechanism: a sum over the whole data set plus Gaussian noise. Here and in the other mechanisms,
/// one example changes a sum by at most 1 (L2 norm), and sigma is the noise's standard deviation.
struct Gaussian {
  double sigma = 0.0;  ///< finite, > 0
  bool operator==(const Gaussian&) const = default;
};

/// Mechanism: a sum over a Poisson sample plus Gaussian noise. Each example is in the batch
/// independently with probability q. One example changes the sum by at most 1.
struct PoissonGaussian {
  double q = 0.0;      ///< in [0, 1]
  double sigma = 0.0;  ///< finite, > 0
  bool operator==(const PoissonGaussian&) const = default;
};

/// Mechanism: a sum over a batch of exactly `batch` examples, drawn without replacement, plus
/// Gaussian noise. One example in the batch contributes a vector of norm at most 1.
struct FixedSizeGaussian {
  std::uint64_t n = 0;      ///< examples in the smaller of the two neighbours, >= batch; <= 2^53
  std::uint64_t batch = 0;  ///< > 0
  double sigma = 0.0;       ///< finite, > 0
  bool operator==(const FixedSizeGaussian&) const = default;
};

/// Mechanism: a sum over a Poisson batch plus Gaussian noise. If the batch is larger than
/// max_batch, a random subset of that size is used. One example contributes a vector of norm at
/// most 1.
struct TruncatedPoissonGaussian {
  std::uint64_t n = 0;          ///< examples in the larger of the two neighbours, > 0; <= 2^53
  double q = 0.0;               ///< in [0, 1]
  std::uint64_t max_batch = 0;  ///< > 0
  double sigma = 0.0;           ///< finite, > 0
  bool operator==(const TruncatedPoissonGaussian&) const = default;
};

/// Mechanism: an epoch of random allocation. Each example is in exactly one of the epoch's `steps`
/// batches, chosen uniformly and afresh for each epoch, and the sum over every batch is released
/// with Gaussian noise. One release is one whole epoch.
struct AllocatedGaussian {
  std::uint64_t steps = 0;  ///< steps of the epoch, 1 to 2^32; 1 is Gaussian
  double sigma = 0.0;       ///< noise of every step; finite, > 0
  bool operator==(const AllocatedGaussian&) const = default;
};

/// Mechanism whose output is dominated by a mixture of Gaussians: on one data set it is N(0,
/// sigma^2); on the other it is N(c, sigma^2), where c is sensitivities[i] with probability
/// probabilities[i]. For vectors, c bounds the L2 norm of the difference between the two data sets'
/// values.
struct GaussianMixture {
  std::vector<double> sensitivities;  ///< >= 0, finite
  /// Probability of each sensitivity, >= 0. Their sum must be within 1e-9 of 1; all are divided by
  /// it.
  std::vector<double> probabilities;
  double sigma = 0.0;  ///< finite, > 0
  bool operator==(const GaussianMixture&) const = default;
};

/// Mechanism: Laplace noise of this scale on a number that changes by at most 1 with one example.
struct Laplace {
  double scale = 0.0;  ///< finite, > 0
  bool operator==(const Laplace&) const = default;
};

/// Mechanism: Laplace noise of this scale on a number computed from a Poisson sample, which
/// contains each example with probability q. One example in the sample changes the number by at
/// most 1.
struct PoissonLaplace {
  double q = 0.0;      ///< in [0, 1]
  double scale = 0.0;  ///< finite, > 0
  bool operator==(const PoissonLaplace&) const = default;
};

/// Mechanism: a selection with bounded range, such as the exponential mechanism, or
/// report-noisy-max with Gumbel noise. For each pair of neighbours, its privacy losses lie in an
/// interval of length epsilon at some position.
struct BoundedRange {
  double epsilon = 0.0;  ///< finite, >= 0
  bool operator==(const BoundedRange&) const = default;
};

/// Mechanism of which only an (epsilon, delta) guarantee is known.
struct ApproximateDp {
  double epsilon = 0.0;  ///< finite, >= 0
  double delta = 0.0;    ///< in [0, 1)
  bool operator==(const ApproximateDp&) const = default;
};

using Mechanism = std::variant<Gaussian, PoissonGaussian, FixedSizeGaussian,
                               TruncatedPoissonGaussian, AllocatedGaussian, GaussianMixture,
                               Laplace, PoissonLaplace, BoundedRange, ApproximateDp>;

/// `count` releases (noisy outputs) of one mechanism.
struct Release {
  Mechanism mechanism;
  std::uint64_t count = 0;
  bool operator==(const Release&) const = default;
};

/// Returns the mechanism of a sum over a Poisson sample of rate q plus Gaussian noise: the plain
/// Gaussian if q is 1. Throws std::invalid_argument, with the value, unless q and sigma are in
/// their ranges.
Mechanism sampled_gaussian_mechanism(double q, double sigma);

/// How a neighbouring data set differs from the first one: it has additional examples (`add`), it
/// lacks examples (`remove`), or it has equally many and some of them are different (`replace`).
enum class Change : std::uint8_t { add, remove, replace };

/// Relation that defines which data sets are neighbours.
enum class NeighbouringRelation : std::uint8_t {
  add,            ///< the second data set has one example more than the first
  remove,         ///< the second data set has one example fewer than the first
  add_or_remove,  ///< either of these two
  replace_one,    ///< both have equally many examples, and one of them is different
};
std::string_view name(NeighbouringRelation relation);

/// Returns the changes between neighbouring data sets that a relation allows. A bound that holds
/// for each of them holds for the relation.
std::span<const Change> changes_of(NeighbouringRelation relation);

/// Largest `group`, number of examples by which neighbours differ, that an accountant, a filter or
/// a data set's schema accepts.
inline constexpr std::uint64_t kMaxGroup = 1000;

/// Throws std::invalid_argument, with the value, unless group is 1 to kMaxGroup.
void check_group(std::uint64_t group);

/// The neighbouring data sets for which a bound holds: they differ by `group` changes of the kind
/// `relation` at once; group >= 1.
struct Neighbours {
  NeighbouringRelation relation = NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;
  bool operator==(const Neighbours&) const = default;
};

/// Returns the mechanism's name in text files, e.g. "poisson-gaussian".
std::string_view name(const Mechanism& mechanism);

/// These two functions throw std::invalid_argument, with the wrong value, unless every field of the
/// mechanism is in its range.
void check(const Mechanism& mechanism);
void check(const Release& release);

/// Returns whether the release reveals nothing about any example: its sampling rate q is 0, its
/// count is 0, or its epsilon and delta are 0.
bool releases_nothing(const Release& release);

}  // namespace cudp::privacy

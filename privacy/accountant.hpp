#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

/// Input of an accountant: all releases (noisy outputs), and the definition of neighbouring data
/// sets (the relation between them, and the number of examples by which they differ).
struct Composition {
  std::vector<Release> releases = {};
  NeighbouringRelation relation = NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;  ///< number of examples by which neighbours differ; 1 to kMaxGroup
};

/// Options of an Accountant: the kind of its bound (from privacy loss distributions, from Renyi
/// divergences, or the best), and its accuracy.
struct AccountantOptions {
  AccountantKind kind = AccountantKind::best;
  /// Spacing of the grid to whose multiples privacy losses are rounded [nats], in [0, 1]. 0 means
  /// 1e-4 if that raises epsilon by less than 2e-4 of its value, otherwise an automatic choice. If
  /// the spacing is so small that the computation takes long, the accountant uses 2, 4, ... times
  /// the spacing instead: as much as the memory limit requires, and more as long as that raises
  /// epsilon by only about 1e-4 of its value. PrivacyBound::interval is the spacing that was used.
  double interval = 0.0;
  /// Factor by which the discretisation error may grow, in [1, 1e4], for a coarser, faster bound.
  /// Above 1, lower bounds are not computed: they are 0.
  double coarseness = 1.0;
  std::vector<double> orders = {};  ///< Renyi orders > 1 to choose from; empty: all orders
  /// Largest number of different releases that are composed exactly. If there are more, similar
  /// ones are grouped. In the upper bound on epsilon each release counts with the least noise and
  /// the highest sampling rate of its group; in the lower bound, with the most noise and the lowest
  /// rate.
  std::size_t max_distinct_releases = 256;
  /// Number of points, 16 to 8000, of the table that bounds an epoch of random allocation, in which
  /// each example is in one random step (AllocatedGaussian). 0 means 1,000, doubled until epsilon
  /// and epsilon_lower differ by less than 2e-4 of epsilon, or 8,000. If a number is given,
  /// epsilon_lower is computed without such epochs, which halves the time.
  std::size_t allocation_points = 0;
};

/// Bounds the epsilon or the delta of a composition of releases. Results that several calls need
/// are kept between the calls.
///
/// Sources: privacy loss distributions: Koskela, Jalko, Honkela 2020 (arXiv:1906.03049), and the
/// papers that pld/ names; the Renyi bound: rdp/curve.hpp; dominating pairs, also for groups of
/// examples: rdp/dominating_pair.hpp.
///
/// Throws std::invalid_argument if an argument is out of range, and std::domain_error if no theorem
/// covers one of the releases, the group size or the neighbouring relation, or no bound can be
/// computed. Bounds are never approximate, infinite or NaN.
class Accountant {
 public:
  explicit Accountant(Composition composition, AccountantOptions options = {});
  ~Accountant();
  Accountant(const Accountant&) = delete;
  Accountant& operator=(const Accountant&) = delete;
  Accountant(Accountant&&) noexcept;
  Accountant& operator=(Accountant&&) noexcept;

  /// Returns bounds on the composition's epsilon at this delta, in (0, 1): the upper bound that
  /// holds, and a lower bound if the accountant has one.
  PrivacyBound epsilon(double delta);
  /// Returns bounds on the composition's delta at this epsilon, finite and >= 0: the upper bound
  /// that holds, and a lower bound if the accountant has one.
  PrivacyBound delta(double epsilon);
  /// Returns bounds on epsilon at several deltas, in their order. Faster than single calls, because
  /// close values share one discretised loss distribution.
  std::vector<PrivacyBound> epsilons(std::span<const double> deltas);
  /// Returns bounds on delta at several epsilons, in their order. Faster than single calls.
  std::vector<PrivacyBound> deltas(std::span<const double> epsilons);
  /// Returns upper bounds on delta at each of these epsilons: the privacy profile. Faster than
  /// deltas() for hundreds of epsilons, but the bounds are slightly larger, and there are no lower
  /// bounds. least: smallest delta of interest; bounds on smaller deltas may be loose.
  std::vector<PrivacyBound> profile(std::span<const double> epsilons, double least);

  /// Returns the composition that the accountant bounds, without those releases that reveal nothing
  /// about any example, e.g. with sampling rate 0.
  const Composition& composition() const;
  const AccountantOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns epsilon at delta for each group size 1, 2, ..., `largest`: neighbouring data sets differ
/// by a whole group of examples (Ganesh 2024, arXiv:2401.10294). Ignores composition.group.
std::vector<PrivacyBound> group_epsilons(const Composition& composition, std::uint64_t largest,
                                         double delta, const AccountantOptions& options = {});
/// Returns epsilon at delta for neighbouring data sets that differ by a group of examples, for each
/// of these group sizes. Ignores composition.group.
std::vector<PrivacyBound> group_epsilons(const Composition& composition,
                                         std::span<const std::uint64_t> sizes, double delta,
                                         const AccountantOptions& options = {});

/// Returns an upper bound on epsilon at delta for groups of k examples, which follows from the
/// bounds for one example. If a release is (e, d)-DP for one example, it is (k e, d (e^(k e) - 1) /
/// (e^e - 1))-DP for k examples (Vadhan 2017, "The Complexity of Differential Privacy", Lemma 2.2).
/// The result is the smallest k e for which that delta is at most `delta`; nullopt if it exceeds
/// the range of double. composition: the releases.
std::optional<double> vadhan_epsilon(const Composition& composition, std::uint64_t k, double delta,
                                     const AccountantOptions& options = {});

}  // namespace cudp::privacy

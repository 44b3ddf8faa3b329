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

/// Releases, and the neighbours for which their privacy loss is to be bounded.
struct Composition {
  std::vector<Release> releases = {};
  NeighbouringRelation relation = NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;  ///< how many examples the neighbours differ by; at most kMaxGroup
};

/// Which bound, and how closely.
struct AccountantOptions {
  AccountantKind kind = AccountantKind::best;
  /// Spacing of the privacy losses' grid, in [0, 1]; 0 takes 1e-4 where that adds less than 2e-4 to
  /// epsilon, and chooses otherwise. It is doubled where that costs less than 1e-4 of epsilon, or
  /// the memory demands it; PrivacyBound::interval says what it was.
  double interval = 0.0;
  /// In [1, 1e4], for a coarser, faster bound: how many times more the discretisation may add.
  double coarseness = 1.0;
  std::vector<double> orders = {};  ///< Renyi orders > 1; empty: the best of all is searched
  /// Most different releases that are composed as they are. Of more, similar ones are grouped, each
  /// as the least noisy and most sampled of its group; epsilon_lower takes the most noisy.
  std::size_t max_distinct_releases = 256;
};

/// Bounds the privacy of one composition; what is costly is kept between the questions.
///
/// Sources: privacy loss distributions: Koskela, Jalko, Honkela 2020 (arXiv:1906.03049), and what
/// pld/ names; the Renyi bound: rdp/curve.hpp; dominating pairs and groups:
/// rdp/dominating_pair.hpp.
///
/// Throws std::invalid_argument for what is out of range, and std::domain_error where the theory
/// has no bound for such a release, group or relation, or none can be computed. Bounds are never
/// approximate, infinite or NaN.
class Accountant {
 public:
  explicit Accountant(Composition composition, AccountantOptions options = {});
  ~Accountant();
  Accountant(const Accountant&) = delete;
  Accountant& operator=(const Accountant&) = delete;
  Accountant(Accountant&&) noexcept;
  Accountant& operator=(Accountant&&) noexcept;

  /// delta in (0, 1).
  PrivacyBound epsilon(double delta);
  /// epsilon >= 0, finite.
  PrivacyBound delta(double epsilon);
  /// A curve; as the above, but that one grid serves neighbouring points.
  std::vector<PrivacyBound> epsilons(std::span<const double> deltas);
  std::vector<PrivacyBound> deltas(std::span<const double> epsilons);

  /// Without the releases that release nothing.
  const Composition& composition() const;
  const AccountantOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Epsilon of groups of 1, 2, ... largest, or of those listed, in place of the composition's own
/// (Ganesh 2024, arXiv:2401.10294).
std::vector<PrivacyBound> group_epsilons(const Composition& composition, std::uint64_t largest,
                                         double delta, const AccountantOptions& options = {});
std::vector<PrivacyBound> group_epsilons(const Composition& composition,
                                         std::span<const std::uint64_t> sizes, double delta,
                                         const AccountantOptions& options = {});

/// Epsilon of a group of k that follows from the bound for one example alone: the least k epsilon_1
/// with delta_1(epsilon_1) (e^(k epsilon_1) - 1) / (e^epsilon_1 - 1) <= delta; nothing where that
/// exists only past the numbers' range. Source: Vadhan 2017, "The Complexity of Differential
/// Privacy", Lemma 2.2.
std::optional<double> vadhan_epsilon(const Composition& composition, std::uint64_t k, double delta,
                                     const AccountantOptions& options = {});

}  // namespace cudp::privacy

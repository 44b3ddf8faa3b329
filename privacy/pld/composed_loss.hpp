#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "privacy/mechanism/privacy_bound.hpp"
#include "privacy/pld/discrete_pld.hpp"
#include "privacy/pld/lattice_sum.hpp"

namespace cudp::privacy::pld {

struct Options {
  /// The interval to discretise composed losses with; 0 takes 1e-4 where that is fine enough and
  /// chooses otherwise. It is doubled where that costs next to nothing, or where the memory demands
  /// it.
  double interval = 0.0;
  /// How many times more than usual the atoms and the lattice may add to epsilon.
  double coarseness = 1.0;
  /// The longest transform; about 120 bytes an element.
  std::size_t longest = std::size_t{1} << 20;
};

/// `count` releases of which two losses are known: one that dominates each of them, and one that
/// each of them dominates. They are the same but for releases that were grouped.
struct DistinctLoss {
  PrivacyLoss above, below;
  bool same = true;
  std::uint64_t count = 0;
};

/// The privacy loss of independent releases in one direction.
class ComposedLoss {
 public:
  ComposedLoss(std::vector<DistinctLoss> losses, Options options);
  ~ComposedLoss();
  ComposedLoss(const ComposedLoss&) = delete;
  ComposedLoss& operator=(const ComposedLoss&) = delete;
  ComposedLoss(ComposedLoss&&) noexcept;
  ComposedLoss& operator=(ComposedLoss&&) noexcept;

  /// Smallest epsilon >= 0 with delta(epsilon) <= delta, and epsilon_lower. +infinity where none
  /// can be shown, epsilon_lower then 0.
  PrivacyBound epsilon(double delta);
  /// Smallest delta for epsilon >= 0: at most 1, and delta_lower, at least 0.
  PrivacyBound delta(double epsilon);

 private:
  struct Term;
  struct View;

  Moments total_moments(double tilt) const;
  double tilt_for_delta(double delta);
  double tilt_for_epsilon(double epsilon, double& delta);
  template <class Solve>
  double settle_tilt(double negligible, const Solve& solve);
  const View& view(double tilt, double negligible);
  void forget_views(std::size_t max_views);
  std::unique_ptr<View> look(double tilt, double negligible);
  double negligible_for(double delta) const;
  double choose_interval(std::span<const DiscretePld> fine_plds, double tilt, double span) const;

  std::vector<Term> terms_;
  Options options_;
  std::vector<std::unique_ptr<View>> views_;
};

}  // namespace cudp::privacy::pld

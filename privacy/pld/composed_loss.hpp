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
  /// Interval for the discretisation of composed losses. 0 means 1e-4 if that is fine enough,
  /// otherwise an automatic choice. It is doubled if that costs almost nothing, or if memory
  /// requires it.
  double interval = 0.0;
  /// Factor by which the discretisation error may exceed its default, for a faster bound. Applies
  /// to each release's atoms and to the rounding of losses to multiples of the interval.
  double coarseness = 1.0;
  /// Largest length of a Fourier transform. It takes about 120 bytes an element.
  std::size_t longest = std::size_t{1} << 20;
};

/// `count` releases with two known losses: `above` dominates each of them, and each of them
/// dominates `below`. The two are the same except for releases that were grouped.
struct DistinctLoss {
  PrivacyLoss above, below;
  bool same = true;
  std::uint64_t count = 0;
};

/// Privacy loss of independent releases in one direction.
class ComposedLoss {
 public:
  ComposedLoss(std::vector<DistinctLoss> losses, Options options);
  ~ComposedLoss();
  ComposedLoss(const ComposedLoss&) = delete;
  ComposedLoss& operator=(const ComposedLoss&) = delete;
  ComposedLoss(ComposedLoss&&) noexcept;
  ComposedLoss& operator=(ComposedLoss&&) noexcept;

  /// Returns the smallest epsilon >= 0 with delta(epsilon) <= delta, and epsilon_lower. If no
  /// finite epsilon can be shown, epsilon is +infinity and epsilon_lower 0.
  PrivacyBound epsilon(double delta);
  /// Returns the smallest delta for epsilon >= 0, at most 1, and delta_lower, at least 0.
  PrivacyBound delta(double epsilon);
  /// Returns upper bounds on delta for each epsilon >= 0. Faster than delta() for many of them: a
  /// few exponential tilts of the loss serve all; between these the bounds are slightly larger.
  /// `least`: smallest delta that is of interest.
  std::vector<double> curve(std::span<const double> epsilons, double least);

 private:
  struct Term;
  struct View;

  Moments total_moments(double tilt) const;
  double tilt_for_delta(double delta);
  double tilt_for_epsilon(double epsilon, double& delta);
  template <class Solve>
  double settle_tilt(double negligible, const Solve& solve);
  const View& view(double tilt, double negligible);
  /// Returns epsilon_lower at delta by one tilt, if epsilon is an upper bound.
  static double lower_epsilon(const View& at, double epsilon, double delta);
  void forget_views(std::size_t max_views);
  /// both: whether a lower bound is needed. wide: whether the window leaves out much less.
  std::unique_ptr<View> make_view(double tilt, double negligible, bool both = true,
                                  bool wide = false);
  double negligible_for(double delta) const;
  double choose_interval(std::span<const DiscretePld> fine_plds, double tilt, double span) const;

  std::vector<Term> terms_;
  Options options_;
  std::vector<std::unique_ptr<View>> views_;
  std::vector<std::unique_ptr<View>> curve_views_;  ///< of curve(), without lower bounds
  double least_ = 1.0;                              ///< smallest delta that they are for
};

}  // namespace cudp::privacy::pld

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

/// Accuracy and memory of ComposedLoss, which composes privacy loss distributions.
struct Options {
  /// Losses are rounded to multiples of this number [nats] before they are composed. 0 means 1e-4
  /// if that is fine enough, otherwise an automatic choice. If the Fourier transform would be long,
  /// 2, 4, ... times the number is used instead: as much as `longest` requires, and more while that
  /// costs almost no accuracy.
  double interval = 0.0;
  /// Factor by which the discretisation error may exceed its default, for a faster bound. Applies
  /// to the discretisation of each release's loss and to the rounding of losses to multiples of
  /// `interval`.
  double coarseness = 1.0;
  /// Largest length of a Fourier transform, in elements. Each element takes about 120 bytes.
  std::size_t longest = std::size_t{1} << 20;
  /// Whether lower bounds are computed. If not, they are 0, and epsilon() and delta() are faster.
  bool lower = true;
};

/// Bounds on the privacy loss of each of `count` equal releases: `above` is an upper bound, `below`
/// a lower one. They differ only if several different releases were grouped and bounded together,
/// or if the exact loss is unknown (random allocation).
struct DistinctLoss {
  PrivacyLoss above, below;
  bool same = true;  ///< whether `above` and `below` are the same distribution
  std::uint64_t count = 0;
};

/// Privacy loss distribution of a composition of independent releases, for one direction: examples
/// added, or examples removed.
class ComposedLoss {
 public:
  ComposedLoss(std::vector<DistinctLoss> losses, Options options);
  ~ComposedLoss();
  ComposedLoss(const ComposedLoss&) = delete;
  ComposedLoss& operator=(const ComposedLoss&) = delete;
  ComposedLoss(ComposedLoss&&) noexcept;
  ComposedLoss& operator=(ComposedLoss&&) noexcept;

  /// Returns bounds on epsilon at delta: from above (epsilon >= 0) and from below (epsilon_lower).
  /// If no finite bound is found, epsilon is +infinity and epsilon_lower 0.
  PrivacyBound epsilon(double delta);
  /// Returns bounds on delta at epsilon >= 0: from above (delta, at most 1) and from below
  /// (delta_lower, at least 0).
  PrivacyBound delta(double epsilon);
  /// Returns upper bounds on delta for each epsilon >= 0. Faster than delta() for many epsilons,
  /// because it evaluates the distribution at only a few exponential tilts; the bounds are slightly
  /// larger. least: smallest delta that is of interest; below it the bounds may be loose.
  std::vector<double> curve(std::span<const double> epsilons, double least);

 private:
  struct Term;
  struct TiltedAtoms;
  struct View;

  Moments total_moments(double tilt) const;
  double tilt_for_delta(double delta);
  double tilt_for_epsilon(double epsilon, double& delta);
  template <class Solve>
  double settle_tilt(double negligible, const Solve& solve);
  const View& view(double tilt, double negligible);
  /// Returns a lower bound on epsilon at delta from the view `at`, a distribution of the composed
  /// loss under one exponential tilt; 0 if the view has only upper bounds. epsilon: an upper bound
  /// on epsilon at delta, from the same view.
  static double lower_epsilon(const View& at, double epsilon, double delta);
  void forget_views(std::size_t max_views);
  /// Computes the distribution of the composed loss under exponential tilting by `tilt`, from which
  /// bounds near its mean are read. negligible: probability of large losses that may be left out.
  /// both: whether a lower bound is needed in addition to the upper one. wide: whether to use a
  /// wider range of losses, so that much less probability is left out.
  std::unique_ptr<View> make_view(double tilt, double negligible, bool both, bool wide = false);
  double negligible_for(double delta) const;
  double choose_interval(std::span<const TiltedAtoms> atoms, double tilt, double span) const;

  std::vector<Term> terms_;
  Options options_;
  std::vector<std::unique_ptr<View>> views_;
  /// Views that curve() keeps between calls; they have only upper bounds.
  std::vector<std::unique_ptr<View>> curve_views_;
  double least_ = 1.0;  ///< smallest delta for which curve_views_ are accurate
};

}  // namespace cudp::privacy::pld

#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/fft.hpp"
#include "privacy/pld/lattice.hpp"

namespace cudp::privacy::pld {

/// `count` releases whose losses have the same distribution on a lattice.
struct Repeated {
  Lattice lattice;
  std::uint64_t count = 0;
};

/// Range of losses at which a composition is evaluated: offset + first * interval ... offset +
/// (first + length - 1) * interval, where the offset is the sum of the releases' offsets.
struct Window {
  double interval = 0.0;
  std::int64_t first = 0;
  std::size_t length = 0;  ///< a power of two
  /// Upper bound on the tilted probability of a composed loss outside the window, on both sides
  /// together.
  double tilted_outside = 0.0;
  /// Upper bound on the probability of a composed loss at or beyond the upper end.
  double mass_above = 0.0;
};

/// Sum of independent lattice losses, near the losses that matter for one (epsilon, delta).
///
/// Every pmf p is tilted to t = p e^(tilt L - K), where K normalises the sum to 1 (Esscher).
/// Transforms of t multiply like those of p, and dividing by the tilt afterwards leaves an error
/// that is relative to the tail of the sum at the tilted mean, instead of absolute.
///
/// Errors, all bounded and propagated to the result:
///
///   - rounding of the transforms: relative in Euclidean norm (Fft), hence absolute at each
///     frequency, through the powers and products to the inverse;
///   - wrap-around: from above it only adds; from below it is subtracted;
///   - rounding of the tails: if a hockey-stick curve has an error of r P(L > l), that curve plus
///     r e (1 + tilt) times itself, moved up by 1/(1 + tilt), lies above, because
///     1 - e^(-1/(1+tilt)) is at least 1/(2 + tilt). That adds r e (2 + tilt) to the tilted mass of
///     each release;
///   - rounding of the losses: by shifting epsilon.
class LatticeSum {
 public:
  /// Composes the releases. loss_error: bound on the error of one release's loss. `above`: whether
  /// the lattices are upper bounds, as the result will be.
  LatticeSum(std::span<const Repeated> releases, double tilt, const Window& window, const Fft& fft,
             double loss_error, bool above);

  /// Returns a bound on delta(epsilon), upper or lower as constructed; not clamped to [0, 1].
  double delta(double epsilon) const;

 private:
  void add_single_release(const Lattice& lattice, std::size_t length, double loss_error);
  void sum_tails(std::span<const double> tilted);

  double tilt_, interval_;
  std::int64_t first_;
  double offset_ = 0.0;  ///< sum of the releases' offsets; losses are stored relative to it
  /// Log of the factor from tilted to true mass at loss 0; at loss x it is log_scale - tilt x.
  double log_scale_ = 0.0;
  double shift_ = 0.0;     ///< shift of epsilon, for the rounding of losses
  double by_point_ = 0.0;  ///< error of each tilted probability
  double by_sum_ = 0.0;    ///< error of the total tilted probability
  double added_ = 0.0;     ///< probability of losses beyond the window or infinite
  bool above_;
  /// Sums over the points y from each point x upwards, of t e^(-tilt (y - x)), and of t e^(-(tilt +
  /// 1) (y - x)).
  std::vector<double> sum_, sum_moved_;
};

}  // namespace cudp::privacy::pld

#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/fft.hpp"
#include "privacy/pld/lattice.hpp"

namespace cudp::privacy::pld {

/// `count` releases with the same lattice of losses.
struct Repeated {
  Lattice lattice;
  std::uint64_t count = 0;
};

/// The losses at which a composition is looked at: offset + first * interval ... offset + (first +
/// length - 1) * interval, where the offset is the sum of the releases'.
struct Window {
  double interval = 0.0;
  std::int64_t first = 0;
  std::size_t length = 0;  ///< a power of two
  /// More than the tilted probability of a composed loss outside, on either side together.
  double tilted_outside = 0.0;
  /// At least the probability of a composed loss at or beyond the upper end.
  double mass_above = 0.0;
};

/// The sum of independent lattice losses near the losses that matter for one (epsilon, delta).
///
/// Every pmf p is tilted to t = p e^(tilt L - K), where K makes the sum 1 (Esscher). Transforms of
/// t multiply as those of p do, and dividing the tilt out again afterwards leaves an error that is
/// relative to the tail of the sum at the tilted mean, instead of absolute.
///
/// Errors, all bounded and carried to the result:
///
/// - rounding of the transforms: relative in Euclidean norm (Fft), hence absolute by frequency,
///   through the powers and products to the inverse;
/// - wrap-around: from above it only adds; from below it is subtracted;
/// - rounding of the tails: where a hockey-stick curve is wrong by r P(L > l), that curve with
///   r e (1 + tilt) times itself, moved up by 1/(1 + tilt), lies above, since 1 - e^(-1/(1+tilt))
///   is at least 1/(2 + tilt). That adds r e (2 + tilt) to the tilted mass of each release;
/// - rounding of the losses: by moving epsilon.
class LatticeSum {
 public:
  /// The loss of one release is known to loss_error. `above`: whether the lattices bound from
  /// above, and so shall the result.
  LatticeSum(std::span<const Repeated> releases, double tilt, const Window& window, const Fft& fft,
             double loss_error, bool above);

  /// A bound of delta(epsilon), from the side that was asked for; not clamped to [0, 1].
  double delta(double epsilon) const;

 private:
  void take_one(const Lattice& lattice, std::size_t length, double loss_error);
  void sum_tails(std::span<const double> tilted);

  double tilt_, interval_;
  std::int64_t first_;
  double offset_ = 0.0;     ///< all losses here are less this
  double log_scale_ = 0.0;  ///< sum of the K: a tilted mass at loss x weighs e^(log_scale - tilt x)
  double shift_ = 0.0;      ///< of epsilon, for the losses' rounding
  double by_point_ = 0.0;   ///< error of each tilted probability
  double by_sum_ = 0.0;     ///< error of the tilted probability altogether
  double added_ = 0.0;      ///< probability of losses beyond the window or infinite
  bool above_;
  /// Sums from each point x upwards, over the points y, of t e^(-tilt (y - x)), and of t e^(-(tilt
  /// + 1) (y - x)).
  std::vector<double> sum_, sum_moved_;
};

}  // namespace cudp::privacy::pld

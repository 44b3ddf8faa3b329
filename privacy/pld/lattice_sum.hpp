#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/fft.hpp"
#include "privacy/pld/lattice.hpp"

namespace cudp::privacy::pld {

/// `count` releases whose losses have the same discrete distribution.
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
  /// Upper bound on the probability of a composed loss outside the window, on both sides together,
  /// under the exponentially tilted distribution (LatticeSum).
  double tilted_outside = 0.0;
  /// Upper bound on the probability of a composed loss at or beyond the upper end.
  double mass_above = 0.0;
};

/// Distribution of a sum of independent discrete losses, evaluated in a window around the losses
/// that determine one (epsilon, delta).
///
/// The probability p of each loss L is replaced by t = p e^(tilt L - K), where K normalises the sum
/// to 1 (Esscher transform). Convolving with t instead of p and undoing the tilt at the end makes
/// the rounding errors of the Fourier transform relative to the tail near the tilted mean, instead
/// of absolute.
///
/// Errors, all bounded and propagated to the result:
///
///   - rounding of the transforms: relative in Euclidean norm (Fft), hence absolute at each
///     frequency, through the powers and products to the inverse;
///   - wrap-around of the cyclic convolution: ignored in an upper bound, which it only raises; a
///     bound on it is subtracted in a lower bound;
///   - rounding of the tails: an error of r P(L > l) of a hockey-stick curve h(l) is at most
///     r (2 + tilt) h(l - 1/(1 + tilt)), because 1 - e^(-1/(1+tilt)) is at least 1/(2 + tilt).
///     Shifting losses by 1/(1 + tilt) multiplies their tilted mass by less than e. So the error
///     adds at most r e (2 + tilt) to the tilted mass of each release;
///   - rounding of the losses: by shifting epsilon.
class LatticeSum {
 public:
  /// Composes the releases. tilt: the exponential tilt. window: range of the composed losses to
  /// evaluate. fft: transform of the window's length. loss_error: bound on the error of one
  /// release's loss [nats]. above: whether the releases' distributions are upper bounds; the result
  /// is then an upper bound, otherwise a lower bound.
  LatticeSum(std::span<const Repeated> releases, double tilt, const Window& window, const Fft& fft,
             double loss_error, bool above);

  /// Returns a bound on delta at epsilon: an upper one if the constructor's `above` was true,
  /// otherwise a lower one. It is not clamped to [0, 1].
  double delta(double epsilon) const;

 private:
  void add_single_release(const Lattice& lattice, std::size_t length, double loss_error);
  template <class Value>
  void sum_tails(std::size_t length, const Value& tilted);

  double tilt_, interval_;
  std::int64_t first_;
  double offset_ = 0.0;  ///< sum of the releases' offsets; losses are stored relative to it
  /// Log of the factor from tilted to true mass at loss 0; at loss x it is log_scale - tilt x.
  double log_scale_ = 0.0;
  double shift_ = 0.0;     ///< amount by which epsilon is shifted to cover the rounding of losses
  double by_point_ = 0.0;  ///< bound on the error of each tilted probability
  double by_sum_ = 0.0;    ///< bound on the error of the total tilted probability
  double added_ = 0.0;     ///< probability of losses that are infinite or beyond the window
  bool above_;
  /// Sums over the points y >= x of the window, for each point x. With t the tilted probability of
  /// y, `sum_` adds up t e^(-tilt (y - x)), and `sum_moved_` t e^(-(tilt + 1) (y - x)). delta() is
  /// computed from both.
  std::vector<double> sum_, sum_moved_;
};

}  // namespace cudp::privacy::pld

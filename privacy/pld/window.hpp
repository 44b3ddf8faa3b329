#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/discrete_pld.hpp"
#include "privacy/pld/lattice_sum.hpp"

namespace cudp::privacy::pld {

/// Negative logarithm of the probability that the tilted sum of losses may have outside of a
/// window, on each side: 1e-9, or 1e-15 for a wide window.
inline constexpr double kLogOutside = 20.7, kLogLittleOutside = 34.5;

/// How far the tilted sum of losses lies below and above its mean, except for a small probability
/// on each side. Chernoff bounds.
struct Reach {
  double mean = 0.0, deviation = 0.0;
  double below = 0.0, above = 0.0;
  /// Changes of the tilt at which Chernoff's bound gave `below` and `above`.
  double move_below = 0.0, move_above = 0.0;
};

/// Cumulants K(tilt) = log E[e^(tilt L)] of L, the sum of the losses of some releases.
class Cumulants {
 public:
  void add(std::span<const Atom> atoms, std::uint64_t count) { terms_.push_back({atoms, count}); }
  /// log_outside: negative logarithm of about the probability on each side.
  Reach reach(double tilt, double log_outside) const;

 private:
  struct Term {
    std::span<const Atom> atoms;
    std::uint64_t count = 0;
  };
  std::vector<Term> terms_;
};

/// Returns the mean of the sum of the releases' privacy losses under exponential tilting by `tilt`,
/// where each loss is rounded to a multiple of `interval`. Leaves out the constant offset of each
/// release. The mean of unrounded losses would not do, because the roundings of many releases add
/// up. The transform's window is placed around this mean.
double lattice_mean(std::span<const Repeated> releases, double tilt, double interval);

/// Returns the length of the Fourier transform, a power of two, for losses in a range of width
/// `span` on a grid with this interval.
std::size_t length_for(double span, double interval);

/// Sets `tilted_outside` and `mass_above` of the window, by Chernoff's bound on the sum of the
/// releases.
void bound_outside(std::span<const Repeated> releases, double tilt, const Reach& reach,
                   Window& window);

}  // namespace cudp::privacy::pld

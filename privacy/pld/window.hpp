#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/discrete_pld.hpp"
#include "privacy/pld/lattice_sum.hpp"

namespace cudp::privacy::pld {

/// Negative logarithms of the probability that may lie outside of the computed range of losses
/// (Window), on each side and under exponential tilting: about 1e-9 normally (kLogOutside), about
/// 1e-15 with a wide range (kLogLittleOutside).
inline constexpr double kLogOutside = 20.7, kLogLittleOutside = 34.5;

/// Range in which a sum of privacy losses lies under exponential tilting: its mean and standard
/// deviation, and how far the sum reaches below and above the mean, except with a small probability
/// on each side (Chernoff bounds).
struct Reach {
  double mean = 0.0, deviation = 0.0;
  double below = 0.0, above = 0.0;
  /// Changes of the tilt for which Chernoff's bound gave `below` and `above`.
  double move_below = 0.0, move_above = 0.0;
};

/// Computes in which range the sum of the losses of some releases lies. It uses the cumulants
/// K(tilt) = log E[e^(tilt L)] of that sum, L.
class Cumulants {
 public:
  /// Adds `count` releases with this loss distribution. `atoms` must outlive this object. at: its
  /// moments under the tilt for which reach() will be called.
  void add(const LoggedAtoms& atoms, const Moments& at, std::uint64_t count) {
    terms_.push_back({atoms, at, count});
  }
  /// Returns the range in which the sum of the losses lies under exponential tilting by `tilt`.
  /// log_outside: negative logarithm of the probability, approximately, that may lie outside on
  /// each side.
  Reach reach(double tilt, double log_outside) const;

 private:
  struct Term {
    LoggedAtoms atoms;
    Moments at;
    std::uint64_t count = 0;
  };
  std::vector<Term> terms_;
};

/// Returns the mean of the sum of the releases' privacy losses under exponential tilting by `tilt`,
/// where each loss is rounded to a multiple of `interval`. Leaves out each release's
/// Lattice::offset. The mean of unrounded losses would not do, because the roundings of many
/// releases add up. The computed range of losses (Window) is placed around this mean.
double lattice_mean(std::span<const Repeated> releases, double tilt, double interval);

/// Returns the length of the Fourier transform, a power of two, for losses that are multiples of
/// `interval` in a range of width `span`.
std::size_t length_for(double span, double interval);

/// Sets window.tilted_outside and window.mass_above, the probabilities of losses outside of the
/// window, by Chernoff's bound on the sum of the releases' losses. reach: location of this sum
/// under the same tilt (Cumulants::reach).
void bound_outside(std::span<const Repeated> releases, double tilt, const Reach& reach,
                   Window& window);

}  // namespace cudp::privacy::pld

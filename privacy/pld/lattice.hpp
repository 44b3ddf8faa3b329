#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/discrete_pld.hpp"

namespace cudp::privacy::pld {

/// A loss of a Lattice (a distribution with evenly spaced losses), given by its index, and the
/// probability of this loss (mass).
struct LatticeAtom {
  std::int64_t index = 0;
  double mass = 0.0;
};

/// Distribution of a privacy loss whose values are evenly spaced: offset + index * interval.
/// Indices are ascending and distinct.
struct Lattice {
  std::vector<LatticeAtom> atoms;
  double offset = 0.0;
  /// Probability of an infinite loss: an upper bound on delta adds it, a lower bound subtracts it.
  double infinite = 0.0;
};

/// Fraction of an interval by which lattice_above() and lattice_below(), which round losses to
/// multiples of that interval, may move a loss without accounting for it. It lets a loss that
/// differs from a multiple only by rounding errors count as that multiple, instead of being split
/// between two.
inline constexpr double lattice_rounding = 1e-9;

/// Returns an upper bound on the privacy loss distribution `pld`, with losses that are multiples of
/// `interval` plus an offset. The probability of each of its losses is divided between the two
/// nearest such multiples, such that both distributions of the dominating pair keep their mass.
/// This only raises the hockey-stick curve (delta as a function of epsilon).
Lattice lattice_above(const DiscretePld& pld, double interval);

/// Returns a lower bound on the privacy loss distribution `pld`, with losses that are multiples of
/// `interval` plus an offset. It starts from the values of the hockey-stick curve (delta as a
/// function of e^epsilon) at these losses. Chords between these points lie above the convex curve,
/// so each point is lowered by the largest distance of its two chords from the curve; the result is
/// made convex again. Sources: Doroshenko et al. 2022 for curves as distributions; Zhu, Dong, Wang
/// 2022, Theorem 10: a curve below another may replace it in compositions. negligible: probability
/// of the largest losses that may be left out.
Lattice lattice_below(const DiscretePld& pld, double interval, double negligible);

/// Computes the amount by which lattice_above(), which rounds losses to multiples of an interval,
/// increases log E[e^(tilt L)], with L the loss. It is a measure of the error that the interval
/// causes.
class AddedLogSum {
 public:
  /// atoms: the distribution of the loss. They must outlive this object. log_sum: log E[e^(tilt
  /// L)].
  AddedLogSum(const LoggedAtoms& atoms, double tilt, double log_sum);
  /// Returns the increase of log E[e^(tilt L)] if losses are rounded to multiples of this interval,
  /// or, if the increase is larger than `enough`, some part of it that is also larger.
  double at(double interval, double enough) const;

 private:
  std::span<const Atom> atoms_;
  double tilt_, offset_;
  std::vector<double> tilted_;  ///< tilted probability of each atom
};

/// Returns the loss of the atom with the largest probability. Lattices have index 0 at this loss,
/// because the loss of many releases is nearly always the same. atoms: the distribution of the
/// loss.
double likeliest(std::span<const Atom> atoms);

}  // namespace cudp::privacy::pld

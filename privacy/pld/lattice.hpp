#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/discrete_pld.hpp"

namespace cudp::privacy::pld {

struct LatticeAtom {
  std::int64_t index = 0;
  double mass = 0.0;
};

/// Probabilities of the losses offset + index * interval; indices ascending and distinct.
struct Lattice {
  std::vector<LatticeAtom> atoms;
  double offset = 0.0;
  /// Probability of an infinite loss: an upper bound on delta adds it, a lower bound subtracts it.
  double infinite = 0.0;
};

/// Fraction of an interval by which lattice_above and lattice_below may move a loss without
/// accounting for it, so that an atom already at a multiple of the interval is not split because of
/// its last digit.
inline constexpr double lattice_rounding = 1e-9;

/// Returns an upper bound on the distribution whose losses are multiples of `interval` plus an
/// offset: each atom is divided between its two neighbours on that lattice, such that both
/// distributions of the pair keep their mass. This only raises the hockey-stick curve.
Lattice lattice_above(const DiscretePld& pld, double interval);

/// Returns a lower bound on the distribution with losses on the same lattice. Its hockey-stick
/// curve is that through the lattice's points, lowered at each point by the rise of the adjacent
/// chords above the atoms' curve, so that the chords between the lowered points are below it; then
/// made convex if it became concave. Sources: Doroshenko et al. 2022 for curves as distributions;
/// Zhu, Dong, Wang 2022, Theorem 10: a curve below another may replace it in compositions.
/// `negligible`: a probability that may be lost at the upper end.
Lattice lattice_below(const DiscretePld& pld, double interval, double negligible);

/// Returns the amount that rounding to a lattice by lattice_above adds to log E[e^(tilt L)], L the
/// loss: a measure of the interval's error.
double added_log_sum(std::span<const Atom> atoms, double interval, double tilt);

/// Returns the loss of the likeliest atom. Lattices have index 0 there, because the loss of many
/// releases is nearly always the same.
double likeliest(std::span<const Atom> atoms);

}  // namespace cudp::privacy::pld

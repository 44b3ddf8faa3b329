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

/// Probabilities of the losses offset + index * interval; ascending, without repeats.
struct Lattice {
  std::vector<LatticeAtom> atoms;
  double offset = 0.0;
  double infinite = 0.0;  ///< from above: probability to add; from below: to subtract
};

/// Either moves losses by up to this many intervals, and says nothing of it: an atom on the lattice
/// shall not be split for the sake of its last digit.
inline constexpr double lattice_rounding = 1e-9;

/// A lattice from above: each atom is put on its two neighbours in the lattice, both distributions
/// keeping their mass (chords again: they only rise).
Lattice lattice_above(const DiscretePld& pld, double interval);

/// A lattice from below: the curve through the lattice's points, lowered at each by what the chords
/// beside it rise above the atoms' curve, so that the chords between the lowered points are below
/// it; and made convex where that left it concave. Sources: Doroshenko et al. 2022 for curves as
/// distributions; that a curve below another may stand for it in compositions: Zhu, Dong, Wang
/// 2022, Theorem 10. `negligible`: a probability that may be lost at the upper end.
Lattice lattice_below(const DiscretePld& pld, double interval, double negligible);

/// How much lattice_above adds to log E[e^(tilt L)].
double added_log_sum(std::span<const Atom> atoms, double interval, double tilt);

/// The loss at which both lattices have their 0: that of the likeliest atom, because many releases'
/// loss is nearly always the same.
double likeliest(std::span<const Atom> atoms);

}  // namespace cudp::privacy::pld

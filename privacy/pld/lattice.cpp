#include "privacy/pld/lattice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cudp::privacy::pld {
namespace {

void add(std::vector<LatticeAtom>& atoms, std::int64_t index, double mass) {
  if (!atoms.empty() && atoms.back().index == index) {
    atoms.back().mass += mass;
  } else if (atoms.size() > 1 && atoms[atoms.size() - 2].index == index) {
    atoms[atoms.size() - 2].mass += mass;
  } else {
    atoms.push_back({index, mass});
  }
}

/// Division of the probability of a loss between the lattice points `low` and low + 1.
struct Split {
  std::int64_t low = 0;
  double inside = 0.0;  ///< the loss minus low * interval
  double share = 0.0;   ///< fraction of the loss's probability that goes to lattice point low + 1
};

/// Divides the probabilities of losses between lattice points, the multiples of an interval.
class Divider {
 public:
  explicit Divider(double interval) : interval_(interval), fall_(std::expm1(-interval)) {}
  /// Divides the probability of a loss between the two lattice points next to it, low * interval
  /// and (low + 1) * interval, such that its mass is kept under both distributions of the
  /// dominating pair. A loss within 1e-9 intervals of a lattice point counts as that point
  /// (lattice_rounding).
  Split split(double loss) const {
    const double low = std::floor(loss / interval_ + lattice_rounding);
    const double inside = loss - low * interval_;
    if (inside <= lattice_rounding * interval_) return {static_cast<std::int64_t>(low), 0.0, 0.0};
    return {static_cast<std::int64_t>(low), std::fmin(inside, interval_),
            std::fmin(std::expm1(-inside) / fall_, 1.0)};
  }

 private:
  double interval_, fall_;
};

/// Bend of the hockey-stick curve (delta as a function of e^loss) within a cell, the interval
/// between two lattice points.
struct Rise {
  double of_chord = 0.0;  ///< largest height of the chord over the hockey-stick curve inside a cell
  /// Height of the hockey-stick curve at the cell's right end above its tangent at the left end.
  double over_tangent = 0.0;
};

/// Computes the bend (Rise) of the hockey-stick curve, delta as a function of e^loss, within a cell
/// between two lattice points, from the atoms inside the cell. Between atoms the curve is linear in
/// e^loss, so the height of its chord above it is largest at one of the atoms. For each atom the
/// class stores e^loss - 1 (distance) and the probability under the second distribution (q), both
/// with the loss at the cell's left end counted as 0.
class CellRise {
 public:
  explicit CellRise(double interval) : width_(std::expm1(interval)) {}
  void add(double inside, double mass) {
    inner_.push_back({std::expm1(inside), mass * std::exp(-inside)});
  }
  Rise finish() {
    double left = 0.0, right = 0.0, max_rise = 0.0;
    for (const Inner& atom : inner_) right += atom.q * (width_ - atom.distance);
    const double over_tangent = right;
    for (const Inner& atom : inner_) {
      left += atom.q * atom.distance;
      right -= atom.q * (width_ - atom.distance);
      max_rise =
          std::fmax(max_rise, ((width_ - atom.distance) * left + atom.distance * right) / width_);
    }
    inner_.clear();
    return {.of_chord = max_rise, .over_tangent = over_tangent};
  }

 private:
  struct Inner {
    double distance = 0.0;  ///< e^(the atom's loss - loss at the left end) - 1
    double q = 0.0;
  };
  double width_;
  std::vector<Inner> inner_;
};

/// Returns `atoms` rounded to a lattice: each loss is divided between the two lattice points next
/// to it, which replaces the hockey-stick curve by its chords. offset: loss of lattice point 0. If
/// `rises` is not null, sets entry i to the Rise of the cell to the right of the result's atom i.
/// interval: distance between lattice points.
std::vector<LatticeAtom> connect(std::span<const Atom> atoms, double offset, double interval,
                                 std::vector<Rise>* rises) {
  std::vector<LatticeAtom> lattice;
  lattice.reserve(2 * atoms.size());
  CellRise rise(interval);
  const Divider divider(interval);
  std::int64_t cell = 0;
  const std::int64_t first = atoms.empty() ? 0 : divider.split(atoms[0].loss - offset).low;
  bool open = false;
  const auto finish = [&] {
    if (rises == nullptr || !open) return;
    rises->resize(lattice.size());
    (*rises)[lattice.size() - 2] = rise.finish();  // the last atom is the right end
    open = false;
  };
  for (const Atom& atom : atoms) {
    Split at = divider.split(atom.loss - offset);
    // For a lower bound, losses in the first half of the first cell are rounded down to its left
    // end. There the curve has its least possible value. Rounding down lowers the curve by less
    // than lowering the next point to the tangent (Rise::over_tangent) would.
    if (rises != nullptr && at.low == first && at.inside < 0.5 * interval) at.share = 0.0;
    if (at.low != cell) finish();
    cell = at.low;
    if (at.share == 0.0) {
      add(lattice, at.low, atom.mass);
      continue;
    }
    add(lattice, at.low, atom.mass * (1.0 - at.share));
    add(lattice, at.low + 1, atom.mass * at.share);
    if (rises != nullptr) rise.add(at.inside, atom.mass);
    open = true;
  }
  finish();
  if (rises != nullptr) rises->resize(lattice.size());
  return lattice;
}

/// Returns the height of the hockey-stick curve at each atom: the sum of mass (1 - e^(l - L)) over
/// all atoms with a larger loss, where l is this atom's loss and L the other's. lattice: the atoms.
/// interval: distance between lattice points.
std::vector<double> heights(std::span<const LatticeAtom> lattice, double interval) {
  std::vector<double> height(lattice.size(), 0.0);
  double q = 0.0;  // sum over the atoms above, times e^here
  for (std::size_t i = lattice.size() - 1; i-- > 0;) {
    const double gap = static_cast<double>(lattice[i + 1].index - lattice[i].index) * interval;
    q += lattice[i + 1].mass;
    height[i] = height[i + 1] + q * -std::expm1(-gap);
    q *= std::exp(-gap);
  }
  return height;
}

/// Returns the height of the hockey-stick curve at each atom over the line P - e^l Q, where P and Q
/// are the total probabilities under both distributions: the sum of mass (e^(l - L) - 1) over all
/// atoms with a smaller loss, where l is this atom's loss and L the other's. lattice: the atoms.
/// interval: distance between lattice points.
std::vector<double> heights_over_line(std::span<const LatticeAtom> lattice, double interval) {
  std::vector<double> height(lattice.size(), 0.0);
  double q = 0.0;
  for (std::size_t i = 1; i < lattice.size(); ++i) {
    const double gap = static_cast<double>(lattice[i].index - lattice[i - 1].index) * interval;
    q += lattice[i - 1].mass;
    height[i] = height[i - 1] + q * std::expm1(gap);
    q *= std::exp(gap);
  }
  return height;
}

}  // namespace

Lattice lattice_above(const DiscretePld& pld, double interval) {
  const double offset = likeliest(pld.upper());
  return {.atoms = connect(pld.upper(), offset, interval, nullptr),
          .offset = offset,
          .infinite = pld.infinite()};
}

Lattice lattice_below(const DiscretePld& pld, double interval, double negligible) {
  const std::vector<Atom> atoms = pld.lower();
  const double offset = likeliest(atoms);
  std::vector<Rise> rises;  // rise to the right of each atom
  std::vector<LatticeAtom> lattice = connect(atoms, offset, interval, &rises);
  const std::size_t n = lattice.size();
  if (n == 0) return {};
  const auto rise = [&](std::size_t i) { return rises[i].of_chord; };
  // Returns the rise of the cell to the left of atom i, where i > 0.
  const auto rise_before = [&](std::size_t i) {
    return i == 1 ? rises[0].over_tangent : rise(i - 1);
  };
  std::vector<double> lowered(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) lowered[i] = std::fmax(rise(i), i > 0 ? rise(i - 1) : 0.0);
  if (n > 1) {  // the first atom cannot be lowered: to its right the tangent is used, not the chord
    lowered[0] = 0.0;
    lowered[1] = std::fmax(rise_before(1), rise(1));
    rises[0].of_chord = 0.0;
  }
  // If the loss ends inside a cell with a large probability, the lowered points leave the region of
  // valid curves: above 0, and above the line P - e^loss Q. So the curve is cut. It begins on the
  // line at atom `begin`, ends at 0 at atom `end`, and has no atoms beyond. The curve at these two
  // atoms must be higher above the line, or above 0, than the adjacent chord is above the curve. At
  // `end` a height of up to `negligible` may be missing, which Lattice::infinite subtracts from the
  // bound.
  const std::vector<double> height = heights(lattice, interval);
  const std::vector<double> over_line = heights_over_line(lattice, interval);
  std::size_t begin = 0, end = n - 1;
  for (std::size_t i = 0; i < end; ++i)
    if (lowered[i] - height[i] > negligible) end = i;
  for (std::size_t i = n; i-- > begin + 1;)
    if (lowered[i] - over_line[i] > 1e-15) begin = i;
  while (end > 0 && rise_before(end) - height[end] > negligible) --end;
  while (begin < end && rise(begin) - over_line[begin] > 1e-15) ++begin;
  double total = 0.0;
  for (const LatticeAtom& atom : lattice) total += atom.mass;
  if (end <= begin || over_line[begin] - height[begin] > negligible)  // no loss
    return {.atoms = {{0, std::fmin(total, 1.0)}}, .offset = 0.0};
  lowered[begin] = std::fmax(over_line[begin], rise(begin));
  lowered[end] = std::fmax(height[end], rise_before(end));
  const auto gap = [&](std::size_t i) {
    return static_cast<double>(lattice[i + 1].index - lattice[i].index) * interval;
  };
  // Masses of the lowered curve. The probability of an atom under the second distribution is the
  // second difference of the curve in e^loss; under the first, e^loss times that.
  for (std::size_t i = begin + 1; i < end; ++i)
    lattice[i].mass -= (lowered[i + 1] - lowered[i]) / std::expm1(gap(i)) -
                       (lowered[i] - lowered[i - 1]) / -std::expm1(-gap(i - 1));
  lattice[begin].mass =
      (over_line[begin + 1] - lowered[begin + 1] - over_line[begin] + lowered[begin]) /
      std::expm1(gap(begin));
  lattice[end].mass = (height[end - 1] - lowered[end - 1] - height[end] + lowered[end]) /
                      -std::expm1(-gap(end - 1));
  Lattice result{.atoms = {}, .offset = offset, .infinite = lowered[end] - height[end]};

  // Removes atoms with negative mass, i.e. computes the lower convex hull of the curve. A negative
  // mass is divided between the two neighbouring atoms in the way in which connect() divides a
  // positive one. The negative mass of the first atom can only move to the right, that of the last
  // atom to infinity.
  std::vector<LatticeAtom>& hull = result.atoms;
  hull.reserve(end + 1 - begin);
  double carried = 0.0;  // negative mass passed to the next atom
  for (std::size_t i = begin; i <= end; ++i) {
    hull.push_back({lattice[i].index, lattice[i].mass + carried});
    carried = 0.0;
    if (i == end) break;
    while (!hull.empty() && hull.back().mass < 0.0) {
      const LatticeAtom bad = hull.back();
      hull.pop_back();
      if (hull.empty()) {
        carried += bad.mass;
        break;
      }
      const double to_left = static_cast<double>(bad.index - hull.back().index) * interval;
      const double whole = static_cast<double>(lattice[i + 1].index - hull.back().index) * interval;
      const double share = std::expm1(-to_left) / std::expm1(-whole);
      carried += bad.mass * share;
      hull.back().mass += bad.mass * (1.0 - share);
    }
  }
  while (!hull.empty() && hull.back().mass < 0.0) {  // loses at most the negligible amount
    result.infinite -= hull.back().mass;
    hull.pop_back();
  }
  return result;
}

double likeliest(std::span<const Atom> atoms) {
  return std::max_element(atoms.begin(), atoms.end(),
                          [](const Atom& a, const Atom& b) { return a.mass < b.mass; })
      ->loss;
}

AddedLogSum::AddedLogSum(const LoggedAtoms& logged, double tilt, double log_sum)
    : atoms_(logged.atoms), tilt_(tilt), offset_(likeliest(logged.atoms)) {
  tilted_.reserve(atoms_.size());
  for (std::size_t i = 0; i < atoms_.size(); ++i)
    tilted_.push_back(std::exp(logged.log_masses[i] + tilt * atoms_[i].loss - log_sum));
}

double AddedLogSum::at(double interval, double enough) const {
  const Divider divider(interval);
  const double whole = std::expm1(tilt_ * interval);
  double added = 0.0;
  for (std::size_t i = 0; i < atoms_.size() && !(added > enough); ++i) {
    const Split at = divider.split(atoms_[i].loss - offset_);
    // grown = (1 - share) e^(-tilt inside) + share e^(tilt (interval - inside)) - 1: relative
    // change of the atom's tilted probability when it is divided between two lattice points.
    const double here = std::expm1(-tilt_ * at.inside);
    const double grown = here + at.share * whole * (1.0 + here);
    added += tilted_[i] * grown;
  }
  return added;
}

}  // namespace cudp::privacy::pld

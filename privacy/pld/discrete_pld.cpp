#include "privacy/pld/discrete_pld.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/math/constants.hpp"

namespace cudp::privacy::pld {
namespace {

constexpr std::size_t max_cells = 20000, first_cells = 32;
/// Maximum number of cells in a CellTree; a cell has 136 bytes.
constexpr std::size_t kMaxNodes = std::size_t{1} << 13;
constexpr double cells_expected = 3000.0;  // number of cells that share the tolerance

/// Returns the probability between the points `low` and `high`, given the probabilities above each
/// point (above_low, above_high) and below each. Uses the smaller probabilities, in which rounding
/// matters less.
double between(double above_low, double above_high, double below_low, double below_high) {
  double mass = 0.0;
  if (above_low <= 0.5)
    mass = above_low - above_high;
  else if (below_high <= 0.5)
    mass = below_high - below_low;
  else
    mass = 1.0 - below_low - above_high;
  return std::fmax(mass, 0.0);
}

/// Returns whether the losses ascend and no three of them are equal. If so, the atoms need not be
/// sorted: sorting them would not change any sum of the masses of equal losses, not even in the
/// last digit.
bool is_sorted(std::span<const Atom> atoms) {
  for (std::size_t i = 1; i < atoms.size(); ++i) {
    if (atoms[i].loss < atoms[i - 1].loss) return false;
    if (i > 1 && atoms[i].loss == atoms[i - 2].loss) return false;
  }
  return true;
}

/// Numbers that exceeds() compares, together with their logarithms.
struct Comparison {
  double log_factor = 0.0;
  double width = 0.0, log_width_squared = 0.0;
  double threshold = 0.0, log_threshold = 0.0;
};

/// Returns whether e^log_factor width^2 > threshold. Compares logarithms, which is faster, unless
/// their rounding errors, below 1e-12, might decide.
bool exceeds(const Comparison& c) {
  const double difference = c.log_factor + c.log_width_squared - c.log_threshold;
  const bool is_clear = std::fabs(difference) > 1e-9 && std::fabs(c.log_factor) < 600.0 &&
                        std::fabs(c.log_width_squared) < 200.0 &&
                        std::fabs(c.log_threshold) < 400.0;
  if (is_clear) return difference > 0.0;
  return std::exp(std::fmin(c.log_factor, 700.0)) * c.width * c.width > c.threshold;
}

void sort_and_merge(std::vector<Atom>& atoms) {
  std::erase_if(atoms, [](const Atom& atom) { return !(atom.mass > 0.0); });
  if (!is_sorted(atoms))
    std::sort(atoms.begin(), atoms.end(),
              [](const Atom& a, const Atom& b) { return a.loss < b.loss; });
  std::size_t kept = 0;
  for (const Atom& atom : atoms) {
    if (!(atom.mass > 0.0)) continue;
    if (kept > 0 && atoms[kept - 1].loss == atom.loss)
      atoms[kept - 1].mass += atom.mass;
    else
      atoms[kept++] = atom;
  }
  atoms.resize(kept);
}

}  // namespace

Moments moments(const LoggedAtoms& logged, double tilt) {
  const std::span<const Atom> atoms = logged.atoms;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < atoms.size(); ++i)
    largest = std::max(largest, tilt * atoms[i].loss + logged.log_masses[i]);
  double sum = 0.0, first = 0.0, second = 0.0;
  double centre = 0.0;
  std::vector<double> weights(atoms.size());
  for (std::size_t i = 0; i < atoms.size(); ++i)
    weights[i] = atoms[i].mass * std::exp(tilt * atoms[i].loss - largest);
  for (int pass = 0; pass < 2; ++pass) {
    sum = first = second = 0.0;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
      const double d = atoms[i].loss - centre;
      sum += weights[i];
      first += weights[i] * d;
      second += weights[i] * d * d;
    }
    if (pass == 0) centre = first / sum;
  }
  const double mean = first / sum;
  return {.log_sum = largest + std::log(sum),
          .mean = centre + mean,
          .variance = std::fmax(second / sum - mean * mean, 0.0)};
}

void CellTree::add(Cell& cell) {
  if (nodes_.size() >= kMaxNodes) return;
  cell.node = static_cast<std::uint32_t>(nodes_.size() + 1);
  nodes_.push_back(cell);
  halves_.push_back(0);
}

const Cell* CellTree::halves(const Cell& cell) const {
  const std::uint32_t left = cell.node > 0 ? halves_[cell.node - 1] : 0;
  return left > 0 ? &nodes_[left - 1] : nullptr;
}

void CellTree::add_halves(const Cell& cell, Cell& left, Cell& right) {
  if (cell.node == 0 || nodes_.size() + 2 > kMaxNodes) return;
  add(left);
  add(right);
  halves_[cell.node - 1] = left.node;
}

std::vector<Cell> DiscretePld::first_cells_of(const PrivacyLoss::Part& part) {
  std::unique_lock<std::mutex> lock;
  if (part.cells != nullptr) {
    lock = std::unique_lock(part.cells->mutex);
    if (!part.cells->first.empty()) return part.cells->first;
  }
  const LossTails& tails = *part.tails;
  std::vector<Cell> cells;
  TailPoint low = tails.at(tails.begin());
  double begin = tails.begin();
  for (std::size_t i = 1; i <= first_cells; ++i) {
    const double share = static_cast<double>(i) / first_cells;
    const double end =
        i == first_cells ? tails.end() : tails.begin() + share * (tails.end() - tails.begin());
    const TailPoint high = tails.at(end);
    cells.push_back({.begin = begin, .end = end, .low = low, .high = high});
    measure(cells.back());
    if (part.cells != nullptr) part.cells->add(cells.back());
    begin = end;
    low = high;
  }
  if (part.cells != nullptr) part.cells->first = cells;
  return cells;
}

DiscretePld::DiscretePld(PrivacyLoss loss) : loss_(std::move(loss)) {
  double largest = 0.0;
  for (const PrivacyLoss::Part& part : loss_.parts) {
    const std::vector<Cell>& cells = cells_.emplace_back(first_cells_of(part));
    largest = std::fmax(largest, std::fabs(cells.front().low.loss));
    for (const Cell& cell : cells) largest = std::fmax(largest, std::fabs(cell.high.loss));
  }
  for (const Atom& atom : loss_.atoms) largest = std::fmax(largest, std::fabs(atom.loss));
  loss_error_ = 16.0 * rounding * (1.0 + largest);
  connect();
}

void DiscretePld::measure(Cell& cell) {
  cell.p = between(cell.low.p_above, cell.high.p_above, cell.low.p_below, cell.high.p_below);
  cell.q = between(cell.low.q_above, cell.high.q_above, cell.low.q_below, cell.high.q_below);
  cell.log_p = std::log(cell.p);
  const double low = cell.low.loss, high = cell.high.loss;
  if (!(cell.p > 0.0 && high > low)) return;
  cell.log_width_squared = 2.0 * std::log(high - low);
  // shrunk = q e^low / p, the mean of e^(low - L) over the cell, with L the loss. Computed with
  // logarithms, because e^low may overflow. If q is 0 by underflow, all of p goes to the upper end.
  const double shrunk = cell.q > 0.0 ? std::exp(std::log(cell.q) - cell.log_p + low) : 0.0;
  cell.share = std::clamp((1.0 - shrunk) / -std::expm1(low - high), 0.0, 1.0);
}

void DiscretePld::refine(double tilt, double tolerance, double negligible, double share) {
  share_ = share;
  if (negligible != negligible_) {
    negligible_ = negligible;
    connect();
  }
  for (int round = 0; round < 40; ++round) {
    moments_ = moments(logged_upper(), tilt);
    const double threshold = tolerance * moments_.variance / cells_expected;
    std::size_t before = 0, after = 0;
    for (std::size_t part = 0; part < cells_.size(); ++part) {
      before += cells_[part].size();
      split(part, cells_[part], tilt, threshold, moments_.log_sum);
      after += cells_[part].size();
    }
    if (after == before) return;
    connect();
    if (after > max_cells) break;
  }
  moments_ = moments(logged_upper(), tilt);
}

void DiscretePld::split(std::size_t part, std::vector<Cell>& cells, double tilt, double threshold,
                        double shift) {
  const LossTails& tails = *loss_.parts[part].tails;
  CellTree* const tree = loss_.parts[part].cells.get();
  const std::unique_lock<std::mutex> lock =
      tree != nullptr ? std::unique_lock(tree->mutex) : std::unique_lock<std::mutex>();
  const double log_weight = std::log(loss_.parts[part].weight);
  const double log_threshold = std::log(threshold);
  std::vector<Cell> finer;
  finer.reserve(cells.size() * 2);
  for (const Cell& cell : cells) {
    const double width = cell.high.loss - cell.low.loss;
    const double middle = 0.5 * (cell.begin + cell.end);
    bool halve = cell.p > 0.0 && cell.low.p_above > negligible_ && middle > cell.begin &&
                 middle < cell.end && width > 0.0;
    if (halve) {
      const double log_part =
          cell.log_p + log_weight + tilt * std::fmax(cell.high.loss, cell.low.loss) - shift;
      halve = exceeds({.log_factor = log_part,
                       .width = width,
                       .log_width_squared = cell.log_width_squared,
                       .threshold = threshold,
                       .log_threshold = log_threshold}) ||
              (cell.low.p_above < 0.5 && cell.p > share_ * cell.low.p_above &&
               width > 1e-6 * std::fabs(cell.high.loss));
    }
    if (!halve) {
      finer.push_back(cell);
      continue;
    }
    if (const Cell* const known = tree != nullptr ? tree->halves(cell) : nullptr) {
      finer.insert(finer.end(), known, known + 2);
      continue;
    }
    const TailPoint point = tails.at(middle);
    Cell left{.begin = cell.begin, .end = middle, .low = cell.low, .high = point};
    Cell right{.begin = middle, .end = cell.end, .low = point, .high = cell.high};
    for (Cell* half : {&left, &right}) measure(*half);
    if (tree != nullptr) tree->add_halves(cell, left, right);
    for (const Cell* half : {&left, &right}) finer.push_back(*half);
  }
  cells = std::move(finer);
}

std::size_t DiscretePld::cells_kept(std::size_t part) const {
  const std::vector<Cell>& cells = cells_[part];
  std::size_t kept = cells.size();
  if (!loss_.parts[part].tails->constant_beyond())
    while (kept > 1 && cells[kept - 1].low.p_above <= negligible_) --kept;
  return kept;
}

void DiscretePld::connect() {
  upper_.clear();
  infinite_ = loss_.infinite;
  for (std::size_t part = 0; part < cells_.size(); ++part) {
    const double weight = loss_.parts[part].weight;
    const LossTails& tails = *loss_.parts[part].tails;
    const std::span<const Cell> kept(cells_[part].data(), cells_kept(part));
    const TailPoint &first = kept.front().low, &last = kept.back().high;
    upper_.push_back({first.loss, weight * first.p_below});
    for (const Cell& cell : kept) {
      const double low = cell.low.loss, high = cell.high.loss;
      if (!(cell.p > 0.0)) continue;
      if (!(high > low)) {
        upper_.push_back({std::fmax(low, high), weight * cell.p});
        continue;
      }
      upper_.push_back({low, weight * cell.p * (1.0 - cell.share)});
      upper_.push_back({high, weight * cell.p * cell.share});
    }
    if (tails.constant_beyond())
      upper_.push_back({last.loss, weight * last.p_above});
    else if (std::isfinite(tails.greatest()))
      upper_.push_back({tails.greatest(), weight * last.p_above});
    else
      infinite_ += weight * last.p_above;
  }
  for (const Atom& atom : loss_.atoms) upper_.push_back(atom);
  sort_and_merge(upper_);
  log_upper_.resize(upper_.size());
  for (std::size_t i = 0; i < upper_.size(); ++i) log_upper_[i] = std::log(upper_[i].mass);
}

std::vector<Atom> DiscretePld::lower() const {
  std::vector<Atom> atoms;
  for (std::size_t part = 0; part < cells_.size(); ++part) {
    const double weight = loss_.parts[part].weight;
    const bool constant = loss_.parts[part].tails->constant_beyond();
    const std::span<const Cell> kept(cells_[part].data(), cells_kept(part));
    const TailPoint &first = kept.front().low, &last = kept.back().high;
    if (constant) atoms.push_back({first.loss, weight * first.p_below});
    for (const Cell& cell : kept) {
      const double low = cell.low.loss, high = cell.high.loss;
      if (!(cell.p > 0.0)) continue;
      if (!(high > low)) {
        atoms.push_back({std::fmin(low, high), weight * cell.p});
        continue;
      }
      // Loss of the merged outcomes, log(p / q), rounded down. p and q are differences of tails, so
      // their rounding errors are proportional to the tails. If the error is too large, the loss is
      // the lowest one of the cell.
      const double tails_p =
          std::fmin(std::fmin(cell.low.p_above, cell.high.p_below) + cell.p, 1.0);
      const double tails_q =
          std::fmin(std::fmin(cell.low.q_above, cell.high.q_below) + cell.q, 1.0);
      const double error =
          4.0 * rounding * (tails_p / cell.p + (cell.q > 0.0 ? tails_q / cell.q : 1e300));
      const double merged = error < 1.0 ? std::log(cell.p / cell.q) - 2.0 * error : low;
      atoms.push_back({std::clamp(merged, low, high), weight * cell.p});
    }
    if (constant) atoms.push_back({last.loss, weight * last.p_above});
  }
  for (const Atom& atom : loss_.atoms) atoms.push_back(atom);
  sort_and_merge(atoms);
  return atoms;
}

}  // namespace cudp::privacy::pld

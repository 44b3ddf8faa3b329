#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {

/// Moments of a privacy loss L with finitely many values (atoms): log E[e^(tilt L)], and the mean
/// and variance of L after each probability is multiplied by e^(tilt L) and normalised (exponential
/// tilting).
struct Moments {
  double log_sum = 0.0;
  double mean = 0.0;
  double variance = 0.0;
};

/// Atoms of a distribution, and the logarithm of the probability of each. The logarithms are
/// computed once, although each tilt needs them.
struct LoggedAtoms {
  std::span<const Atom> atoms;
  std::span<const double> log_masses;
};
/// Returns the mean and the variance of a privacy loss with these atoms, after each probability p
/// of a loss L was replaced by p e^(tilt L) and all were divided by their sum (exponential
/// tilting).
Moments moments(const LoggedAtoms& atoms, double tilt);

/// A cell of the range of a continuous loss's parameter, from `begin` to `end`.
struct Cell {
  double begin = 0.0, end = 0.0;
  TailPoint low, high;
  /// Probability of the cell under each of the two distributions (P, Q) of the dominating pair.
  double p = 0.0, q = 0.0;
  double log_p = 0.0;
  double log_width_squared = 0.0;  ///< log of the square of high.loss - low.loss
  /// Fraction of p that the upper bound moves to the upper end.
  double share = 0.0;
  std::uint32_t node = 0;  ///< number of the cell in a CellTree; 0: in none
};

/// Cells into which a continuous loss has been divided so far: the first ones, and the two halves
/// of each cell that was halved. DiscretePld objects with the same loss share a tree, even if they
/// differ in the number of releases: cells depend on the loss alone, so an object finds here most
/// of the cells that it needs. Several threads may use a tree. Callers must lock `mutex` before
/// they use any other member.
class CellTree {
 public:
  std::mutex mutex;
  std::vector<Cell> first;  ///< the cells before any is halved; empty if not known

  /// Adds a cell without halves, and sets its number. Has no effect on a full tree.
  void add(Cell& cell);
  /// Returns the two halves of a cell; null if they are not known.
  const Cell* halves(const Cell& cell) const;
  /// Adds the halves of a cell, and sets their numbers. Has no effect if the tree is full, or does
  /// not have the cell.
  void add_halves(const Cell& cell, Cell& left, Cell& right);

 private:
  std::vector<Cell> nodes_;  ///< number n is at index n - 1
  std::vector<std::uint32_t>
      halves_;  ///< number of each node's left half, which the right half follows; 0: not known
};

/// Privacy loss distribution of one release, bounded from above and from below by distributions
/// with finitely many losses (atoms).
///
/// A continuous loss is a monotone function of a real number, such as the mechanism's output
/// (LossTails). The range of that number is divided into cells. From above: the probability of a
/// cell is moved to its two ends, such that it keeps its mass under both distributions of the
/// dominating pair. This replaces the hockey-stick curve, delta as a function of e^epsilon, by its
/// chords, which lie above it (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022,
/// arXiv:2207.04380). From below: the outcomes of a cell are merged into one, which is
/// post-processing. Both errors are of second order in the width of the cell. refine() halves those
/// cells whose squared width times probability times e^(tilt L), L the loss, is large.
class DiscretePld {
 public:
  explicit DiscretePld(PrivacyLoss loss);

  /// Refines the cells for evaluation under exponential tilting by `tilt`. Halves cells until the
  /// chords of the upper bound, which lie above the true curve, add about the fraction `tolerance`
  /// to the variance of the tilted loss, or there are too many cells. In the upper tail also halves
  /// a cell that has more than the fraction `share` of the probability of all losses above its
  /// lower end. Losses beyond the point that is exceeded with probability `negligible` count as
  /// infinite in the upper bound, and are omitted from the lower one.
  void refine(double tilt, double tolerance, double negligible, double share = 1.0);

  std::span<const Atom> upper() const { return upper_; }
  /// Returns upper() and the logarithms of its probabilities.
  LoggedAtoms logged_upper() const { return {upper_, log_upper_}; }
  /// Returns the moments of upper() under the tilt of the last call of refine().
  const Moments& refined_moments() const { return moments_; }
  /// Returns the atoms of the lower bound. They are computed in each call.
  std::vector<Atom> lower() const;
  /// Probability of an infinite loss, in the upper bound.
  double infinite() const { return infinite_; }
  /// Bound on the rounding error of each atom's privacy loss [nats].
  double loss_error() const { return loss_error_; }

 private:
  /// Returns the cells of a part of the loss before any is halved.
  static std::vector<Cell> first_cells_of(const PrivacyLoss::Part& part);
  /// Computes the cell's p, q, log_p and share from the tails at its two ends (low, high).
  static void measure(Cell& cell);
  /// Returns the number of cells of this part of the loss that are kept. Cells at the upper end are
  /// left out if their losses are exceeded with negligible probability only.
  std::size_t cells_kept(std::size_t part) const;
  void split(std::size_t part, std::vector<Cell>& cells, double tilt, double threshold,
             double shift);
  void connect();

  PrivacyLoss loss_;
  std::vector<std::vector<Cell>> cells_;  ///< cells of each part
  std::vector<Atom> upper_;
  std::vector<double> log_upper_;  ///< logarithms of the probabilities in upper_
  Moments moments_;
  double negligible_ = 0.0, share_ = 1.0, infinite_ = 0.0, loss_error_ = 0.0;
};

}  // namespace cudp::privacy::pld

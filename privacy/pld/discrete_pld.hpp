#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {

/// Moments of some atoms: log E[e^(tilt L)], and mean and variance of the loss under the tilted
/// weights.
struct Moments {
  double log_sum = 0.0;
  double mean = 0.0;
  double variance = 0.0;
};
Moments moments(std::span<const Atom> atoms, double tilt);

/// Privacy loss distribution of one release as finitely many atoms, bounding it from above and from
/// below.
///
/// The range of the parameter of the loss (LossTails) is divided into cells. From above: the
/// probability of a cell is placed on its two ends, such that both distributions keep their mass.
/// The points of the hockey-stick curve at the atoms are then connected by chords, which lie above
/// it (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, arXiv:2207.04380). From below: the
/// outcomes of a cell are merged into one, which is post-processing. Both errors are of second
/// order in the width of the cell. Cells are halved where that matters most: by their probability
/// after tilting with e^(tilt L), times the square of their width.
class DiscretePld {
 public:
  explicit DiscretePld(PrivacyLoss loss);

  /// Halves cells until the chords add about `tolerance` of the variance of the tilted loss, or
  /// there are too many cells. Also halves cells in the upper tail that have more than `share` of
  /// the probability from there on. Losses that are exceeded with a probability below `negligible`
  /// count as infinite in the upper bound, and are omitted from the lower.
  void refine(double tilt, double tolerance, double negligible, double share = 1.0);

  std::span<const Atom> upper() const { return upper_; }
  std::span<const Atom> lower() const { return lower_; }
  double infinite() const { return infinite_; }
  /// Bound on the error of the loss of an atom.
  double loss_error() const { return loss_error_; }

 private:
  struct Cell {
    double begin = 0.0, end = 0.0;
    TailPoint low, high;
    double p = 0.0, q = 0.0;  ///< masses of the cell under both distributions
  };
  void split(std::size_t part, std::vector<Cell>& cells, double tilt, double threshold,
             double shift);
  void connect();

  PrivacyLoss loss_;
  std::vector<std::vector<Cell>> cells_;  ///< cells of each part
  std::vector<Atom> upper_, lower_;
  double negligible_ = 0.0, share_ = 1.0, infinite_ = 0.0, loss_error_ = 0.0;
};

}  // namespace cudp::privacy::pld

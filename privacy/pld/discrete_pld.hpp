#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {

/// log E[e^(tilt L)] of some atoms, and mean and variance of the loss under their tilted weights.
struct Moments {
  double log_sum = 0.0;
  double mean = 0.0;
  double variance = 0.0;
};
Moments moments(std::span<const Atom> atoms, double tilt);

/// The privacy loss distribution of one release as finitely many atoms, from above and from below.
///
/// The parameter's range is cut into cells. From above: a cell's probability is put on its two
/// ends, such that both distributions keep their mass: the points of the hockey-stick curve at the
/// atoms are connected by chords, which lie above it (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi
/// 2022, arXiv:2207.04380). From below: a cell's outcomes are merged into one, which is
/// post-processing. Both are wrong to second order in the cell's width. Cells are halved where that
/// matters most: by the probability that tilting with e^(tilt L) gives them, times the square of
/// their width.
class DiscretePld {
 public:
  explicit DiscretePld(PrivacyLoss loss);

  /// Halves cells until the chords add about `tolerance` of the tilted variance, or the cells are
  /// too many. Losses that are exceeded with a probability below `negligible` are infinite from
  /// above, and nothing from below.
  void refine(double tilt, double tolerance, double negligible, double share = 1.0);

  std::span<const Atom> upper() const { return upper_; }
  std::span<const Atom> lower() const { return lower_; }
  double infinite() const { return infinite_; }
  /// The loss of an atom is known to this much.
  double loss_error() const { return loss_error_; }

 private:
  struct Cell {
    double begin = 0.0, end = 0.0;
    TailPoint low, high;
    double p = 0.0, q = 0.0;  ///< its mass
  };
  void split(std::size_t part, std::vector<Cell>& cells, double tilt, double threshold,
             double shift);
  void connect();

  PrivacyLoss loss_;
  std::vector<std::vector<Cell>> cells_;  ///< by part
  std::vector<Atom> upper_, lower_;
  double negligible_ = 0.0, share_ = 1.0, infinite_ = 0.0, loss_error_ = 0.0;
};

}  // namespace cudp::privacy::pld

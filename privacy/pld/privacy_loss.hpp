#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy::pld {

/// One value of a privacy loss, and the probabilities that the loss is larger (above) or smaller
/// (below). p_... are probabilities under the first distribution of the dominating pair (whose loss
/// it is), q_... under the second. Each has a relative error of a few roundings, however small it
/// is.
struct TailPoint {
  double loss = 0.0;
  double p_above = 0.0, q_above = 0.0;
  double p_below = 0.0, q_below = 0.0;
};

/// A continuous privacy loss, as an increasing function of a real parameter (such as the
/// mechanism's output), together with the probabilities of larger and smaller losses at each value
/// of the parameter.
class LossTails {
 public:
  LossTails() = default;
  LossTails(const LossTails&) = delete;
  LossTails& operator=(const LossTails&) = delete;
  virtual ~LossTails() = default;
  /// Returns the loss and the tails at a parameter in [begin(), end()].
  virtual TailPoint at(double parameter) const = 0;
  /// First value of the parameter for which at() can be called.
  double begin() const { return begin_; }
  /// Last value of the parameter for which at() can be called.
  double end() const { return end_; }
  /// Returns whether the loss at parameters outside of [begin(), end()] equals the loss at the
  /// nearer end. If not, the probability outside is below 1e-60, and parameters above end() count
  /// as an infinite loss, or as the loss greatest() if that is finite.
  bool constant_beyond() const { return constant_beyond_; }
  /// Returns the largest possible loss; infinite if there is none.
  double greatest() const { return greatest_; }

 protected:
  double begin_ = 0.0, end_ = 0.0;
  bool constant_beyond_ = false;
  double greatest_ = std::numeric_limits<double>::infinity();
};

/// A privacy loss with probability `mass`.
struct Atom {
  double loss = 0.0;
  double mass = 0.0;
};

class CellTree;  // discrete_pld.hpp

/// Distribution of the privacy loss of one release: a mixture of continuous parts, each with its
/// weight, plus atoms.
struct PrivacyLoss {
  struct Part {
    double weight = 1.0;
    std::shared_ptr<const LossTails> tails;
    /// Cells into which earlier DiscretePld objects with these tails were divided; may be null.
    std::shared_ptr<CellTree> cells = nullptr;
  };
  std::vector<Part> parts;
  std::vector<Atom> atoms;
  double infinite = 0.0;  ///< probability of an infinite loss
};

/// Returns the privacy loss of a pair of distributions that dominates one release, if up to k
/// examples change. Throws std::domain_error if no such pair is known.
///
/// Gaussian noise of any kind, and every mechanism if examples are replaced: the pairs of
/// dominating_pair.hpp. Laplace: the output distributions for two values that differ by k.
/// PoissonLaplace, k = 1: Zhu, Dong, Wang 2022, Proposition 30. BoundedRange, whose loss lies in an
/// interval of length k epsilon: the largest hockey-stick divergence over all positions of this
/// interval (Dong, Durfee, Rogers 2020, arXiv:1909.13830, Lemma 3.4). ApproximateDp, k = 1:
/// Kairouz, Oh, Viswanath 2015 (arXiv:1311.0776), Theorem 3.1.
PrivacyLoss privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k);

/// Returns privacy_loss(), from a cache of the newest results if it is there. A training needs the
/// loss of one step for the bound of each epoch, and PrivacyLoss::Part::cells then has the cells
/// that the earlier bounds divided it into. Thread-safe.
PrivacyLoss known_privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k);

}  // namespace cudp::privacy::pld

#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy::pld {

/// One value of a privacy loss, and the probabilities of larger and of smaller losses under both
/// distributions of the pair: p under the first (whose loss it is), q under the second. Each tail
/// has a relative error of a few roundings, however small it is.
struct TailPoint {
  double loss = 0.0;
  double p_above = 0.0, q_above = 0.0;
  double p_below = 0.0, q_below = 0.0;
};

/// A continuous privacy loss: an increasing function of a real parameter, such as the mechanism's
/// output, with its tail probabilities at each value of the parameter.
class LossTails {
 public:
  LossTails() = default;
  LossTails(const LossTails&) = delete;
  LossTails& operator=(const LossTails&) = delete;
  virtual ~LossTails() = default;
  virtual TailPoint at(double parameter) const = 0;
  double begin() const { return begin_; }
  double end() const { return end_; }
  /// Whether the loss outside of the interval on which it is tabulated equals the loss at the
  /// nearer end. If false, the probability outside is below 1e-60, and what lies above the upper
  /// end counts as an infinite loss.
  bool constant_beyond() const { return constant_beyond_; }
  /// Largest possible loss.
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

/// Distribution of the privacy loss of one release: a mixture of continuous parts, each with its
/// weight, plus atoms.
struct PrivacyLoss {
  struct Part {
    double weight = 1.0;
    std::shared_ptr<const LossTails> tails;
  };
  std::vector<Part> parts;
  std::vector<Atom> atoms;
  double infinite = 0.0;  ///< probability of an infinite loss
};

/// Returns the dominating privacy loss of one release for groups of up to k changes. Sources:
/// dominating_pair.hpp for Gaussian noise, the only one known if examples are replaced. Laplace:
/// the mechanism's own pair, at distance k. Poisson Laplace, k = 1: Zhu, Dong, Wang 2022,
/// Proposition 30. Bounded range: the largest hockey-stick divergence over all positions of the
/// interval (Dong, Durfee, Rogers 2020, arXiv:1909.13830, Lemma 3.4); groups add their ranges.
/// Approximate DP: Kairouz, Oh, Viswanath 2015 (arXiv:1311.0776), Theorem 3.1; k = 1. Throws
/// std::domain_error if none is known.
PrivacyLoss privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k);

}  // namespace cudp::privacy::pld

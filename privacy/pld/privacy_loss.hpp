#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy::pld {

/// A privacy loss and how much lies on either side of it, under both distributions of the pair:
/// p under the first (whose loss it is), q under the second. Each tail is known to a few roundings
/// of its own size, however small it is.
struct TailPoint {
  double loss = 0.0;
  double p_above = 0.0, q_above = 0.0;
  double p_below = 0.0, q_below = 0.0;
};

/// The tails of a privacy loss, along a parameter with which it grows.
class LossTails {
 public:
  LossTails() = default;
  LossTails(const LossTails&) = delete;
  LossTails& operator=(const LossTails&) = delete;
  virtual ~LossTails() = default;
  virtual TailPoint at(double parameter) const = 0;
  double begin() const { return begin_; }
  double end() const { return end_; }
  /// Whether the loss beyond the ends is the loss at the ends; otherwise next to nothing lies there
  /// (1e-60), and above the end it counts as infinite.
  bool constant_beyond() const { return constant_beyond_; }
  /// No loss is greater.
  double greatest() const { return greatest_; }

 protected:
  double begin_ = 0.0, end_ = 0.0;
  bool constant_beyond_ = false;
  double greatest_ = std::numeric_limits<double>::infinity();
};

/// Probability `mass` of the privacy loss `loss`.
struct Atom {
  double loss = 0.0;
  double mass = 0.0;
};

/// The privacy loss of one release: each part with its weight, and atoms.
struct PrivacyLoss {
  struct Part {
    double weight = 1.0;
    std::shared_ptr<const LossTails> tails;
  };
  std::vector<Part> parts;
  std::vector<Atom> atoms;
  double infinite = 0.0;  ///< probability of an infinite loss
};

/// The dominating privacy loss of one release for groups of up to k changes. Sources:
/// dominating_pair.hpp for Gaussian noise, the only one known where examples are replaced. Laplace:
/// the mechanism's own pair, at distance k. Poisson Laplace, k = 1: Zhu, Dong, Wang 2022,
/// Proposition 30. Bounded range: the largest, over where the interval lies, of the hockey-stick
/// divergences (Dong, Durfee, Rogers 2020, arXiv:1909.13830, Lemma 3.4); groups add their ranges.
/// Approximate DP: Kairouz, Oh, Viswanath 2015 (arXiv:1311.0776), Theorem 3.1; k = 1. Throws
/// std::domain_error where none is known.
PrivacyLoss privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k);

}  // namespace cudp::privacy::pld

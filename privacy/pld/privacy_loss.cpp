#include "privacy/pld/privacy_loss.hpp"

#include <cmath>
#include <deque>
#include <mutex>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "privacy/pld/discrete_pld.hpp"
#include "privacy/rdp/dominating_pair.hpp"

namespace cudp::privacy::pld {
namespace {

constexpr double negligible = 1e-60;

/// Returns the log of the mixture's density at x, divided by that of N(0, sigma^2): log of the sum
/// of w_i exp((c_i x - c_i^2 / 2) / sigma^2), with w_i the weights and c_i the centres.
/// inverse_variance: 1 / sigma^2.
double log_ratio(const ScalarMixture& mixture, double x, double inverse_variance) {
  double excess = 0.0, largest = -1e300;
  for (std::size_t i = 0; i < mixture.centres.size(); ++i) {
    const double c = mixture.centres[i];
    const double exponent = c * (x - 0.5 * c) * inverse_variance;
    largest = std::fmax(largest, exponent);
    if (c != 0.0 && largest < 700.0) excess += mixture.weights[i] * std::expm1(exponent);
  }
  // The weights sum to 1, so the ratio is 1 + excess. log1p() keeps the digits of a small excess.
  // If the excess is near -1 the sum would cancel, so the terms are then added without the 1.
  if (largest < 700.0 && excess > -0.5) return std::log1p(excess);
  double sum = 0.0;
  for (std::size_t i = 0; i < mixture.centres.size(); ++i) {
    const double c = mixture.centres[i];
    sum += mixture.weights[i] * std::exp(c * (x - 0.5 * c) * inverse_variance - largest);
  }
  return largest + std::log(sum);
}

/// Twice the probabilities above and below a point x under a normal distribution.
struct TwoTails {
  TwoTails(double centre, double x, double inverse_root)
      : above(std::erfc((x - centre) * inverse_root)),
        below(std::erfc((centre - x) * inverse_root)) {}
  double above, below;
};

/// Returns the probability above x under the mixture. front: the tails of its first component at x.
/// inverse_root: 1 / (sigma sqrt(2)).
double above(const ScalarMixture& mixture, const TwoTails& front, double x, double inverse_root) {
  double sum = 0.0;
  for (std::size_t i = mixture.centres.size(); i-- > 1;)
    sum += mixture.weights[i] * std::erfc((x - mixture.centres[i]) * inverse_root);
  return 0.5 * (sum + mixture.weights[0] * front.above);
}

/// Returns the probability below x under the mixture. front: the tails of its first component at x.
double below(const ScalarMixture& mixture, const TwoTails& front, double x, double inverse_root) {
  double sum = mixture.weights[0] * front.below;
  for (std::size_t i = 1; i < mixture.centres.size(); ++i)
    sum += mixture.weights[i] * std::erfc((mixture.centres[i] - x) * inverse_root);
  return 0.5 * sum;
}

/// Privacy loss of a pair of Gaussian mixtures, as a function of the output x. The parameter is x
/// if the loss increases with x, otherwise -x.
class GaussianTails final : public LossTails {
 public:
  explicit GaussianTails(GaussianPair pair)
      : first_(std::move(pair.first)),
        second_(std::move(pair.second)),
        inverse_variance_(1.0 / pair.sigma / pair.sigma),
        inverse_root_(1.0 / pair.sigma / std::numbers::sqrt2),
        sign_(first_.centres.back() > second_.centres.back() ? 1.0 : -1.0) {
    const double reach = 17.0 * pair.sigma;
    const double min_x = first_.centres.front() - reach, max_x = first_.centres.back() + reach;
    const double low = edge(first_.centres.front(), min_x, below);
    const double high = edge(first_.centres.back(), max_x, above);
    // N(0) is at most 1 / weight times as likely as a mixture that contains N(0) itself.
    if (first_.centres.size() == 1 && second_.centres.front() == first_.centres.front())
      greatest_ = -std::log(second_.weights.front());
    begin_ = sign_ > 0.0 ? low : -high;
    end_ = sign_ > 0.0 ? high : -low;
  }

  TailPoint at(double parameter) const override {
    const double x = sign_ * parameter;
    const TwoTails p(first_.centres.front(), x, inverse_root_);
    // Both distributions usually have N(0), whose tails are computed once.
    const TwoTails q = second_.centres.front() == first_.centres.front()
                           ? p
                           : TwoTails(second_.centres.front(), x, inverse_root_);
    TailPoint point{
        .loss = log_ratio(first_, x, inverse_variance_) - log_ratio(second_, x, inverse_variance_),
        .p_above = above(first_, p, x, inverse_root_),
        .q_above = above(second_, q, x, inverse_root_),
        .p_below = below(first_, p, x, inverse_root_),
        .q_below = below(second_, q, x, inverse_root_)};
    if (sign_ < 0.0) {
      std::swap(point.p_above, point.p_below);
      std::swap(point.q_above, point.q_below);
    }
    return point;
  }

 private:
  /// Returns the end of the range of outputs that is used on one side: beyond it `first` has a
  /// probability below 1e-60. tail(...): returns the probability on that side of a point. centre:
  /// the outermost centre on that side. outside: 17 standard deviations beyond it. For large groups
  /// the result may be inside of the outer centres, because their weights are negligible. Tail:
  /// type of the function `tail`.
  template <class Tail>
  double edge(double centre, double outside, const Tail& tail) const {
    double inside = first_.centres.front() + first_.centres.back() - centre;
    for (int i = 0; i < 60; ++i) {
      const double middle = 0.5 * (inside + outside);
      const TwoTails front(first_.centres.front(), middle, inverse_root_);
      (tail(first_, front, middle, inverse_root_) > negligible ? inside : outside) = middle;
    }
    return outside;
  }

  ScalarMixture first_, second_;
  double inverse_variance_, inverse_root_;
  double sign_;
};

/// Privacy loss of q Lap(distance) + (1 - q) Lap(0) against Lap(0) (if an example is removed), or
/// the reverse (if one is added). Lap(c) is Laplace noise around c. The parameter `depth` is the
/// distance of the output from the centre where the loss is smallest, 0 to `distance`. The loss of
/// outputs that are not between the two centres is that at the nearer centre.
class LaplaceTails final : public LossTails {
 public:
  LaplaceTails(double q, double scale, double distance, Change change)
      : q_(q), scale_(scale), distance_(distance), change_(change) {
    begin_ = 0.0;
    end_ = distance;
    constant_beyond_ = true;
    greatest_ = LaplaceTails::at(end_).loss;
  }

  TailPoint at(double depth) const override {
    const bool removed = change_ == Change::remove;
    const double x = removed ? depth : distance_ - depth;
    // Tails of the two Laplace distributions beyond x.
    const double zero_right = 0.5 * std::exp(-x / scale_);
    const double moved_left = 0.5 * std::exp((x - distance_) / scale_);
    const double mixed_right = (1.0 - q_) * zero_right + q_ * (1.0 - moved_left);
    const double mixed_left = (1.0 - q_) * (1.0 - zero_right) + q_ * moved_left;
    const double moved = (2.0 * x - distance_) / scale_;
    // log(1 - q + q e^moved), without overflow of e^moved.
    const double loss = moved > 30.0 ? moved + std::log(q_ + (1.0 - q_) * std::exp(-moved))
                                     : std::log1p(q_ * std::expm1(moved));
    if (removed)
      return {.loss = loss,
              .p_above = mixed_right,
              .q_above = zero_right,
              .p_below = mixed_left,
              .q_below = 1.0 - zero_right};
    return {.loss = -loss,
            .p_above = 1.0 - zero_right,
            .q_above = mixed_left,
            .p_below = zero_right,
            .q_below = mixed_right};
  }

 private:
  double q_, scale_, distance_;
  Change change_;
};

/// Privacy loss of a bounded-range mechanism, whose losses lie in an interval of length `range` at
/// an unknown position. The tails are derivatives of the largest delta over all positions, (1 -
/// r)^2 / (1 - e^-range) with r = e^((loss - range)/2).
class BoundedRangeTails final : public LossTails {
 public:
  explicit BoundedRangeTails(double range) : range_(range), whole_(-std::expm1(-range)) {
    begin_ = -range;
    end_ = range;
    constant_beyond_ = true;
    greatest_ = range;
  }

  TailPoint at(double loss) const override {
    const double part = -std::expm1(0.5 * (loss - range_)) / whole_;
    const double above_second = part * std::exp(-0.5 * (loss + range_));
    const double rise = -std::expm1(-0.5 * (loss + range_)) / whole_;
    return {.loss = loss,
            .p_above = part,
            .q_above = above_second,
            .p_below = rise * std::exp(0.5 * (loss - range_)),
            .q_below = rise};
  }

 private:
  double range_, whole_;
};

[[noreturn]] void unknown(const Mechanism& mechanism, const std::string& expected) {
  throw std::domain_error(std::string(name(mechanism)) + ": expected " + expected);
}

bool needs_group_of_one(std::uint64_t k, const Mechanism& mechanism) {
  if (k == 1) return true;
  unknown(mechanism,
          "a group of 1 (no dominating pair is known for more), found " + std::to_string(k));
}

PrivacyLoss of_approximate_dp(const ApproximateDp& m) {
  // Randomised response with probability 1 - delta, otherwise the data itself.
  const double high = (1.0 - m.delta) / (1.0 + std::exp(-m.epsilon));
  const double low = (1.0 - m.delta) / (1.0 + std::exp(m.epsilon));
  return {.parts = {}, .atoms = {{m.epsilon, high}, {-m.epsilon, low}}, .infinite = m.delta};
}

PrivacyLoss of_tails(std::shared_ptr<const LossTails> tails) {
  return {.parts = {{1.0, std::move(tails)}}, .atoms = {}, .infinite = 0.0};
}

PrivacyLoss of_pairs(std::vector<GaussianPair> pairs) {
  PrivacyLoss loss;
  for (GaussianPair& pair : pairs) {
    const double probability = pair.probability;
    const bool same = pair.first.centres == pair.second.centres;
    if (same) {  // the examples have no effect
      loss.atoms.push_back({0.0, probability});
      continue;
    }
    loss.parts.push_back({probability, std::make_shared<GaussianTails>(std::move(pair))});
  }
  return loss;
}

}  // namespace

PrivacyLoss privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k) {
  if (change == Change::replace) return of_pairs(dominating_pairs(mechanism, change, k));
  if (const auto* m = std::get_if<Laplace>(&mechanism)) {
    check(mechanism);
    return of_tails(std::make_shared<LaplaceTails>(1.0, m->scale, static_cast<double>(k), change));
  }
  if (const auto* m = std::get_if<PoissonLaplace>(&mechanism)) {
    check(mechanism);
    if (m->q < 1.0) needs_group_of_one(k, mechanism);
    return of_tails(std::make_shared<LaplaceTails>(m->q, m->scale, static_cast<double>(k), change));
  }
  if (const auto* m = std::get_if<BoundedRange>(&mechanism)) {
    check(mechanism);
    return of_tails(std::make_shared<BoundedRangeTails>(m->epsilon * static_cast<double>(k)));
  }
  if (const auto* m = std::get_if<ApproximateDp>(&mechanism)) {
    check(mechanism);
    needs_group_of_one(k, mechanism);
    return of_approximate_dp(*m);
  }
  return of_pairs(dominating_pairs(mechanism, change, k));
}

namespace {

/// Maximum number of losses in the cache of known_privacy_loss().
constexpr std::size_t kMaxKnownLosses = 4;

struct KnownLoss {
  Mechanism mechanism;
  Change change;
  std::uint64_t k;
  PrivacyLoss loss;
};

}  // namespace

PrivacyLoss known_privacy_loss(const Mechanism& mechanism, Change change, std::uint64_t k) {
  static std::mutex mutex;
  static std::deque<KnownLoss> all;  // the newest first
  const std::lock_guard lock(mutex);
  for (KnownLoss& known : all) {
    if (known.mechanism != mechanism || known.change != change || known.k != k) continue;
    // Most losses that are needed once (at the sigmas that a calibration tries) are not needed
    // again, so only those that are have a tree.
    for (PrivacyLoss::Part& part : known.loss.parts)
      if (part.cells == nullptr) part.cells = std::make_shared<CellTree>();
    return known.loss;
  }
  PrivacyLoss loss = privacy_loss(mechanism, change, k);
  all.push_front({mechanism, change, k, loss});
  if (all.size() > kMaxKnownLosses) all.pop_back();
  return loss;
}

}  // namespace cudp::privacy::pld

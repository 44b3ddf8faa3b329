#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

/// Renyi curve of a sequence of releases, prepared for evaluation at many orders: equal mechanisms
/// are merged, and plain Gaussians are combined into one.
class RdpCurve {
 public:
  /// Throws like rdp for a mechanism out of range.
  explicit RdpCurve(std::span<const Release> releases, const Neighbours& neighbours = {});

  /// Returns the divergence of the whole sequence at one order, rounded up: the sum of the
  /// releases' divergences (Mironov 2017, arXiv:1702.07476, Proposition 1). Throws like rdp.
  double at(double order) const;

  /// Returns a larger bound, computed faster, for thousands of Poisson-sampled Gaussians with a
  /// common sampling rate: each sigma counts as the next smaller of `entries` ones at equal ratios.
  /// The loss is at most that of one ratio: for divergences proportional to 1/sigma^2, 2
  /// log(largest / smallest) / entries, relatively. Nothing is lost if there are fewer than twice
  /// as many sigmas as entries.
  double grouped(double order, std::size_t entries) const;

  /// Returns an estimate, not a bound, within about 1e-3 of the value: each sigma counts as the
  /// nearest entry. Used to choose an order.
  double estimate(double order, std::size_t entries) const;

  /// Sum of failure_of over the releases.
  double failure() const { return failure_; }
  bool releases_nothing() const { return nothing_; }
  const Neighbours& neighbours() const { return neighbours_; }

 private:
  /// Poisson-sampled Gaussians with one rate, by ascending sigma.
  struct Rate {
    double q = 0.0;
    std::vector<double> sigma;
    std::vector<double> count;
  };
  double sum(double order, std::size_t entries, double position) const;
  double of_table(const Rate& rate, double order, std::size_t entries, double position) const;

  Neighbours neighbours_;
  double precision_ = 0.0;  ///< sum of count / sigma^2 over the plain Gaussians
  std::vector<Rate> rates_;
  std::vector<Release> others_;
  double failure_ = 0.0;
  double roundings_ = 0.0;
  bool nothing_ = true;
};

/// Returns the smallest epsilon, or delta, that the curve gives by Canonne, Kamath, Steinke 2020
/// (arXiv:2004.00010), Proposition 12, over the given orders. Without orders it searches all,
/// between and beyond the default ones, from 1 + 1e-6 to largest_order. The deltas of ApproximateDp
/// releases are part of delta. The order is chosen by RdpCurve::estimate and then evaluated: by
/// RdpCurve::at for single examples, with 1024 entries for groups, whose divergences take a
/// thousand times longer. Throws std::invalid_argument on arguments out of range or if no order
/// gives a finite epsilon, std::domain_error if a mechanism has no bound, or if delta does not
/// exceed those deltas.
PrivacyBound epsilon_by_rdp(std::span<const Release> releases, double delta,
                            const Neighbours& neighbours = {}, std::span<const double> orders = {});
PrivacyBound delta_by_rdp(std::span<const Release> releases, double epsilon,
                          const Neighbours& neighbours = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy

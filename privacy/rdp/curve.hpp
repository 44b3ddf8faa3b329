#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

/// The Renyi curve of a sequence of releases, prepared for many orders: equal mechanisms are
/// merged, and plain Gaussians are one.
class RdpCurve {
 public:
  /// Throws what rdp throws for a mechanism out of range.
  explicit RdpCurve(std::span<const Release> releases, const Neighbours& neighbours = {});

  /// The divergence of the whole sequence at one order, rounded up: the sum of the releases'
  /// (Mironov 2017, arXiv:1702.07476, Proposition 1). Throws what rdp throws.
  double at(double order) const;

  /// A quicker curve for thousands of Poisson-sampled Gaussians that share a sampling rate: each
  /// sigma counts as the next smaller of `entries` ones at equal ratios. The loss is at most that
  /// of one ratio: for divergences that go as 1/sigma^2, 2 log(largest / smallest) / entries,
  /// relatively. Nothing is lost where there are fewer than twice as many sigmas as entries.
  double grouped(double order, std::size_t entries) const;

  /// No bound, but within 1e-3 or so of the value: each sigma counts as the nearest entry. For
  /// choosing an order.
  double estimate(double order, std::size_t entries) const;

  /// The sum of failure_of over the releases.
  double failure() const { return failure_; }
  bool releases_nothing() const { return nothing_; }
  const Neighbours& neighbours() const { return neighbours_; }

 private:
  /// Poisson-sampled Gaussians of one rate, by ascending sigma.
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

/// Smallest epsilon, or delta, that the curve gives, by Canonne, Kamath, Steinke 2020
/// (arXiv:2004.00010), Proposition 12, of the orders given; of all orders if none are: a search
/// between and beyond the default ones, from 1 + 1e-6 to largest_order. What ApproximateDp releases
/// set aside is part of delta. The order is chosen by RdpCurve::estimate and then evaluated: by
/// RdpCurve::at for single examples, by 1024 entries for groups, whose divergences take a thousand
/// times longer.
/// Throws std::invalid_argument on arguments out of range or where no order gives a finite epsilon,
/// std::domain_error where a mechanism has no bound, or where delta is not above what is set aside.
PrivacyBound epsilon_by_rdp(std::span<const Release> releases, double delta,
                            const Neighbours& neighbours = {}, std::span<const double> orders = {});
PrivacyBound delta_by_rdp(std::span<const Release> releases, double epsilon,
                          const Neighbours& neighbours = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy

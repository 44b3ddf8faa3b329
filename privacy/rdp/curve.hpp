#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

/// Computes the Renyi divergence of a sequence of releases at many orders. The constructor makes
/// this fast: it merges equal mechanisms, and combines Gaussians without sampling into one.
class RdpCurve {
 public:
  /// Prepares the divergences of these releases. neighbours: the relation between data sets, and
  /// the group size. Throws std::invalid_argument if a number of a mechanism is out of its range.
  explicit RdpCurve(std::span<const Release> releases, const Neighbours& neighbours = {});

  /// Returns the Renyi divergence of the whole sequence at one order [nats], rounded up: the sum of
  /// the releases' divergences (Mironov 2017, arXiv:1702.07476, Proposition 1). Throws
  /// std::invalid_argument if the order is out of range, std::domain_error if no bound is known for
  /// a mechanism.
  double at(double order) const;

  /// Returns a faster and larger bound than at(), for thousands of Poisson-sampled Gaussians that
  /// have the same sampling rate and different sigmas. Each sigma is replaced by the next smaller
  /// one of `entries` sigmas in a geometric sequence. For divergences proportional to 1/sigma^2 the
  /// relative loss is at most 2 log(largest / smallest sigma) / entries. Nothing is lost if there
  /// are fewer than twice as many sigmas as entries.
  double grouped(double order, std::size_t entries) const;

  /// Returns an estimate of at(), not a bound, within about 1e-3 of its value: each sigma is
  /// replaced by the nearest of `entries` sigmas. Used to find the best order quickly.
  double estimate(double order, std::size_t entries) const;

  /// Returns the sum of the deltas of ApproximateDp releases, which no Renyi divergence covers
  /// (failure_of()); the caller must add it to delta.
  double failure() const { return failure_; }
  bool releases_nothing() const { return nothing_; }
  const Neighbours& neighbours() const { return neighbours_; }

 private:
  /// The Poisson-sampled Gaussian releases that have one sampling rate q: their noise multipliers,
  /// ascending, and the number of releases with each.
  struct Rate {
    double q = 0.0;
    std::vector<double> sigma;
    std::vector<double> count;
  };
  double sum(double order, std::size_t entries, double position) const;
  double of_table(const Rate& rate, double order, std::size_t entries, double position) const;

  Neighbours neighbours_;
  double precision_ = 0.0;  ///< sum of count / sigma^2 over the Gaussians without sampling
  std::vector<Rate> rates_;
  std::vector<Release> others_;
  double failure_ = 0.0;
  double roundings_ = 0.0;
  bool nothing_ = true;
};

/// Returns the smallest epsilon at delta that follows from the releases' Renyi divergences at the
/// given orders, by Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12. If `orders`
/// is empty, it searches all orders from 1 + 1e-6 to largest_order. The deltas of ApproximateDp
/// releases are part of delta. The order is chosen by RdpCurve::estimate and then evaluated: by
/// RdpCurve::at for single examples, or by RdpCurve::grouped with 1024 entries for groups, whose
/// divergences take a thousand times longer. Throws std::invalid_argument on arguments out of range
/// or if no order gives a finite epsilon, std::domain_error if a mechanism has no bound, or if
/// delta does not exceed those deltas. neighbours: the relation between data sets, and the group
/// size.
PrivacyBound epsilon_by_rdp(std::span<const Release> releases, double delta,
                            const Neighbours& neighbours = {}, std::span<const double> orders = {});
/// Returns the smallest delta at epsilon that follows from the releases' Renyi divergences at the
/// given orders; if `orders` is empty, at all orders from 1 + 1e-6 to largest_order. The deltas of
/// ApproximateDp releases are part of the result. Throws std::invalid_argument on arguments out of
/// range, std::domain_error if a mechanism has no bound. neighbours: the relation between data
/// sets, and the group size.
PrivacyBound delta_by_rdp(std::span<const Release> releases, double epsilon,
                          const Neighbours& neighbours = {}, std::span<const double> orders = {});

}  // namespace cudp::privacy

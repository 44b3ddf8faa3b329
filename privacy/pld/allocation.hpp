#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {

/// Whether a table or a privacy loss bounds the true one from above (above) or from below (below).
enum class Side : std::uint8_t { above, below };

/// Accuracy of the tables (AllocationTable) that bound the privacy loss of epochs of random
/// allocation, in which each example is in one random step of the epoch.
struct AllocationGrid {
  std::size_t points = 1000;  ///< number of points of each table
  /// Probability, in (0, 1e-3], that a sum of likelihood ratios may lie outside of its table, at
  /// either end. In an upper bound it is not lost: it counts as an infinite loss.
  double cut = 1e-20;
  auto operator<=>(const AllocationGrid&) const = default;
};

/// A table (points with probabilities, `mass`) that bounds a sum S >= 0 of likelihood ratios from
/// one side: for convex functions f, the mean E f(S) is at most (`above`) or at least (`below`)
/// about the sum of mass f(point). Precisely, with sums over the entries of the table:
///   above: E f(S) <= (1 + mass_error) (sum of mass f((1 +- point_error) point) + excess slope)
///   below: E f(S) >= (1 - mass_error) (sum of mass f((1 -+ point_error) point))
/// for each convex f >= 0 that is monotone; slope is the slope of f at infinity. The upper sign of
/// point_error is for functions that increase, the lower one for those that decrease.
struct AllocationTable {
  std::vector<double> points;  ///< ascending, the first one may be 0
  std::vector<double> mass;
  double excess = 0.0;  ///< part of the mean of S that lies beyond the last point
  double point_error = 0.0, mass_error = 0.0;
};

/// Returns a table (AllocationTable) that bounds means E f(S) of the sum S = W_1 + ... + W_steps,
/// from above or from below. Each W_i = e^(z_i / sigma - 1 / (2 sigma^2))
/// with independent standard normal z_i. S is `steps` times the likelihood ratio of an epoch.
/// Throws std::domain_error if sigma is so small that the sum exceeds the range of double. side:
/// whether the means are bounded from above or from below. grid: accuracy of the table.
AllocationTable allocation_table(const AllocatedGaussian& epoch, Side side,
                                 const AllocationGrid& grid);

/// Returns an upper bound (`above`) or a lower bound (`below`) on the privacy loss of one epoch,
/// for one example added or removed. The proof is in privacy/README.md. epoch: number of steps and
/// noise. k: number of examples changed. The newest tables are cached, for all threads; adding and
/// removing use the same table. Throws std::domain_error if no bound is known (examples replaced,
/// or k > 1), or if sigma is so small that allocation_table() throws. change: what is done to the
/// examples (added, removed, replaced). grid: accuracy of the tables.
PrivacyLoss allocation_loss(const AllocatedGaussian& epoch, Change change, std::uint64_t k,
                            Side side, const AllocationGrid& grid);

/// Returns releases whose composition is at least as revealing as `epochs` epochs of `steps` steps,
/// in each of which every example is in exactly `uses` steps, chosen uniformly and in secret. Each
/// epoch is replaced by `uses` shorter ones, in each of which an example is used once. An upper
/// bound only: the true privacy loss may be lower. Throws std::invalid_argument unless 1 <= uses <=
/// steps.
std::vector<Release> allocated_uses(std::uint64_t steps, std::uint64_t uses, double sigma,
                                    std::uint64_t epochs);

}  // namespace cudp::privacy::pld

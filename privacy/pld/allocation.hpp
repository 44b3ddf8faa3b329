#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {

/// Whether a table or loss is an upper bound (above) or a lower bound (below).
enum class Side : std::uint8_t { above, below };

/// Accuracy of the tables that bound epochs of random allocation.
struct AllocationGrid {
  std::size_t points = 1000;
  /// Probability that each sum of likelihood ratios may leave its table at either end, in (0,
  /// 1e-3]. In an upper bound it is not lost: it counts as an infinite loss.
  double cut = 1e-20;
  auto operator<=>(const AllocationGrid&) const = default;
};

/// A distribution on points >= 0 that bounds a sum S of likelihood ratios in convex order.
/// `above`: E f(S) <= (1 + mass_error) (sum of mass f((1 +- point_error) point) + excess slope) for
/// each convex f >= 0 that is monotone, where slope is that of f at infinity; + for functions that
/// increase, - for those that decrease. `below`: E f(S) >= (1 - mass_error) (sum of mass f((1 -+
/// point_error) point)).
struct AllocationTable {
  std::vector<double> points;  ///< ascending, the first one may be 0
  std::vector<double> mass;
  double excess = 0.0;  ///< mean that lies at infinity
  double point_error = 0.0, mass_error = 0.0;
};

/// Returns the table of W_1 + ... + W_steps, where W = e^(z / sigma - 1 / (2 sigma^2)) with
/// independent standard normal z: `steps` times the likelihood ratio of an epoch. Throws
/// std::domain_error if sigma is so small that the ratio exceeds double.
AllocationTable allocation_table(const AllocatedGaussian& epoch, Side side,
                                 const AllocationGrid& grid);

/// Returns a loss that dominates that of one epoch (`above`), or one that it dominates (`below`),
/// for one example added or removed. The proof is in privacy/README.md. The last tables are
/// kept, for all threads: both changes use the same one. Throws std::domain_error for another
/// change or a group of more than one, for which no bound is known, and like allocation_table.
PrivacyLoss allocation_loss(const AllocatedGaussian& epoch, Change change, std::uint64_t k,
                            Side side, const AllocationGrid& grid);

/// Returns releases whose composition dominates `epochs` epochs of `steps` steps, if each example
/// is used in exactly `uses` steps of each, chosen uniformly and in secret: epochs of `uses` parts,
/// in each of which an example is used once. An upper bound only: the truth may be lower. Throws
/// std::invalid_argument unless 1 <= uses <= steps.
std::vector<Release> allocated_uses(std::uint64_t steps, std::uint64_t uses, double sigma,
                                    std::uint64_t epochs);

}  // namespace cudp::privacy::pld

// Sums of private numbers at as many rows as a run may have: whole steps of a grid that all rows
// together stay within 53 bits of where they are doubles, or 63 where they are integers, so that
// what one row adds depends on no other.
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "kernels/contribution/norm_total.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/features/pca.hpp"
#include "runtime/features/standardise.hpp"

namespace cudp {
namespace {

constexpr double kRows[] = {1.0, 1000.0, 0x1p23, 0x1p24 + 1.0, 0x1p31 - 1.0, 0x1p31};

TEST(ExactSums, OfSecondMomentsAndMomentsOfChannels) {
  for (const double rows : kRows)
    for (const double sigma : {1e-3, 1.0, 1e6}) {
      // A row adds at most 2^(2 bits) to a number, or 2^bits.
      EXPECT_LE(rows * std::ldexp(1.0, 2 * row_bits(rows, sigma)), 0x1p53) << rows;
      EXPECT_LE(rows * std::ldexp(1.0, moment_bits(rows, sigma)), 0x1p53) << rows;
    }
}

TEST(ExactSums, OfGradientsAndLossesOfLinearModels) {
  for (const double rows : kRows)
    for (const double bound : {1e-3, 0.7, 1.0, 3.0, 1024.0}) {
      const double grid = linear_grid(bound, rows);
      // Rounded to the grid a number is at most the next multiple of it. A score has as much added
      // to it, which is public (DpAgd::objective).
      EXPECT_LE(rows * std::ceil(bound / grid), 0x1p52) << rows << ", " << bound;
      EXPECT_GE(linear_loss_sensitivity(bound, rows), bound + 0.5 * grid);
      EXPECT_GE(linear_gradient_sensitivity(bound, 1, rows), bound + 0.5 * grid);
    }
}

/// The norms of DPIS are cut to 2^-30 of what they are clipped to, or coarser.
TEST(ExactSums, OfNorms) {
  for (const double max_norm : {1e-3, 1.0, 1.999}) {
    const double grid = std::ldexp(1.0, std::ilogb(max_norm) - 30);
    EXPECT_LT(norm_units(INFINITY, max_norm, grid), std::uint64_t{1} << 31);
    EXPECT_LE(0x1p31 * static_cast<double>(norm_units(INFINITY, max_norm, grid)), 0x1p62);
  }
}

TEST(ExactSums, OfClippedGradients) { EXPECT_LE(0x1p31 * kMaxUnits, 0x1p62); }

}  // namespace
}  // namespace cudp

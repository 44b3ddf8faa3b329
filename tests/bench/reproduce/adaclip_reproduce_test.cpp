#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "bench/reproduce/adaclip_tables.hpp"
#include "bench/reproduce/regression_toy.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

double excess(ToyMethod method, int dimensions, float most = 1e-10f) {
  double mean = 0.0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    mean += regression_excess({.dimensions = dimensions, .method = method, .max_variance = most},
                              seed) /
            3;
  return mean;
}

/// The paper's figure 2: DP-SGD's error grows with the dimension, AdaCliP's stays below what DP-SGD
/// has in one.
TEST(RegressionToy, ErrorGrowsWithTheDimensionForDpSgdOnly) {
  const double one = excess(ToyMethod::dpsgd, 1);
  const double many = excess(ToyMethod::dpsgd, 1000);
  // Of d - 1 stationary coordinates: eta sigma^2 / (2 (2 - eta)) each, times 1/2 for the loss and
  // more for what clipping takes away.
  EXPECT_GT(many - one, 999 * 0.5 * 0.01 * 0.01 / 1.99 * 0.8);
  EXPECT_LT(excess(ToyMethod::adaclip, 100), 0.01 * one);
  EXPECT_LT(excess(ToyMethod::adaclip, 1000), 0.3 * one);
}

/// What the table's note says of a large h2: the estimate's own noise feeds back.
TEST(RegressionToy, ALargeH2LetsTheScaleRunAway) {
  EXPECT_LT(excess(ToyMethod::adaclip, 10, 1.0f), 1e-4);
  EXPECT_GT(excess(ToyMethod::adaclip, 300, 1.0f), excess(ToyMethod::dpsgd, 300));
}

TEST(AdaClipTables, StandBesideThePapersNumbers) {
  const auto data = shared_file("data");
  if (!std::filesystem::exists(data / "mnist")) GTEST_SKIP() << "no MNIST";
  Reporter quiet(true);
  const ReproducedTable t =
      adaclip_table1({.data_dir = data.string(), .quick = true, .seeds = 1, .threads = 0}, quiet);
  EXPECT_EQ(t.columns, (std::vector<double>{0.5, 2.0}));
  ASSERT_EQ(t.groups.size(), 1u);
  ASSERT_EQ(t.groups[0].measured.size(), 3u);
  const double paper[3][2] = {{84.30, 89.65}, {90.13, 90.97}, {90.29, 91.15}};
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(t.groups[0].published[r].values[c], paper[r][c]);
      EXPECT_GT(t.groups[0].measured[r].values[c], paper[r][c] - 0.5);
    }
}

}  // namespace
}  // namespace cudp

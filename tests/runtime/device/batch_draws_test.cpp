// Batches that are drawn on the host: the memory that they take follows from the batch, and not
// from the number of examples.
#include "runtime/device/batch_draws.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/threads.hpp"

namespace cudp {
namespace {

Dataset labelled(std::size_t size) {
  Dataset data;
  data.shape = {1, 1, 1};
  data.classes = 2;
  data.labels.resize(size);
  return data;
}

BatchDraws draws_of(const Dataset& data, ThreadTeam& team) {
  return {data, Generator::philox, SharedKey(key_from_seed(7)), team};
}

TEST(BatchDraws, AreThoseOfOneCall) {
  const Dataset data = labelled(3'000'001);
  std::vector<std::uint32_t> all(data.size());
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    BatchDraws draws = draws_of(data, team);
    for (const std::uint64_t threshold : {0ull, 1ull << 20, 1ull << 31, 1ull << 32}) {
      const std::int64_t count =
          cpu_kernels(best_simd_level())
              .sample({.stream = {Generator::philox, key_from_seed(7), Stream::sampling, 5},
                       .threshold = threshold,
                       .begin = 0,
                       .end = static_cast<std::int64_t>(data.size()),
                       .drawn = all.data()});
      const auto batch = draws.draw(5, Poisson{threshold});
      EXPECT_TRUE(std::ranges::equal(batch, std::span(all).first(static_cast<std::size_t>(count))))
          << threshold;
    }
  }
}

/// An epoch with more examples than are allocated ahead.
TEST(BatchDraws, AllocateAnEpochInParts) {
  constexpr std::uint64_t kSteps = 5;
  const Dataset data = labelled(BatchDraws::kMaxAllocated + BatchDraws::kMaxAllocated / 16);
  ThreadTeam team(2);
  BatchDraws draws = draws_of(data, team);
  std::vector<std::uint8_t> seen(data.size());
  std::vector<std::uint32_t> last;
  for (std::uint64_t step = kSteps; step < 2 * kSteps; ++step) {
    const auto batch = draws.draw(step, Allocation{kSteps});
    EXPECT_TRUE(std::ranges::is_sorted(batch));
    EXPECT_NEAR(static_cast<double>(batch.size()), static_cast<double>(data.size()) / kSteps, 1e4);
    for (const std::uint32_t i : batch) ++seen[i];
    last.assign(batch.begin(), batch.end());
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; }));
  BatchDraws again = draws_of(data, team);
  EXPECT_TRUE(std::ranges::equal(again.draw(2 * kSteps - 1, Allocation{kSteps}), last));
  EXPECT_TRUE(std::ranges::equal(draws.draw(2 * kSteps - 1, Allocation{kSteps}), last));
}

}  // namespace
}  // namespace cudp

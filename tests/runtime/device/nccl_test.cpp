// NCCL without a device: the library is loaded, gives its version and an id, and refuses; how it is
// waited for. Its sums are made on devices alone (tests/gpu/nccl_gpu_test.cpp).
#include "runtime/device/cuda/nccl.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/rank_sums.hpp"
#include "runtime/ranks/launch.hpp"
#include "tests/support/thread_ranks.hpp"

namespace cudp {
namespace {

class NcclLibrary : public testing::Test {
 protected:
  void SetUp() override {
    try {
      version_ = cuda::nccl_version();
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  int version_ = 0;
};

TEST_F(NcclLibrary, HasAVersionAndMakesIds) {
  EXPECT_GE(version_, 21400);
  EXPECT_LT(version_, 100'000);
  const std::string one = cuda::NcclRanks::new_id();
  EXPECT_EQ(one.size(), 128u);
  EXPECT_NE(one, cuda::NcclRanks::new_id());
}

/// A Gpu of which NCCL knows nothing.
struct NoGpu {
  Ranks& ranks;
  int left = 0;

  DeviceSums device_sums() const {
    return {.library = cuda::nccl_name(cuda::nccl_version()),
            .device = std::to_string(ranks.rank())};
  }
  static std::string id_for_sums() { return cuda::NcclRanks::new_id(); }
  static void join_ranks(Ranks& all, const std::string& id) { cuda::NcclRanks joined(all, id); }
  void leave_ranks() { ++left; }
  static void sum_over_ranks(std::uint64_t*, std::size_t) {}
  static void upload(void*, const void*, std::size_t) {}
  static void download(void*, const void*, std::size_t) {}
  static void clear(void*, std::size_t) {}
};

/// Every rank hears the same line and goes on by the host. A process of its own for each: NCCL
/// takes one rank a process.
TEST_F(NcclLibrary, RefusesWithoutADeviceInOneLineOnAllRanks) {
  if (std::system("test -e /dev/nvidiactl") == 0) GTEST_SKIP() << "there may be a device";
  const auto ask = [](Ranks& ranks) {
    NoGpu gpu{ranks};
    return join_on_devices(gpu, ranks, nullptr, 3) + (gpu.left == 1 ? "" : "; it did not leave");
  };
  const auto ranks = fork_ranks(2, std::chrono::seconds(60), [&](Ranks& mine) {
    (void)gather_text(mine, "lines", ask(mine));
    return Exit::ok;
  });
  const std::string line = ask(*ranks);
  EXPECT_TRUE(line.starts_with("rank 0: NCCL: bring the ranks together: ")) << line;
  EXPECT_NE(line.find("cuda"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  for (const std::string& other : gather_text(*ranks, "lines", line)) EXPECT_EQ(other, line);
}

TEST(NcclVersions, AreNamedAndMayShareADevice) {
  EXPECT_EQ(cuda::nccl_name(22809), "NCCL 2.28.9");
  EXPECT_EQ(cuda::nccl_name(23007), "NCCL 2.30.7");
  ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  EXPECT_FALSE(cuda::nccl_may_share(23007));
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_TRUE(cuda::nccl_may_share(23007));
  EXPECT_FALSE(cuda::nccl_may_share(22809));
  ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

/// What wait_watched says; empty: it came to its end.
std::string waited(Ranks& ranks, std::chrono::milliseconds limit, int turns,
                   const std::string& failure) {
  try {
    cuda::wait_watched(
        ranks, "the sum of a step", limit, [&] { return turns-- == 0; }, [&] { return failure; });
  } catch (const RanksError& e) {
    return std::string("another rank: ") + e.what();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(WaitForNccl, EndsWithTheDeviceOrWithOneLine) {
  constexpr std::chrono::milliseconds kShort(200);
  EXPECT_EQ(waited(alone(), kShort, 0, "wrong"), "");
  EXPECT_EQ(waited(alone(), std::chrono::minutes(5), 2'000, ""), "");
  EXPECT_EQ(waited(alone(), kShort, -1, "NCCL: the sum of a step: remote error"),
            "NCCL: the sum of a step: remote error");
  EXPECT_EQ(waited(alone(), kShort, -1, ""),
            "rank 0: NCCL did not end \"the sum of a step\" within 0.2 s (--rank-timeout)");
}

/// Whoever is lost need not be waited for until the time is over.
TEST(WaitForNccl, EndsWhereAnotherRankHasEndedTheTraining) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> reasons = try_on_ranks(2, [&](Ranks& ranks) {
    if (ranks.rank() == 1) throw Error("rank 1 is out of memory");
    const std::string why = waited(ranks, std::chrono::minutes(5), -1, "");
    EXPECT_EQ(why, "another rank: rank 1 is out of memory");
  });
  EXPECT_EQ(reasons[1], "rank 1 is out of memory");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace cudp

#include "runtime/ranks/ranks.hpp"

#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/threads.hpp"
#include "runtime/data/share.hpp"
#include "runtime/ranks/launch.hpp"
#include "tests/support/thread_ranks.hpp"

namespace cudp {
namespace {

/// A number of a rank that uses all 64 bits.
std::int64_t number(int rank, std::size_t i) {
  return static_cast<std::int64_t>(0x9e3779b97f4a7c15 *
                                   (static_cast<std::uint64_t>(rank) * 7919 + i + 1));
}

TEST(Ranks, SumsAreModulo2To64OfAnyLength) {
  for (const int n : {1, 2, 3, 7})
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5},
                                   SharedBoard::kChunk, 2 * SharedBoard::kChunk + 17}) {
      std::vector<std::int64_t> want(size);
      for (std::size_t i = 0; i < size; ++i) {
        std::uint64_t total = 0;
        for (int r = 0; r < n; ++r) total += static_cast<std::uint64_t>(number(r, i));
        want[i] = static_cast<std::int64_t>(total);
      }
      std::mutex adding;
      int right = 0;
      on_ranks(n, [&](Ranks& ranks) {
        for (int turn = 0; turn < 3; ++turn) {
          std::vector<std::int64_t> mine(size);
          for (std::size_t i = 0; i < size; ++i) mine[i] = number(ranks.rank(), i);
          ranks.sum("numbers", mine);
          const std::lock_guard lock(adding);
          right += mine == want ? 1 : 0;
        }
      });
      EXPECT_EQ(right, 3 * n) << n << " ranks, " << size << " numbers";
    }
}

TEST(Ranks, BroadcastAndGather) {
  const std::string long_text(3 * SharedBoard::kChunk * 8 + 5, 'x');
  for (const int n : {1, 2, 5})
    on_ranks(n, [&](Ranks& ranks) {
      for (const std::string& text : {std::string(), std::string("ledger"), long_text}) {
        std::string heard = ranks.leads() ? text : "something else";
        broadcast_text(ranks, "text", heard);
        ensure(heard == text, "a text arrives as it was sent");
        // Of different lengths, the first one's empty.
        const std::string mine(static_cast<std::size_t>(ranks.rank()) * 200'000,
                               static_cast<char>('a' + ranks.rank()));
        const std::vector<std::string> all = gather_text(ranks, "texts", mine);
        if (!ranks.leads()) {
          ensure(all.empty(), "only rank 0 hears");
          continue;
        }
        ensure(all.size() == static_cast<std::size_t>(n), "a text of each");
        for (int r = 0; r < n; ++r)
          ensure(all[static_cast<std::size_t>(r)] ==
                     std::string(static_cast<std::size_t>(r) * 200'000, static_cast<char>('a' + r)),
                 "texts in the order of the ranks");
      }
    });
}

TEST(Ranks, AnotherFunctionOrSizeIsAnErrorOnAll) {
  const auto expect_all = [](const std::function<void(Ranks&)>& body, const char* text) {
    for (const std::string& reason : try_on_ranks(3, body))
      EXPECT_NE(reason.find(text), std::string::npos) << reason;
  };
  std::vector<std::int64_t> shared(8);
  expect_all(
      [&](Ranks& ranks) {
        std::vector<std::int64_t> numbers(ranks.rank() == 2 ? 3 : 4);
        ranks.sum("numbers", numbers);
      },
      "numbers");
  expect_all(
      [&](Ranks& ranks) {
        std::vector<std::int64_t> numbers(4);
        ranks.sum(ranks.rank() == 1 ? "the sum of step 8" : "the sum of step 7", numbers);
      },
      "the sum of step 8");
  expect_all(
      [&](Ranks& ranks) {
        std::int64_t one = 0;
        if (ranks.rank() == 1)
          ranks.broadcast("a number", std::as_writable_bytes(std::span(&one, 1)));
        else
          ranks.sum("a number", {&one, 1});
      },
      "a number");
}

TEST(Ranks, ARankThatDoesNotComeIsNamed) {
  const auto reasons = try_on_ranks(
      3,
      [](Ranks& ranks) {
        std::int64_t one = 1;
        if (ranks.rank() != 2) ranks.sum("the sum of a step", {&one, 1});
      },
      std::chrono::seconds(2));
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(reasons[static_cast<std::size_t>(r)],
              "rank 2 did not come to \"the sum of a step\" within 2 s (--rank-timeout)");
}

TEST(Ranks, OneEndsTheTrainingOfAll) {
  const auto reasons = try_on_ranks(4, [](Ranks& ranks) {
    if (ranks.rank() == 3) throw InputError("small.csv: expected a row, found none");
    std::int64_t one = 1;
    for (;;) ranks.sum("the sum of a step", {&one, 1});
  });
  for (const std::string& reason : reasons)
    EXPECT_EQ(reason, "small.csv: expected a row, found none");
}

TEST(Ranks, ALostProcessIsNamed) {
  std::string heard;
  {
    const auto ranks = fork_ranks(3, std::chrono::seconds(60), [](Ranks& mine) -> Exit {
      std::int64_t one = 1;
      mine.sum("the first", {&one, 1});
      if (mine.rank() == 2) ::_exit(9);
      mine.sum("the second", {&one, 1});
      return Exit::ok;
    });
    std::int64_t one = 1;
    ranks->sum("the first", {&one, 1});
    EXPECT_EQ(one, 3);
    try {
      ranks->sum("the second", {&one, 1});
    } catch (const RanksError& e) {
      heard = e.what();
    }
  }
  share_cores(1);
  EXPECT_EQ(heard, "rank 2 ended with exit code 9");
}

TEST(Ranks, RangesAreThePartsOfTheWhole) {
  for (const std::size_t n : {0, 1, 511, 512, 513, 5000, 60000})
    for (const int size : {1, 2, 3, 7, 64}) {
      std::size_t at = 0;
      std::size_t least = std::numeric_limits<std::size_t>::max();
      std::size_t most = 0;
      for (int r = 0; r < size; ++r) {
        const ExampleRange range = range_of(r, size, n);
        EXPECT_EQ(range.begin, at);
        EXPECT_TRUE(range.begin % kRangeTile == 0 || range.size() == 0);
        at = range.end;
        least = std::min(least, range.size());
        most = std::max(most, range.size());
      }
      EXPECT_EQ(at, n);
      EXPECT_LE(most, least + 2 * kRangeTile);
      EXPECT_EQ(range_of(0, size, n).size() > 0, n > 0);
    }
}

}  // namespace
}  // namespace cudp

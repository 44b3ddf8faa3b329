// Hold-outs: units go as a whole, by a coin of their own, and batches are drawn by numbers in the
// file.
#include "runtime/data/holdout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/examples.hpp"
#include "runtime/data/numbering.hpp"

namespace cudp {
namespace {

/// Rows whose one number is their place; with units, row i is of unit i modulo `units`.
Dataset rows(std::size_t n, std::size_t units) {
  Dataset d;
  d.shape = {1, 1, 1};
  d.classes = 2;
  for (std::size_t i = 0; i < n; ++i) {
    d.floats.push_back(static_cast<float>(i));
    d.labels.push_back(static_cast<std::uint8_t>(i % 2));
    if (units > 0) d.first_rows.push_back(static_cast<std::uint32_t>(i % units));
  }
  return d;
}

/// All rows at once, of which this share is kept.
HeldOut hold_out(const Dataset& used, const RandomKey& key, double share, Share kept = {}) {
  HoldOutDraws draws(key, share);
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < used.size(); ++i)
    held += draws.holds_out(used.first_rows.empty() ? i : used.first_rows[i]) ? 1 : 0;
  HoldOutSplitter splitter(draws, KeptRange(empty_like(used), kept, used.size() - held),
                           KeptRange(empty_like(used), kept, held));
  splitter.take(used);
  return splitter.finish("rows");
}

TEST(HoldOutOfRows, PutsEachIntoOnePartInTheOrderOfTheFile) {
  const HeldOut parts = hold_out(rows(1'000, 0), key_from_seed(1), 0.3);
  ASSERT_EQ(parts.train.size() + parts.held.size(), 1'000u);
  std::vector<int> seen(1'000, 0);
  EXPECT_TRUE(std::ranges::is_sorted(parts.train.numbers));
  for (std::size_t i = 0; i < parts.train.size(); ++i) {
    EXPECT_EQ(parts.train.floats[i], static_cast<float>(parts.train.numbers[i]));
    ++seen[parts.train.numbers[i]];
  }
  for (const float x : parts.held.floats) ++seen[static_cast<std::size_t>(x)];
  EXPECT_EQ(seen, std::vector<int>(1'000, 1));
}

TEST(HoldOutOfRows, MovesNoRowWithTheSameKeyAndOthersWithAnother) {
  const auto numbers = [](std::size_t n, std::uint64_t seed) {
    return copy_of(hold_out(rows(n, 0), key_from_seed(seed), 0.5).train.numbers);
  };
  const std::vector<std::uint32_t> some = numbers(200, 1);
  EXPECT_EQ(numbers(200, 1), some);
  EXPECT_NE(numbers(200, 2), some);
  // A row's coin is its own: more rows behind it change nothing of it.
  std::vector<std::uint32_t> of_longer = numbers(300, 1);
  std::erase_if(of_longer, [](std::uint32_t i) { return i >= 200; });
  EXPECT_EQ(of_longer, some);
}

TEST(HoldOutOfUnits, KeepsAUnitTogether) {
  const HeldOut parts = hold_out(rows(900, 90), key_from_seed(4), 0.4);
  std::vector<int> where(90, -1);
  const auto see = [&](const Dataset& part, int at) {
    for (const float x : part.floats) {
      int& known = where[static_cast<std::size_t>(x) % 90];
      EXPECT_TRUE(known == -1 || known == at);
      known = at;
    }
  };
  see(parts.train, 0);
  see(parts.held, 1);
  EXPECT_GT(std::ranges::count(where, 1), 15);
  EXPECT_LT(std::ranges::count(where, 1), 60);
}

/// Over many keys each unit is held out as often as it should, and independently of the next: a
/// false alarm has probability 1e-6.
TEST(HoldOutOfUnits, TossesACoinOfItsOwnForEach) {
  constexpr int kKeys = 4'000;
  const double share = 0.3;
  int first = 0, both = 0;
  for (std::uint64_t seed = 0; seed < kKeys; ++seed) {
    const HeldOut parts = hold_out(rows(2, 0), key_from_seed(seed), share);
    first += parts.held.size() > 0 && parts.held.floats[0] == 0.0f ? 1 : 0;
    both += parts.held.size() == 2 ? 1 : 0;
  }
  const auto expect = [&](int count, double p) {
    EXPECT_NEAR(count, kKeys * p, 5.0 * std::sqrt(kKeys * p * (1.0 - p)));
  };
  expect(first, share);
  expect(both, share * share);
}

TEST(Numbering, GoesThereAndBack) {
  Dataset d = rows(4, 0);
  const Numbering places(d);
  EXPECT_TRUE(places.are_indices());
  EXPECT_EQ(places.count(), 4u);
  d.numbers = {1, 4, 5, 9};
  const Numbering n(d);
  EXPECT_EQ(n.count(), 10u);
  std::vector<std::uint32_t> drawn = {0, 1, 2, 5, 8, 9};
  drawn.resize(n.to_indices(drawn));
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(n.numbers_of(drawn), (std::vector<std::uint32_t>{1, 5, 9}));
  EXPECT_EQ(n.by_number(std::vector<float>{1, 2, 3, 4}),
            (std::vector<float>{0, 1, 0, 0, 2, 3, 0, 0, 0, 4}));
}

TEST(Numbering, AgreesWithAList) {
  std::mt19937_64 random(8);
  for (const std::size_t size : {1u, 63u, 64u, 65u, 511u, 512u, 513u, 5'000u}) {
    for (const unsigned held : {1u, 2u, 900u, 1'000u}) {
      SCOPED_TRACE(std::to_string(size) + " rows, share " + std::to_string(held));
      Dataset d = rows(size, 0);
      std::vector<std::uint32_t> numbers;
      for (std::uint32_t next = 1'000; numbers.size() < size; ++next)
        if (random() % 1'001 >= held - 1) numbers.push_back(next);
      d.numbers.assign(numbers.begin(), numbers.end());
      const Numbering n(d);
      EXPECT_EQ(n.begin(), numbers.front() / kSampleTile * kSampleTile);
      EXPECT_EQ(n.end(), numbers.back() + 1);
      std::vector<std::uint32_t> index(n.count(), kHeldOut);
      std::vector<std::uint32_t> drawn, found, all;
      for (std::uint32_t i = 0; i < size; ++i) index[numbers[i] - n.begin()] = i;
      EXPECT_EQ(n.index(), index);
      for (std::uint32_t i = 0; i < index.size(); ++i) {
        if (random() % 2 == 0) continue;
        drawn.push_back(i);
        if (index[i] != kHeldOut) found.push_back(index[i]);
      }
      drawn.resize(n.to_indices(drawn));
      EXPECT_EQ(drawn, found);
      for (std::uint32_t i = 0; i < size; ++i) all.push_back(i);
      EXPECT_EQ(n.numbers_of(all), numbers);
    }
  }
}

}  // namespace
}  // namespace cudp

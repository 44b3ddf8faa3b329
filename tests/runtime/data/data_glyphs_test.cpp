#include <array>
#include <set>

#include <gtest/gtest.h>

#include "runtime/data/glyphs.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/named_datasets.hpp"

namespace cudp {
namespace {

/// FNV-1a: any other byte anywhere gives another number.
std::uint64_t checksum(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::uint8_t b : bytes) h = (h ^ b) * 0x100000001b3u;
  return h;
}

TEST(Glyphs, AreTheSameBytesEverywhere) {
  const DataSplit split = load_data({.dataset = "glyphs"});
  EXPECT_EQ(checksum(split.train.bytes), 13255595597633303545u);
  EXPECT_EQ(checksum(split.test.bytes), 428245203760423685u);
}

TEST(Glyphs, SizesAndClassesAreBalanced) {
  const DataSplit split = load_data({.dataset = "glyphs"});
  EXPECT_EQ(split.train.shape, (Shape{1, 28, 28}));
  EXPECT_TRUE(split.size_is_public);
  EXPECT_TRUE(split.unsafe.empty());
  for (const Dataset* set : {&split.train, &split.test}) {
    std::array<std::size_t, 10> counts{};
    for (const std::uint8_t label : set->labels) ++counts.at(label);
    for (const std::size_t n : counts) EXPECT_EQ(n, set->size() / 10);
    EXPECT_EQ(set->bytes.size(), set->size() * 784);
  }
  EXPECT_EQ(split.train.size(), 12'000u);
  EXPECT_EQ(split.train.size(), published_rows("glyphs"));
  EXPECT_EQ(load_data({.dataset = "sentences"}).train.size(), published_rows("sentences"));
  EXPECT_EQ(split.test.size(), 2'000u);
}

/// Certificates state them, and cudp verify compares.
TEST(NamedDatasets, NumbersOfRowsAreKnownBeforeTheyAreRead) {
  for (const NamedDataset& named : named_datasets())
    EXPECT_GT(published_rows(named.name), 0u) << named.name;
  EXPECT_EQ(published_rows("visits.csv"), 0u);
}

TEST(Glyphs, AnImageDependsOnSeedAndIndexOnly) {
  const Dataset all = make_glyphs(7, 0, 30);
  const Dataset some = make_glyphs(7, 13, 5);
  for (std::size_t i = 0; i < some.bytes.size(); ++i)
    ASSERT_EQ(some.bytes[i], all.bytes[std::size_t{13} * 784 + i]);
  EXPECT_NE(make_glyphs(8, 0, 30).bytes, all.bytes);
  EXPECT_EQ(make_glyphs(7, 0, 0).size(), 0u);
}

TEST(Glyphs, NoImageComesTwice) {
  const DataSplit split = load_data({.dataset = "glyphs"});
  std::set<std::uint64_t> seen;
  for (const Dataset* set : {&split.train, &split.test})
    for (std::size_t i = 0; i < set->size(); ++i)
      seen.insert(checksum({set->bytes.begin() + static_cast<std::ptrdiff_t>(i * 784),
                            set->bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * 784)}));
  EXPECT_EQ(seen.size(), 14'000u);
}

/// The ink is what tells the digits apart: class means differ by far more than the error of a mean.
TEST(Glyphs, DigitsDiffer) {
  const Dataset set = make_glyphs(1, 0, 5000);
  std::array<std::array<double, 784>, 10> mean{};
  for (std::size_t i = 0; i < set.size(); ++i)
    for (std::size_t p = 0; p < 784; ++p)
      mean[set.labels[i]][p] += set.bytes[i * 784 + p] / (255.0 * 500.0);
  for (std::size_t a = 0; a < 10; ++a)
    for (std::size_t b = a + 1; b < 10; ++b) {
      double distance = 0.0;
      for (std::size_t p = 0; p < 784; ++p)
        distance += (mean[a][p] - mean[b][p]) * (mean[a][p] - mean[b][p]);
      // 784 pixels of deviation 0.3 or less in two means of 500: 0.28 expected of equal classes.
      EXPECT_GT(distance, 1.0) << a << " and " << b;
    }
}

}  // namespace
}  // namespace cudp

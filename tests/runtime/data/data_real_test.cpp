#include <array>
#include <chrono>
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "runtime/data/examples.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/named_datasets.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

/// The published data sets, where a copy lies beside the project.
class RealData : public testing::Test {
 protected:
  DataSplit load(const std::string& name, const std::string& folder = "") {
    const auto dir = shared_file("data");
    if (!std::filesystem::exists(dir / (folder.empty() ? name : folder))) return {};
    const auto start = std::chrono::steady_clock::now();
    DataSplit split = load_data({.dataset = name, .dir = dir.string()});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << name << ": loaded in " << seconds.count() << " s\n";
    EXPECT_EQ(split.name, name);
    EXPECT_TRUE(split.size_is_public);
    EXPECT_TRUE(split.unsafe.empty());
    return split;
  }
};

bool absent(const DataSplit& split) { return split.train.size() == 0; }

std::vector<int> class_counts(const Dataset& set) {
  std::vector<int> counts(static_cast<std::size_t>(set.classes));
  for (const std::uint8_t label : set.labels) ++counts.at(label);
  return counts;
}

std::vector<int> first_labels(const Dataset& set, std::ptrdiff_t n) {
  return {set.labels.begin(), set.labels.begin() + n};
}

TEST_F(RealData, Mnist) {
  const DataSplit split = load("mnist");
  if (absent(split)) GTEST_SKIP() << "no mnist in " << shared_file("data");
  EXPECT_EQ(split.train.shape, (Shape{1, 28, 28}));
  EXPECT_EQ(class_counts(split.train),
            (std::vector<int>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  EXPECT_EQ(class_counts(split.test),
            (std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}));
  EXPECT_EQ(first_labels(split.train, 6), (std::vector<int>{5, 0, 4, 1, 9, 2}));
  EXPECT_EQ(first_labels(split.test, 6), (std::vector<int>{7, 2, 1, 0, 4, 1}));
  double sum = 0.0;  // the known mean of the training pixels
  for (const std::uint8_t b : split.train.bytes) sum += b / 255.0;
  EXPECT_NEAR(sum / static_cast<double>(split.train.bytes.size()), 0.1307, 5e-5);
}

TEST_F(RealData, FashionMnist) {
  const DataSplit split = load("fashion-mnist");
  if (absent(split)) GTEST_SKIP() << "no fashion-mnist in " << shared_file("data");
  EXPECT_EQ(class_counts(split.train), std::vector<int>(10, 6000));
  EXPECT_EQ(class_counts(split.test), std::vector<int>(10, 1000));
  double sum = 0.0;
  for (const std::uint8_t b : split.train.bytes) sum += b / 255.0;
  EXPECT_NEAR(sum / static_cast<double>(split.train.bytes.size()), 0.2860, 5e-5);
}

TEST_F(RealData, Cifar10) {
  const DataSplit split = load("cifar-10");
  if (absent(split)) GTEST_SKIP() << "no cifar-10 in " << shared_file("data");
  EXPECT_EQ(split.train.shape, (Shape{3, 32, 32}));
  EXPECT_EQ(class_counts(split.train), std::vector<int>(10, 5000));
  EXPECT_GE(split.test.size(), 1000u);
  EXPECT_EQ(split.test.size() == 1000, !split.notes.empty());
  // Channel by channel, as the layout says: known means and standard deviations.
  constexpr std::array<double, 3> kMean = {0.49139968, 0.48215841, 0.44653091};
  constexpr std::array<double, 3> kDeviation = {0.24703223, 0.24348513, 0.26158784};
  std::array<double, 3> sum{}, squares{};
  for (std::size_t i = 0; i < split.train.bytes.size(); ++i) {
    const double x = split.train.bytes[i] / 255.0;
    sum[i / 1024 % 3] += x;
    squares[i / 1024 % 3] += x * x;
  }
  const double n = 50'000.0 * 1024.0;
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(sum[c] / n, kMean[c], 1e-8);
    EXPECT_NEAR(std::sqrt(squares[c] / n - sum[c] * sum[c] / (n * n)), kDeviation[c], 1e-8);
  }
}

TEST_F(RealData, Adult) {
  DataSplit split = load("adult");
  if (absent(split)) GTEST_SKIP() << "no adult in " << shared_file("data");
  EXPECT_LE(split.train.layout->row_bytes() + 1, 40);
  split.train = dense(std::move(split.train));
  split.test = dense(std::move(split.test));
  EXPECT_EQ(split.train.shape, (Shape{124, 1, 1}));
  EXPECT_EQ(class_counts(split.train), (std::vector<int>{32'561 - 7841, 7841}));
  EXPECT_EQ(class_counts(split.test), (std::vector<int>{16'281 - 3846, 3846}));
  // A row: 39, State-gov, Bachelors, 13, Never-married, ..., 2174, 0, 40, United-States, <=50K.
  const float* const row = split.train.floats.data();
  EXPECT_TRUE(std::fabs(row[0] - (39.0f - 17.0f) / 73.0f) <= 1e-6f);
  EXPECT_EQ(row[1 + 2], 1.0f);  // 35 to 44
  EXPECT_EQ(row[7 + 5], 1.0f);  // State-gov
  // Each row has one indicator of each category list, of each interval list, except where missing.
  std::size_t with_missing = 0;
  for (const Dataset* set : {&split.train, &split.test})
    for (std::size_t i = 0; i < set->size(); ++i) {
      int ones = 0;
      for (std::size_t f = 0; f < 124; ++f) {
        const float x = set->floats[i * 124 + f];
        ASSERT_TRUE(x >= 0.0f && x <= 1.0f);
        ones += f != 0 && f != 31 && f != 66 && f != 72 && f != 77 && x == 1.0f ? 1 : 0;
      }
      ASSERT_TRUE(ones <= 12 && ones >= 9) << i;
      with_missing += ones < 12 ? 1 : 0;
    }
  EXPECT_EQ(with_missing, 2399u + 1221u);
}

TEST_F(RealData, Bank) {
  const DataSplit split = load("bank");
  if (absent(split)) GTEST_SKIP() << "no bank in " << shared_file("data");
  EXPECT_EQ(split.train.shape, (Shape{32, 1, 1}));
  EXPECT_EQ(split.train.size() + split.test.size(), 45'211u);
  EXPECT_EQ(split.train.size(), published_rows("bank"));
  const auto train = class_counts(split.train), test = class_counts(split.test);
  EXPECT_EQ(train[1] + test[1], 5289);
  // Held out with probability 0.2: 4.9 standard deviations.
  EXPECT_NEAR(static_cast<double>(split.test.size()), 9042.2, 4.9 * std::sqrt(9042.2 * 0.8));
  for (const float x : dense(split.train).floats) ASSERT_TRUE(x >= 0.0f && x <= 1.0f);
}

TEST_F(RealData, IpumsBr) {
  const DataSplit split = load("ipums-br", "ipums");
  if (absent(split)) GTEST_SKIP() << "no ipums-br in " << shared_file("data");
  EXPECT_EQ(split.train.size() + split.test.size(), 38'000u);
  EXPECT_EQ(split.train.size(), published_rows("ipums-br"));
}

}  // namespace
}  // namespace cudp

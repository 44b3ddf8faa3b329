#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/verify/poisson_sample.hpp"
#include "runtime/base/random_key.hpp"
#include "tests/support/distributions.hpp"
#include "tests/support/random_backends.hpp"
#include "tests/support/reference/random.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kAlways = std::uint64_t{1} << 32;
constexpr std::uint32_t kSentinel = 0xdeadbeef;

RandomStream sample_stream(Generator generator, std::uint64_t step = 3) {
  return {generator, key_from_seed(1), Stream::sampling, step};
}

class Sampling : public testing::TestWithParam<RandomBackend> {
 protected:
  // Draws into a buffer of the least size that the header asks for, and checks what lies behind it.
  static std::vector<std::uint32_t> draw(const RandomStream& s, std::uint64_t threshold,
                                         std::int64_t begin, std::int64_t end) {
    const auto room = static_cast<std::size_t>(end - begin);
    std::vector<std::uint32_t> drawn(room + 600, kSentinel);
    const std::int64_t count = GetParam().sample(
        {.stream = s, .threshold = threshold, .begin = begin, .end = end, .drawn = drawn.data()});
    EXPECT_GE(count, 0);
    EXPECT_LE(count, end - begin);
    for (std::size_t i = room; i < drawn.size(); ++i) EXPECT_EQ(drawn[i], kSentinel);
    drawn.resize(static_cast<std::size_t>(count));
    return drawn;
  }
};

/// A threshold that the number of example i is just below, and one that it is just not below.
std::uint64_t number_of(const RandomStream& s, std::uint64_t i) {
  std::uint64_t threshold = kAlways;
  for (std::uint64_t bit = kAlways / 2; bit > 0; bit /= 2)
    if (reference::is_drawn(s, i, threshold - bit)) threshold -= bit;
  return threshold - 1;
}

TEST_P(Sampling, DrawsExactlyTheNumbersBelowTheThreshold) {
  for (const Generator g : {Generator::chacha20, Generator::philox}) {
    const RandomStream s = sample_stream(g);
    // Thresholds at a number and one past it: below means below. Examples of the low and the high
    // halves, of the first tile and the last.
    std::vector<std::uint64_t> thresholds = {0,           1,           kAlways / 100,
                                             kAlways / 3, kAlways - 1, kAlways};
    for (const std::uint64_t i : {17, 255, 256, 300, 511, 1030, 1500}) {
      thresholds.push_back(number_of(s, i));
      thresholds.push_back(number_of(s, i) + 1);
    }
    for (const std::uint64_t threshold : thresholds) {
      std::vector<std::uint32_t> all;
      for (std::uint32_t i = 0; i < 2600; ++i)
        if (reference::is_drawn(s, i, threshold)) all.push_back(i);
      for (const std::int64_t begin : {0, 512, 1024})
        for (const std::int64_t length :
             {0, 1, 16, 255, 256, 257, 511, 512, 513, 1023, 1024, 1537}) {
          std::vector<std::uint32_t> want;
          for (const std::uint32_t i : all)
            if (i >= begin && i < begin + length) want.push_back(i);
          ASSERT_EQ(draw(s, threshold, begin, begin + length), want)
              << threshold << " from " << begin << " for " << length;
        }
    }
  }
}

/// For every place in a tile.
TEST_P(Sampling, LowerBitsDecideWhereUpperOnesAreEqual) {
  const RandomStream s = sample_stream(Generator::chacha20);
  const int step = GetParam().emulated ? 61 : 1;
  for (std::uint32_t i = 512; i < 1024; i += static_cast<std::uint32_t>(step)) {
    const std::uint64_t number = number_of(s, i);
    const auto with = draw(s, number + 1, 512, 1024);
    const auto without = draw(s, number, 512, 1024);
    EXPECT_TRUE(std::ranges::binary_search(with, i)) << i;
    EXPECT_FALSE(std::ranges::binary_search(without, i)) << i;
    EXPECT_EQ(with.size(), without.size() + 1) << i;
  }
}

TEST_P(Sampling, ReachesTheLastIndex) {
  const std::int64_t end = std::int64_t{1} << 32;
  for (const std::int64_t length : {512, 1024, 1536}) {
    const auto drawn = draw(sample_stream(Generator::chacha20), kAlways, end - length, end);
    ASSERT_EQ(drawn.size(), static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i)
      ASSERT_EQ(drawn[i], static_cast<std::uint32_t>(end - length + i));
  }
}

std::array<std::uint32_t, 8> key_of(const RandomStream& s) {
  std::array<std::uint32_t, 8> key{};
  std::ranges::copy(s.key.words, key.begin());
  return key;
}

// Enough tiles that the emulated kernels' loops go round several times.
TEST_P(Sampling, OfAWholeDataSet) {
  constexpr std::int64_t kEnd = 100003;
  const RandomStream s = sample_stream(Generator::chacha20);
  for (const std::uint64_t threshold : {kAlways / 1000, kAlways / 2, kAlways}) {
    const std::vector<std::uint32_t> want = verify::poisson_sample(
        verify::RandomWords("chacha20", key_of(s), 1, s.step), threshold, kEnd);
    ASSERT_EQ(draw(s, threshold, 0, kEnd), want) << threshold;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Sampling, testing::ValuesIn(random_backends()),
                         [](const auto& i) { return i.param.name; });

// Many steps of a small set. Every bound fails a right sampler with probability 1e-6 at most.
class SamplingLaw : public testing::TestWithParam<Generator> {
 protected:
  static constexpr double kFalseAlarm = 1e-6;
  static constexpr int kExamples = 1000;
  static constexpr int kSteps = 40000;
  static constexpr std::uint64_t kThreshold = kAlways / 20;
  static constexpr double kRate = static_cast<double>(kThreshold) * 0x1p-32;

  template <class F>
  static void run(F&& each) {
    const CpuKernels& k = cpu_kernels(best_simd_level());
    std::vector<std::uint32_t> drawn(kExamples);
    for (int step = 0; step < kSteps; ++step) {
      const std::int64_t count =
          k.sample({.stream = sample_stream(GetParam(), static_cast<std::uint64_t>(step)),
                    .threshold = kThreshold,
                    .begin = 0,
                    .end = kExamples,
                    .drawn = drawn.data()});
      each(step, drawn.data(), count);
    }
  }

  static void expect_chi_square(double value, int degrees) {
    EXPECT_TRUE(value <= law::chi_squared_quantile_above(degrees, kFalseAlarm / 2))
        << value << " of " << degrees;
    EXPECT_TRUE(value >= law::chi_squared_quantile(degrees, kFalseAlarm / 2))
        << value << " of " << degrees;
  }
  static void expect_binomial(double count, double trials, double rate, double false_alarm) {
    EXPECT_GE(law::binomial_at_most(trials, rate, count), false_alarm / 2)
        << count << " of " << trials;
    EXPECT_GE(law::binomial_above(trials, rate, count - 1), false_alarm / 2)
        << count << " of " << trials;
  }
};

TEST_P(SamplingLaw, EveryExampleAtTheSameRate) {
  std::vector<double> times(kExamples);
  run([&](int, const std::uint32_t* drawn, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) ++times[drawn[i]];
  });
  double chi_square = 0;
  for (const double t : times)
    chi_square += std::pow(t - kSteps * kRate, 2) / (kSteps * kRate * (1 - kRate));
  expect_chi_square(chi_square, kExamples);
}

TEST_P(SamplingLaw, BatchSizesAreBinomial) {
  std::vector<double> sizes(kExamples + 1);
  run([&](int, const std::uint32_t*, std::int64_t count) { ++sizes[count]; });
  double chi_square = 0;
  double seen = 0;
  double expected = 0;
  int cells = 0;  // joined until 20 steps are expected; the last takes what is left
  double left = kSteps;
  for (int size = 0; size <= kExamples; ++size) {
    seen += sizes[size];
    const double of_size = kSteps * law::binomial_is(kExamples, kRate, size);
    expected += of_size;
    left -= of_size;
    if ((expected >= 20 && left >= 20) || size == kExamples) {
      chi_square += std::pow(seen - expected, 2) / expected;
      ++cells;
      seen = expected = 0;
    }
  }
  expect_chi_square(chi_square, cells - 1);
}

// Examples whose halves share a word, a lane, a row, a block, a pair or a tile, and some that do
// not.
TEST_P(SamplingLaw, PairsAreIndependent) {
  constexpr std::array kWatched = {0,   1,   2,   15,  16,  17,  31,  32,  48,  64, 128,
                                   240, 255, 256, 257, 272, 511, 512, 513, 768, 999};
  constexpr auto kCount = static_cast<int>(kWatched.size());
  std::array<std::array<double, kCount>, kCount> both{};
  std::vector<double> again(kExamples);  // drawn in step 2t and in step 2t + 1
  std::vector<char> in(kExamples);
  std::vector<char> before;
  run([&](int step, const std::uint32_t* drawn, std::int64_t count) {
    before = in;
    std::fill(in.begin(), in.end(), 0);
    for (std::int64_t i = 0; i < count; ++i) in[drawn[i]] = 1;
    for (int a = 0; a < kCount; ++a)
      if (in[kWatched[a]])
        for (int b = 0; b < a; ++b) both[a][b] += in[kWatched[b]];
    if (step % 2 == 1)
      for (int i = 0; i < kExamples; ++i) again[i] += in[i] && before[i];
  });
  constexpr int kPairs = kCount * (kCount - 1) / 2;
  for (int a = 0; a < kCount; ++a)
    for (int b = 0; b < a; ++b) {
      SCOPED_TRACE(std::to_string(kWatched[a]) + " and " + std::to_string(kWatched[b]));
      expect_binomial(both[a][b], kSteps, kRate * kRate, kFalseAlarm / kPairs);
    }
  double repeats = 0;
  for (const double r : again) repeats += r;
  expect_binomial(repeats, kExamples * (kSteps / 2.0), kRate * kRate, kFalseAlarm);
}

INSTANTIATE_TEST_SUITE_P(All, SamplingLaw, testing::Values(Generator::chacha20, Generator::philox),
                         [](const auto& i) {
                           return i.param == Generator::chacha20 ? "chacha20" : "philox";
                         });

TEST(SampleArgs, AreValidated) {
  std::uint32_t room[512];
  const SampleArgs good{.stream = sample_stream(Generator::chacha20),
                        .threshold = kAlways,
                        .begin = 0,
                        .end = 512,
                        .drawn = room};
  EXPECT_NO_THROW(validate(good));
  const auto refused = [&](auto spoil) {
    SampleArgs bad = good;
    spoil(bad);
    EXPECT_THROW(validate(bad), std::invalid_argument);
  };
  refused([](SampleArgs& a) { a.threshold = kAlways + 1; });
  refused([](SampleArgs& a) { a.begin = 1; });
  refused([](SampleArgs& a) { a.begin = 256; });
  refused([](SampleArgs& a) { a.end = -1; });
  refused([](SampleArgs& a) { a.end = (std::int64_t{1} << 32) + 1; });
  refused([](SampleArgs& a) { a.drawn = nullptr; });
}

}  // namespace
}  // namespace cudp

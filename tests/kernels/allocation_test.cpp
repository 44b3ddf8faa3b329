#include "kernels/step/allocation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/step/allocation.cuh"
#include "kernels/step/sample.cuh"
#include "privacy/verify/allocated_sample.hpp"
#include "runtime/base/random_key.hpp"
#include "tests/support/distributions.hpp"
#include "tests/support/reference/random.hpp"

namespace cudp {
namespace {

constexpr std::uint32_t kUnwritten = 0x5a5a5a5a;
/// The number of steps below 2^24 for which most words are rejected: about one of 258.
constexpr std::uint32_t kOftenRejected = 16'711'936;

RandomStream allocation_stream(Generator generator, std::uint64_t epoch = 3) {
  return {generator, key_from_seed(1), Stream::allocation, epoch};
}

std::vector<std::uint32_t> allocated(const CpuKernels& k, const RandomStream& s,
                                     std::uint32_t steps, std::int64_t begin, std::int64_t end) {
  std::vector<std::uint32_t> step(static_cast<std::size_t>(end - begin) + 1, kUnwritten);
  const Allocate args{.stream = s, .steps = steps, .begin = begin, .end = end, .step = step.data()};
  validate(args);
  k.allocate(args);
  EXPECT_EQ(step.back(), kUnwritten);
  step.pop_back();
  return step;
}

std::vector<const CpuKernels*> levels() {
  std::vector<const CpuKernels*> all;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    try {
      all.push_back(&cpu_kernels(level));
    } catch (const std::invalid_argument&) {  // this processor lacks it
    }
  }
  return all;
}

TEST(Allocation, IsThatOfTheReferenceOnEveryLevel) {
  for (const Generator g : {Generator::chacha20, Generator::philox})
    for (const std::uint32_t steps : {1u, 2u, 3u, 118u, 5000u, kOftenRejected}) {
      const RandomStream s = allocation_stream(g);
      for (const std::int64_t begin : {0, 512})
        for (const std::int64_t length : {0, 1, 255, 513, 2000}) {
          std::vector<std::uint32_t> want;
          for (std::int64_t i = begin; i < begin + length; ++i)
            want.push_back(static_cast<std::uint32_t>(
                reference::allocated_to(s, static_cast<std::uint64_t>(i), steps)));
          for (const CpuKernels* const k : levels())
            ASSERT_EQ(allocated(*k, s, steps, begin, begin + length), want) << steps;
        }
    }
}

TEST(Allocation, RejectsWordsThatWouldFavourAStep) {
  const RandomStream s = allocation_stream(Generator::chacha20);
  constexpr std::int64_t kExamples = 20'000;
  const auto found = allocated(cpu_kernels(best_simd_level()), s, kOftenRejected, 0, kExamples);
  int rejected = 0;
  for (std::int64_t i = 0; i < kExamples; ++i) {
    const auto example = static_cast<std::uint64_t>(i);
    const std::uint64_t product = std::uint64_t{reference::word(s, example)} * kOftenRejected;
    const auto at = static_cast<std::size_t>(i);
    EXPECT_LT(found[at], kOftenRejected);
    EXPECT_EQ(found[at], reference::allocated_to(s, example, kOftenRejected));
    if (found[at] != product >> 32) ++rejected;
  }
  EXPECT_GE(rejected, 30);  // 78 are expected
}

TEST(Allocation, IsTheCheckersInEveryStep) {
  constexpr std::uint64_t kExamples = 700, kSteps = 7;
  for (const char* const name : {"chacha20", "philox"}) {
    const Generator g = std::string(name) == "philox" ? Generator::philox : Generator::chacha20;
    const auto step =
        allocated(cpu_kernels(best_simd_level()), allocation_stream(g, 5), kSteps, 0, kExamples);
    std::array<std::uint32_t, 8> key{};
    std::ranges::copy(key_from_seed(1).words, key.begin());
    std::vector<int> times(kExamples);
    for (std::uint64_t t = 0; t < kSteps; ++t)
      for (const std::uint32_t i :
           verify::allocated_sample(name, key, kSteps, 5 * kSteps + t, kExamples)) {
        EXPECT_EQ(step[i], t);
        ++times[i];
      }
    EXPECT_EQ(std::ranges::count(times, 1), static_cast<std::ptrdiff_t>(kExamples));
  }
}

/// The kernels under the emulator: several epochs at once, with held-out examples, then the batch
/// of a step of each.
TEST(Allocation, IsTheSameOnADevice) {
  constexpr std::int64_t kBegin = 512, kEnd = 512 + 900;
  constexpr std::size_t kPadded = 1024;
  constexpr std::uint32_t kEpochs = 3;
  std::vector<std::uint32_t> index(kEnd - kBegin);
  for (std::uint32_t i = 0, next = 0; i < index.size(); ++i)
    index[i] = i % 7 == 3 ? kHeldOut : next++;
  for (const Generator g : {Generator::chacha20, Generator::philox})
    for (const std::uint32_t steps : {1u, 5u, kOftenRejected})
      for (const bool holds_out : {false, true}) {
        SCOPED_TRACE(testing::Message() << steps << (holds_out ? ", some are held out" : ""));
        constexpr std::uint64_t kFirst = std::uint64_t{2} * kEpochs;
        std::vector<FourSteps> stored(kEpochs * kPadded / 4 + 1);
        std::uint32_t* const step = stored[0].step;
        std::fill_n(step, kEpochs * kPadded + 4, kUnwritten);
        StepRange range;
        simt::launch(allocate_kernel, dim3(2, kEpochs), 96, 0, {.name = "allocate", .seed = 1},
                     Allocate{.stream = allocation_stream(g, kFirst),
                              .steps = steps,
                              .begin = kBegin,
                              .end = kEnd,
                              .step = step,
                              .index = holds_out ? index.data() : nullptr},
                     &range);
        EXPECT_EQ(range.first, kFirst * steps);
        EXPECT_EQ(range.end, (kFirst + kEpochs) * steps);
        EXPECT_EQ(step[kEpochs * kPadded], kUnwritten);
        for (std::uint64_t epoch = kFirst; epoch < kFirst + kEpochs; ++epoch) {
          std::vector<std::uint32_t> want = allocated(
              cpu_kernels(best_simd_level()), allocation_stream(g, epoch), steps, kBegin, kEnd);
          want.resize(kPadded, kHeldOut);
          for (std::size_t i = 0; i < index.size(); ++i)
            if (holds_out && index[i] == kHeldOut) want[i] = kHeldOut;
          EXPECT_EQ(
              std::vector(step + (epoch - kFirst) * kPadded, step + (epoch - kFirst + 1) * kPadded),
              want);
          const std::uint64_t of_epoch = steps > 5 ? want[18] : steps - 1;
          std::vector<std::uint32_t> batch;
          for (std::uint32_t i = 0; i < index.size(); ++i)
            if (want[i] == of_epoch) batch.push_back(holds_out ? index[i] : i);
          for (const unsigned blocks : {1u, 2u}) {
            std::vector<std::uint16_t> flags(std::size_t{16} * 4);
            std::vector<std::uint32_t> counts(5);
            std::vector<std::uint32_t> drawn(want.size(), kUnwritten);
            std::uint32_t count = 0;
            const SampleArgs args{.stream = allocation_stream(g, epoch * steps + of_epoch),
                                  .threshold = 0,
                                  .begin = kBegin,
                                  .end = kEnd,
                                  .drawn = drawn.data(),
                                  .first = kBegin,
                                  .epoch_steps = steps,
                                  .allocated = {.step = step, .epochs = kEpochs, .range = &range},
                                  .index = holds_out ? index.data() : nullptr};
            validate(args);
            const SampleSpace space{
                .flags = flags.data(), .counts = counts.data(), .count = &count};
            simt::launch(allocated_flags_kernel, blocks, 32, 0, {.name = "flags", .seed = 2}, args,
                         space);
            simt::launch(sample_place_kernel, 2, 96, 0, {.name = "place", .seed = 3}, args, space);
            drawn.resize(count);
            EXPECT_EQ(drawn, batch);
          }
        }
      }
}

/// A step whose epoch is not in memory must not run, and is not among those that are drawn ahead.
TEST(Allocation, ADeviceDrawsStoredEpochsOnly) {
  constexpr std::uint32_t kSteps = 3, kEpochs = 2;
  std::vector<FourSteps> stored(std::size_t{kEpochs} * 64);
  StepRange range, ahead;
  const RandomStream stream = allocation_stream(Generator::chacha20, 4);
  simt::launch(
      allocate_kernel, dim3(1, kEpochs), 32, 0, {.name = "allocate", .seed = 1},
      Allocate{.stream = stream, .steps = kSteps, .begin = 0, .end = 256, .step = stored[0].step},
      &range);  // steps 12 to 17
  for (const std::uint64_t step : {10u, 11u, 12u, 16u, 17u, 18u}) {
    SCOPED_TRACE(step);
    std::vector<std::uint16_t> flags(std::size_t{2} * 16);
    std::vector<std::uint32_t> counts(4), count(2), drawn(512);
    StepCursor cursor{.first = 10, .end = 20, .index = static_cast<std::uint32_t>(step) - 10};
    std::vector<ListedStep> list(10);
    SampleArgs args{.stream = stream,
                    .threshold = 0,
                    .begin = 0,
                    .end = 256,
                    .drawn = drawn.data(),
                    .epoch_steps = kSteps,
                    .allocated = {.step = stored[0].step, .epochs = kEpochs, .range = &range}};
    SampleSpace space{.flags = flags.data(),
                      .counts = counts.data(),
                      .count = count.data(),
                      .cursor = &cursor,
                      .list = list.data(),
                      .capacity = 256};
    const auto draw = [&](unsigned steps) {
      simt::launch(allocated_flags_kernel, dim3(1, steps), 32, 0, {.name = "flags", .seed = 2},
                   args, space);
      simt::launch(sample_place_kernel, dim3(1, steps), 32, 0, {.name = "place", .seed = 3}, args,
                   space);
    };
    draw(1);
    const bool is_there = 12 <= step && step < 18;
    EXPECT_EQ(cursor.failed, is_there ? 0 : kNotDrawn);
    EXPECT_EQ(cursor.active, is_there ? 1u : 0u);
    EXPECT_EQ(count[0] > 0, is_there);
    space.cursor = nullptr;
    space.list_size = 256;
    space.range = &ahead;
    args.stream.step = step;
    draw(2);
    EXPECT_EQ(ahead.has(step), 12 <= step && step < 17);
    EXPECT_EQ(ahead.has(step + 1), 12 <= step && step < 17);
  }
}

// Laws of the draw, with fixed keys. Each bound fails a right sampler with probability 1e-6.

constexpr double kFalseAlarm = 1e-6;

void expect_law(double chi_square, int degrees) {
  EXPECT_LE(chi_square, law::chi_squared_quantile_above(degrees, kFalseAlarm / 2));
  EXPECT_GE(chi_square, law::chi_squared_quantile(degrees, kFalseAlarm / 2));
}

double chi_square_of(const std::vector<double>& counts, double all) {
  const double expected = all / static_cast<double>(counts.size());
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

class AllocationLaw : public testing::TestWithParam<Generator> {};

TEST_P(AllocationLaw, EveryStepHasTheSameProbability) {
  for (const std::uint32_t steps : {3u, 30u, 118u}) {
    std::vector<double> counts(steps);
    constexpr std::int64_t kExamples = 100'000;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
      for (const std::uint32_t step :
           allocated(cpu_kernels(best_simd_level()), allocation_stream(GetParam(), epoch), steps, 0,
                     kExamples))
        ++counts[step];
    expect_law(chi_square_of(counts, 4.0 * kExamples), static_cast<int>(steps) - 1);
  }
}

/// Places of two examples in one epoch, and of one example in two epochs, are independent.
TEST_P(AllocationLaw, PlacesOfOtherExamplesAndEpochsAreIndependent) {
  constexpr std::uint32_t kSteps = 6;
  constexpr std::uint64_t kEpochs = 20'000;
  constexpr std::array<std::size_t, 6> kOthers = {1, 16, 17, 255, 256, 300};
  std::array<std::vector<double>, kOthers.size() + 1> both;
  for (auto& table : both) table.resize(std::size_t{kSteps} * kSteps);
  std::uint32_t before = 0;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto step = allocated(cpu_kernels(best_simd_level()),
                                allocation_stream(GetParam(), epoch), kSteps, 0, 301);
    for (std::size_t i = 0; i < kOthers.size(); ++i) ++both[i][kSteps * step[0] + step[kOthers[i]]];
    if (epoch > 0) ++both.back()[kSteps * before + step[0]];
    before = step[0];
  }
  for (std::size_t i = 0; i < both.size(); ++i)
    expect_law(chi_square_of(both[i], kEpochs - (i == kOthers.size() ? 1.0 : 0.0)),
               kSteps * kSteps - 1);
}

INSTANTIATE_TEST_SUITE_P(All, AllocationLaw,
                         testing::Values(Generator::chacha20, Generator::philox),
                         [](const auto& i) {
                           return i.param == Generator::chacha20 ? "chacha20" : "philox";
                         });

TEST(Allocation, IsValidated) {
  std::uint32_t step[256];
  const Allocate good{.stream = allocation_stream(Generator::chacha20),
                      .steps = 3,
                      .begin = 0,
                      .end = 256,
                      .step = step};
  EXPECT_NO_THROW(validate(good));
  const auto refused = [&](auto spoil) {
    Allocate bad = good;
    spoil(bad);
    EXPECT_THROW(validate(bad), std::invalid_argument);
  };
  refused([](Allocate& a) { a.steps = 0; });
  refused([](Allocate& a) { a.steps = (1u << 24) + 1; });
  refused([](Allocate& a) { a.begin = 1; });
  refused([](Allocate& a) { a.step = nullptr; });
  refused([](Allocate& a) { a.stream.stream = Stream::sampling; });
}

}  // namespace
}  // namespace cudp

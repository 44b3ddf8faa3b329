#pragma once
// The end of a step by CUDA kernels: the sum, its noise, the release and the update.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu_kernels.hpp"
#include "tests/kernels/compiled_finish.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp {
namespace {

/// The end of a step to the integer, which floats of loud noise would not show: sums are such that
/// every release is a small number. Numbers of undecided pairs are not touched before the host has
/// made them, and are completed once.
TEST_F(CudaKernel, FinishReleasesWhatIsDecidedAndNothingElse) {
  constexpr int kN = 5003;  // 40 tiles, the last one not whole
  constexpr double kGrid = 0x1p-20;
  const RandomStream noise{Generator::chacha20, {{7, 8, 9}}, Stream::noise, 5};
  std::vector<std::int64_t> k(kN);
  cpu_kernels(SimdLevel::baseline).rounded_normals({noise, 0x1p40, 0, kN, k.data()});
  const auto small = [](int j) { return j % 4001 - 2000; };
  std::vector<FixedPoint> sum(kN);
  for (int j = 0; j < kN; ++j) sum[j] = static_cast<FixedPoint>(small(j) - k[j]);
  StepCursor at{.first = 0, .end = 9, .index = 6, .active = 1, .step = 5};
  at.scalars = {.learning_rate = 1,
                .noise_std = 0x1p20f,
                .inverse_batch = 1,
                .bias1 = 1,
                .bias2 = 1,
                .ema_decay = 0,
                .clip_norm = 1};
  at.scale = sum_scale(1.0f, kGrid);
  for (const bool by_pairs : {true, false})
    for (const bool updates : {true, false}) {
      SCOPED_TRACE(testing::Message() << by_pairs << updates);
      FinishStep a{.cursor = device(std::vector<StepCursor>{at}),
                   .sum = device(sum),
                   .unfinished = {},
                   .noise = noise,
                   .n = kN,
                   .undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0)),
                   .released = nullptr,
                   .update = {},
                   .by_pairs = by_pairs};
      a.noise.step = 77;  // is not read
      float* const to = device(std::vector<float>(kN, kLoud));
      if (updates) {
        a.update.parameters = device(std::vector<float>(kN, 0.0f));
        a.update.end = kN;
      } else {
        a.released = to;
      }
      run(finish_kernel_of(OptimizerKind::sgd), a);
      const auto results = [&](int j, const std::vector<float>& r) {
        return updates ? -r[j] / static_cast<float>(kGrid) : r[j] / static_cast<float>(kGrid);
      };
      const float untouched = updates ? -0.0f : kLoud / static_cast<float>(kGrid);
      const float* const out = updates ? a.update.parameters : to;
      const std::vector<std::uint32_t> bits = host(a.undecided, words_of_pairs(kN));
      const StepCursor stalled = host(a.cursor, 1)[0];
      const std::vector<DecidedPair> pairs = decided_pairs(bits, stalled, noise);
      EXPECT_EQ(pairs.size(), stalled.pending);
      EXPECT_GE(pairs.size(), 5u) << "one pair in 120 is expected";
      std::vector<float> r = host(out, kN);
      std::vector<FixedPoint> left = host(a.sum, kN);
      for (int j = 0; j < kN; ++j) {
        const auto pair = static_cast<std::uint32_t>(rounded_pair_of(j));
        const bool waits = (bits[pair / 32] >> pair % 32 & 1) != 0;
        ASSERT_EQ(results(j, r), waits ? untouched : static_cast<float>(small(j))) << j;
        ASSERT_EQ(left[j], waits ? sum[j] : 0) << j;
      }
      // What belongs to another step, and pairs that are decided, change nothing.
      std::vector<DecidedPair> wrong = pairs;
      for (DecidedPair& p : wrong) p.step = 4;
      std::uint32_t decided = 0;
      while ((bits[decided / 32] >> decided % 32 & 1) != 0) ++decided;
      wrong.push_back({5, decided, {1, 1}});
      const auto count = [](const auto& v) { return static_cast<std::uint32_t>(v.size()); };
      run(finish_pairs_kernel_of(OptimizerKind::sgd), FinishPairs{a, device(wrong), count(wrong)});
      EXPECT_EQ(host(out, kN), r);
      EXPECT_EQ(host(a.cursor, 1)[0].pending, stalled.pending);
      // The host's pairs, twice.
      for (int i = 0; i < 2; ++i)
        run(finish_pairs_kernel_of(OptimizerKind::sgd),
            FinishPairs{a, device(pairs), count(pairs)});
      r = host(out, kN);
      for (int j = 0; j < kN; ++j) ASSERT_EQ(results(j, r), static_cast<float>(small(j))) << j;
      EXPECT_EQ(host(a.sum, kN), std::vector<FixedPoint>(kN, 0));
      EXPECT_EQ(host(a.cursor, 1)[0].pending, 0u);
      EXPECT_EQ(host(a.undecided, words_of_pairs(kN)),
                std::vector<std::uint32_t>(words_of_pairs(kN), 0));
      // A step that is left out does nothing.
      StepCursor idle = at;
      idle.active = 0;
      a.cursor = device(std::vector<StepCursor>{idle});
      a.sum = device(sum);
      run(finish_kernel_of(OptimizerKind::sgd), a);
      EXPECT_EQ(host(a.sum, kN), sum);
      EXPECT_EQ(host(out, kN), r);
    }
}

/// A step whose pairs the host had to make ends as the host's update of the same numbers does, with
/// every optimizer.
TEST_F(CudaKernel, FinishedPairsAreUpdatedAsAllOthers) {
  constexpr int kN = 5003;
  constexpr double kGrid = 0x1p-20;
  const RandomStream noise{Generator::chacha20, {{7, 8, 9}}, Stream::noise, 5};
  std::vector<std::int64_t> k(kN);
  cpu_kernels(SimdLevel::baseline).rounded_normals({noise, 0x1p40, 0, kN, k.data()});
  std::vector<FixedPoint> sum(kN);
  std::vector<float> released(kN);
  for (int j = 0; j < kN; ++j) {
    sum[j] = static_cast<FixedPoint>(j % 4001 - 2000 - k[j]);
    released[j] = static_cast<float>((j % 4001 - 2000) * kGrid);
  }
  StepCursor at{.first = 0, .end = 9, .index = 6, .active = 1, .step = 5};
  at.scalars = {.learning_rate = 0.5f,
                .noise_std = 0x1p20f,
                .inverse_batch = 1.0f / 3.0f,
                .bias1 = 2.0f,
                .bias2 = 3.0f,
                .ema_decay = 0.75f,
                .clip_norm = 1.0f};
  at.scale = sum_scale(1.0f, kGrid);
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov, OptimizerKind::adam,
        OptimizerKind::adamw}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto numbers = [](float first) {
      std::vector<float> all(kN);
      for (int j = 0; j < kN; ++j) all[j] = first + static_cast<float>(j % 13) * 0x1p-8f;
      return all;
    };
    // Parameters, moments, average.
    std::vector<std::vector<float>> want = {numbers(0.5f), numbers(0.0f), numbers(0.25f),
                                            numbers(1.0f)};
    FinishStep a{.cursor = device(std::vector<StepCursor>{at}),
                 .sum = device(sum),
                 .unfinished = {},
                 .noise = noise,
                 .n = kN,
                 .undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0)),
                 .released = nullptr,
                 .update = {},
                 .by_pairs = true};
    a.update = {.released = nullptr,
                .parameters = device(want[0]),
                .moment1 = has_first_moment(kind) ? device(want[1]) : nullptr,
                .moment2 = has_second_moment(kind) ? device(want[2]) : nullptr,
                .average = device(want[3]),
                .begin = 0,
                .end = kN,
                .optimizer = {.kind = kind, .weight_decay = 0.125f, .keep_average = true},
                .scalars = {}};
    run(finish_kernel_of(kind), a);
    const std::vector<DecidedPair> pairs =
        decided_pairs(host(a.undecided, words_of_pairs(kN)), host(a.cursor, 1)[0], noise);
    EXPECT_GE(pairs.size(), 5u);
    run(finish_pairs_kernel_of(kind),
        FinishPairs{a, device(pairs), static_cast<std::uint32_t>(pairs.size())});
    UpdateArgs update = a.update;
    update.released = released.data();
    update.parameters = want[0].data();
    update.moment1 = has_first_moment(kind) ? want[1].data() : nullptr;
    update.moment2 = has_second_moment(kind) ? want[2].data() : nullptr;
    update.average = want[3].data();
    update.scalars = at.scalars;
    cpu_kernels(SimdLevel::baseline).update(update);
    const auto hold = [&](const float* got, const std::vector<float>& all) {
      if (got == nullptr) return;
      const std::vector<float> g = host(got, kN);
      for (int j = 0; j < kN; ++j)
        ASSERT_NEAR(g[j], all[j], 1e-6f * (1.0f + std::fabs(all[j]))) << j;
    };
    hold(a.update.parameters, want[0]);
    hold(a.update.moment1, want[1]);
    hold(a.update.moment2, want[2]);
    hold(a.update.average, want[3]);
  }
}

/// The blocks' sums and the tally are finished with the step.
TEST_F(CudaKernel, FinishAddsWhatBlocksHaveLeft) {
  constexpr int kN = 300, kBlocks = 4;
  std::vector<std::int32_t> slabs(std::size_t{kBlocks} * kN, 0x7eadbeef);
  for (int j = 0; j < 3 * kN; ++j) slabs[j] = j % 101 - 50;
  StepCursor at{.first = 0, .end = 1, .index = 1, .active = 1, .step = 0};
  at.scale = sum_scale(1.0f, 1.0);
  const Batch three = batch(0, 8, 3);
  FinishStep a{.cursor = device(std::vector<StepCursor>{at}),
               .sum = device(std::vector<FixedPoint>(kN, static_cast<FixedPoint>(-7))),
               .unfinished = {.sums = {three, device(slabs), 1, kBlocks}},
               .noise = {},
               .n = kN,
               .undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0)),
               .released = device(std::vector<float>(kN, kLoud)),
               .update = {},
               .by_pairs = true};
  a.unfinished.tally = {.batch = three,
                        .loss = device(std::vector<float>(8, 0.5f)),
                        .squared_norms = device(std::vector<float>(8, 4.0f)),
                        .factors = device(std::vector<float>(8, 0.5f)),
                        .groups = 1,
                        .total = device(std::vector<Tally>{{}})};
  for (int i = 1; i <= 2; ++i) {
    run(finish_kernel_of(OptimizerKind::adamw, true), a);
    const std::vector<float> r = host(a.released, kN);
    for (int j = 0; j < kN; ++j)
      ASSERT_EQ(r[j],
                static_cast<float>(slabs[j] + slabs[kN + j] + slabs[2 * kN + j] - (i == 1 ? 7 : 0)))
          << j;
    const Tally t = host(a.unfinished.tally.total, 1)[0];
    EXPECT_EQ(t.examples, 3u * static_cast<unsigned>(i));
    EXPECT_EQ(t.loss, i * (3LL << 19));
  }
}

/// Slabs are added up by several threads a number: to the integer as one thread would, with any
/// number of warps and blocks, whatever pairs are undecided.
TEST_F(CudaKernel, FinishAddsSlabsInShares) {
  constexpr int kN = 1043, kBlocks = 40, kWritten = 37;  // 9 tiles, the last one not whole
  const RandomStream noise{Generator::chacha20, {{7, 8, 9}}, Stream::noise, 5};
  StepCursor at{.first = 0, .end = 9, .index = 6, .active = 1, .step = 5};
  at.scalars.noise_std = 0x1p20f;
  at.scale = sum_scale(1.0f, 0x1p-20);
  std::mt19937 random(9);
  std::vector<std::int32_t> slabs(std::size_t{kBlocks} * kN);
  for (std::int32_t& v : slabs) v = static_cast<std::int32_t>(random());
  std::vector<FixedPoint> sum(kN), whole(kN);
  for (int j = 0; j < kN; ++j) {
    const std::int64_t units = std::int64_t{j} * -(std::int64_t{1} << 33);
    whole[j] = sum[j] = static_cast<FixedPoint>(units);
    for (int b = 0; b < kWritten; ++b)
      whole[j] += static_cast<FixedPoint>(std::int64_t{slabs[std::size_t{kN} * b + j]});
  }
  FinishStep a{.cursor = nullptr,
               .sum = nullptr,
               .unfinished = {},
               .noise = noise,
               .n = kN,
               .undecided = nullptr,
               .released = nullptr,
               .update = {},
               .by_pairs = true};
  const auto start = [&](const std::vector<FixedPoint>& from) {
    a.cursor = device(std::vector<StepCursor>{at});
    a.sum = device(from);
    a.undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0));
    a.released = device(std::vector<float>(kN, kLoud));
  };
  start(whole);
  run(finish_kernel_of(OptimizerKind::sgd), a);
  const std::vector<float> released = host(a.released, kN);
  const std::vector<FixedPoint> left = host(a.sum, kN);
  const std::vector<std::uint32_t> undecided = host(a.undecided, words_of_pairs(kN));
  EXPECT_GE(host(a.cursor, 1)[0].pending, 1u);
  // Two examples a turn: 37 turns.
  a.unfinished.sums = {batch(0, 100, 2 * kWritten - 1), device(slabs), 2, kBlocks};
  EXPECT_EQ(launch_shape(a).block.x, kSlabThreads);
  for (const unsigned threads : {64u, 96u, 128u})
    for (const unsigned blocks : {1u, 3u, 40u}) {
      SCOPED_TRACE(testing::Message() << threads << ", " << blocks);
      start(sum);
      launch(finish_kernel_of(OptimizerKind::sgd, true), a, {.grid = {blocks}, .block = {threads}});
      EXPECT_EQ(host(a.released, kN), released);
      EXPECT_EQ(host(a.sum, kN), left);
      EXPECT_EQ(host(a.undecided, words_of_pairs(kN)), undecided);
    }
  // Slabs of a batch of nobody.
  a.unfinished.sums.batch = batch(0, 100, 0);
  start(whole);
  run(finish_kernel_of(OptimizerKind::sgd, true), a);
  EXPECT_EQ(host(a.released, kN), released);
}

}  // namespace
}  // namespace cudp

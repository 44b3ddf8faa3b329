#pragma once
// The kernels of a step: the cursor, batches that are drawn ahead, and the clipping norm. Its end
// has cuda_finish_tests.hpp.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/step/sample.cuh"
#include "kernels/step/tally.cuh"
#include "tests/kernels/compiled_finish.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp {
namespace {

TEST_F(CudaKernel, TheCursorWalksTheSteps) {
  constexpr std::uint32_t kExamples = 300, kSteps = 3;
  std::vector<ListedStep> list(kSteps);
  for (unsigned i = 0; i < kSteps; ++i) {
    list[i].scalars.learning_rate = static_cast<float>(i + 1);
    list[i].scale = {static_cast<float>(i + 10), 2.0f, 0.5};
  }
  std::vector<std::uint32_t> everyone(kExamples);
  std::iota(everyone.begin(), everyone.end(), 0u);
  const SampleArgs args{.stream = {Generator::chacha20, {{1, 2, 3}}, Stream::sampling, 0},
                        .threshold = std::uint64_t{1} << 32,
                        .begin = 0,
                        .end = kExamples,
                        .drawn = device(std::vector<std::uint32_t>(kExamples, 7))};
  SampleSpace space{.flags = device(std::vector<std::uint16_t>(32, 0x5a5a)),
                    .counts = device(std::vector<std::uint32_t>(3, 0x5a5a)),
                    .count = device(std::vector<std::uint32_t>{0x5a5a}),
                    .list = device(list),
                    .capacity = kExamples};
  const auto begin = [&](const StepCursor& from) {
    space.cursor = device(std::vector<StepCursor>{from});
    launch(sample_flags_kernel, args, space, {.grid = {2}, .block = {64}});
    launch(sample_place_kernel, args, space, {.grid = {2}, .block = {64}});
    return host(space.cursor, 1)[0];
  };
  StepCursor c{.first = 1000, .end = kSteps};
  for (unsigned i = 0; i < kSteps; ++i) {
    c = begin(c);
    EXPECT_EQ(c.step, 1000u + i);
    EXPECT_EQ(c.index, i + 1);
    EXPECT_EQ(c.active, 1u);
    EXPECT_EQ(c.scalars.learning_rate, static_cast<float>(i + 1));
    EXPECT_EQ(c.scale.clip_norm, static_cast<float>(i + 10));
    EXPECT_EQ(host(space.count, 1)[0], kExamples);
    EXPECT_EQ(host(args.drawn, kExamples), everyone);
  }
  // What stops a run: its end, an undecided pair, a batch that is too large, an update that is due.
  const auto stops = [&](const StepCursor& from, std::uint32_t failed) {
    const StepCursor after = begin(from);
    EXPECT_EQ(after.active, 0u);
    EXPECT_EQ(after.may_update, 0u);
    EXPECT_EQ(after.index, from.index);
    EXPECT_EQ(after.step, from.step);
    EXPECT_EQ(after.failed, failed);
    EXPECT_EQ(host(space.count, 1)[0], 0u);
  };
  stops(c, 0);
  c.index = 1;
  StepCursor waits = c;
  waits.pending = 1;
  stops(waits, 0);
  StepCursor late = c;
  late.awaits_update = 1;
  stops(late, kUpdateMissing);
  space.capacity = kExamples - 1;
  stops(c, kBatchFailed);
  space.capacity = kExamples;
  StepCursor broken = c;
  broken.failed = kBatchFailed;  // it stays
  stops(broken, kBatchFailed);
  // A batch that is larger than the launches have room for is not begun, and no step before there
  // is room.
  space.launch_capacity = kExamples - 1;
  stops(c, 0);
  EXPECT_EQ(begin(c).oversized_batch, kExamples);
  space.launch_capacity = kExamples;
  StepCursor oversized = c;
  oversized.oversized_batch = kExamples;
  stops(oversized, 0);
  EXPECT_EQ(begin(c).active, 1u);
  space.has_separate_update = true;
  EXPECT_EQ(begin(c).awaits_update, 1u);
}

/// One launch for several steps draws what a launch for each draws. A batch that is larger than its
/// list is cut, and its size is not. A step begins with its own batch.
TEST_F(CudaKernel, BatchesAreDrawnAhead) {
  constexpr std::uint32_t kSteps = 5, kExamples = 700, kTiles = 3, kUnused = 0xabcdef;
  SampleArgs args{.stream = {Generator::chacha20, {{1, 2, 3}}, Stream::sampling, 1000},
                  .threshold = std::uint64_t{1} << 30,
                  .begin = 1024,
                  .end = 1024 + kExamples,
                  .drawn = device(std::vector<std::uint32_t>(kExamples, kUnused)),
                  .first = 512};
  const auto space_for = [&](std::uint32_t steps) {
    return SampleSpace{
        .flags = device(std::vector<std::uint16_t>(std::size_t{16} * kTiles * steps, 0x5a5a)),
        .counts = device(std::vector<std::uint32_t>(std::size_t{kTiles + 1} * steps, 0x5a5a)),
        .count = device(std::vector<std::uint32_t>(steps, 0x5a5a))};
  };
  std::vector<std::vector<std::uint32_t>> want;
  std::uint32_t largest = 0, smallest = kExamples;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    SampleArgs one = args;
    one.stream.step += step;
    const SampleSpace space = space_for(1);
    launch(sample_flags_kernel, one, space, {.grid = {2}, .block = {64}});
    launch(sample_place_kernel, one, space, {.grid = {2}, .block = {64}});
    want.push_back(host(args.drawn, host(space.count, 1)[0]));
    largest = std::max(largest, static_cast<std::uint32_t>(want.back().size()));
    smallest = std::min(smallest, static_cast<std::uint32_t>(want.back().size()));
  }
  ASSERT_LT(smallest + 1, largest);
  for (const std::uint32_t list_size : {largest, smallest + 1})
    for (const bool scanned : {false, true}) {
      SampleSpace space = space_for(kSteps);
      space.scanned = scanned;
      space.list_size = list_size;
      space.range = device(std::vector<StepRange>{{7, 8}});
      args.drawn = device(std::vector<std::uint32_t>(std::size_t{kSteps} * list_size, kUnused));
      const LaunchShape shape{.grid = {2, kSteps}, .block = {64}};
      launch(sample_flags_kernel, args, space, shape);
      if (scanned)
        launch(sample_scan_kernel, args, space,
               {.grid = {1, kSteps}, .block = {64}, .shared_bytes = 8});
      launch(sample_place_kernel, args, space, shape);
      const StepRange range = host(space.range, 1)[0];
      EXPECT_EQ(range.first, 1000u);
      EXPECT_EQ(range.end, 1000u + kSteps);
      const BatchesAhead ahead{.range = space.range,
                               .counts = space.count,
                               .examples = args.drawn,
                               .list_size = list_size};
      SampleSpace of_a_step{.flags = nullptr,
                            .counts = nullptr,
                            .count = device(std::vector<std::uint32_t>{kUnused}),
                            .list = device(std::vector<ListedStep>(kSteps + 3)),
                            .capacity = list_size};
      for (std::uint32_t step = 0; step < kSteps + 2; ++step) {
        SCOPED_TRACE(testing::Message() << list_size << scanned << step);
        // The run began two steps before the batches: they are there for steps 2 to 6.
        of_a_step.cursor =
            device(std::vector<StepCursor>{{.first = 998, .end = kSteps + 3, .index = step}});
        std::uint32_t* const drawn = device(std::vector<std::uint32_t>(largest, kUnused));
        launch(begin_step_kernel, ahead, of_a_step, drawn, {.grid = {1}, .block = {64}});
        const StepCursor at = host(of_a_step.cursor, 1)[0];
        const std::uint32_t count = host(of_a_step.count, 1)[0];
        if (step < 2) {
          EXPECT_EQ(at.failed, kNotDrawn);
          EXPECT_EQ(count, 0u);
          continue;
        }
        const std::vector<std::uint32_t>& batch = want[step - 2];
        if (batch.size() > list_size) {
          EXPECT_EQ(at.failed, kBatchFailed);
          EXPECT_EQ(host(drawn, largest), std::vector<std::uint32_t>(largest, kUnused));
          continue;
        }
        EXPECT_EQ(at.failed, 0u);
        EXPECT_EQ(at.step, 998u + step);
        ASSERT_EQ(count, batch.size());
        EXPECT_EQ(host(drawn, count), batch);
      }
      // The last of the run has no batch here, and a run that has ended begins nothing.
      for (const std::uint32_t end : {kSteps + 3, kSteps + 2}) {
        of_a_step.cursor =
            device(std::vector<StepCursor>{{.first = 998, .end = end, .index = kSteps + 2}});
        launch(begin_step_kernel, ahead, of_a_step, args.drawn, {.grid = {1}, .block = {64}});
        EXPECT_EQ(host(of_a_step.cursor, 1)[0].failed, end == kSteps + 3 ? kNotDrawn : 0);
        EXPECT_EQ(host(of_a_step.count, 1)[0], 0u);
      }
    }
}

/// The last block of a step starts the next one as begin_step_kernel does, if its batch is there
/// and the run goes on; otherwise nothing of the step begins.
TEST_F(CudaKernel, TheEndOfAStepStartsTheNextOne) {
  constexpr int kN = 300, kBlocks = 2;
  constexpr std::uint32_t kEnd = 6, kListSize = 2000, kUnused = 0xabcdef;
  const std::vector<std::uint32_t> sizes = {3, 0, 1900};  // of the batches of steps 1000 to 1002
  std::vector<std::uint32_t> lists(sizes.size() * kListSize);
  std::iota(lists.begin(), lists.end(), 17u);
  std::vector<ListedStep> list(kEnd);
  for (unsigned i = 0; i < kEnd; ++i) {
    list[i].scalars.learning_rate = static_cast<float>(i + 1);
    list[i].scale = sum_scale(static_cast<float>(i + 10), 1.0);
  }
  NextStep next{.batches = {.range = device(std::vector<StepRange>{{1000, 1003}}),
                            .counts = device(sizes),
                            .examples = device(lists),
                            .list_size = kListSize}};
  FinishStep a{.cursor = nullptr,
               .sum = device(std::vector<FixedPoint>(kN, 0)),
               .unfinished = {},
               .noise = {},
               .n = kN,
               .undecided = device(std::vector<std::uint32_t>(words_of_pairs(kN), 0)),
               .released = nullptr,
               .update = {},
               .by_pairs = true};
  a.update.parameters = device(std::vector<float>(kN, 0.0f));
  a.update.end = kN;
  const std::int32_t* const slabs = device(std::vector<std::int32_t>(std::size_t{kBlocks} * kN, 1));
  const TallyBatch tally{.batch = {},
                         .loss = device(std::vector<float>(8, 0.5f)),
                         .squared_norms = device(std::vector<float>(8, 4.0f)),
                         .factors = device(std::vector<float>(8, 0.5f)),
                         .groups = 1,
                         .total = device(std::vector<Tally>{{}})};
  // What each case is left with: the steps started, the size of the batch, the failure.
  struct Case {
    StepCursor before;
    std::uint32_t capacity, started, count, failed;
  };
  const auto at = [](std::uint32_t index) {
    StepCursor c{.first = 998, .end = kEnd, .index = index, .active = 1, .step = 997 + index};
    c.scale = sum_scale(1.0f, 1.0);
    return c;
  };
  StepCursor waits = at(3), ends = at(3);
  waits.pending = 1;
  ends.end = 3;
  const Case all[] = {{at(1), 2000, 1, 0, 0},
                      {at(2), 2000, 3, 3, 0},
                      {at(3), 2000, 4, 0, 0},
                      {at(4), 2000, 5, 1900, 0},
                      {at(5), 2000, 5, 0, 0},
                      {waits, 2000, 3, 0, 0},
                      {at(4), 1899, 4, 0, kBatchFailed},
                      {ends, 2000, 3, 0, 0}};
  for (const bool has_slabs : {false, true})
    for (const bool counts : {false, true})
      for (const unsigned blocks : {2u, 7u})
        for (const Case& c : all) {
          SCOPED_TRACE(testing::Message() << has_slabs << counts << blocks << ", " << c.before.index
                                          << ", " << c.before.pending);
          a.cursor = device(std::vector<StepCursor>{c.before});
          std::uint32_t* const count = device(std::vector<std::uint32_t>{3});
          next.space = {.flags = nullptr,
                        .counts = nullptr,
                        .count = count,
                        .cursor = a.cursor,
                        .list = device(list),
                        .capacity = c.capacity};
          next.drawn = device(std::vector<std::uint32_t>(kListSize, kUnused));
          a.next = next;
          const Batch batch{.count = count, .first = 0, .capacity = 8};
          a.unfinished.sums = {};
          if (has_slabs) a.unfinished.sums = {batch, slabs, 2, kBlocks};
          a.unfinished.tally = {};
          if (counts) a.unfinished.tally = tally;
          a.unfinished.tally.batch = batch;
          launch(finish_kernel_of(OptimizerKind::sgd, has_slabs), a,
                 {.grid = {blocks}, .block = {64}});
          const StepCursor after = host(a.cursor, 1)[0];
          const bool starts = c.started > c.before.index;
          EXPECT_EQ(after.index, c.started);
          EXPECT_EQ(after.active, starts ? 1u : 0u);
          EXPECT_EQ(after.step, starts ? 998u + c.before.index : c.before.step);
          EXPECT_EQ(after.failed, c.failed);
          EXPECT_EQ(after.pending, c.before.pending);
          EXPECT_EQ(after.blocks_done, 0u);
          EXPECT_EQ(host(count, 1)[0], c.count);
          if (!starts) continue;
          EXPECT_EQ(after.scalars.learning_rate, static_cast<float>(c.before.index + 1));
          EXPECT_EQ(after.scale.clip_norm, static_cast<float>(c.before.index + 10));
          const std::vector<std::uint32_t> drawn = host(next.drawn, kListSize);
          const auto first = lists.begin() + std::ptrdiff_t{kListSize} * (c.before.index - 2);
          EXPECT_TRUE(std::equal(first, first + c.count, drawn.begin()));
          EXPECT_EQ(std::ranges::count(drawn, kUnused), kListSize - c.count);
        }
}

/// The clipping norm of a step follows what the step before has released, to the last bit as the
/// host works it out; the first step's is the host's.
TEST_F(CudaKernel, TheClippingNormFollowsTheStepBefore) {
  ClipRule rule{.target = 0.6,
                .rate = 0.3,
                .min_clip = 0.01,
                .max_clip = 50.0,
                .expected_batch = 37.0,
                .grid = 0x1p-19,
                .noise_multiplier = 1.37,
                .sensitivity = 1.0001};
  SampleArgs args{.stream = {Generator::chacha20, {{1, 2, 3}}, Stream::sampling, 0},
                  .threshold = std::uint64_t{1} << 32,
                  .begin = 0,
                  .end = 300,
                  .drawn = device(std::vector<std::uint32_t>(300, 7))};
  const Tally seen{.loss = 1, .norm = 2, .examples = 1000, .clipped = 300, .non_finite = 7};
  const std::uint64_t halves = 1000 - 2 * 307;
  for (const bool normalised : {false, true})
    for (int i = 0; i < 60; ++i) {
      rule.normalised = normalised;
      const float clip = 0.013f * static_cast<float>(1 + i * i);
      std::vector<ListedStep> list(2);
      for (ListedStep& step : list)
        step.scalars = {.learning_rate = 0.5f,
                        .noise_std = -1.0f,
                        .inverse_batch = 1.0f / 37.0f,
                        .bias1 = 1.0f,
                        .bias2 = 1.0f,
                        .ema_decay = 0.25f,
                        .clip_norm = -1.0f};
      const StepScalars given = list[1].scalars;
      list[0].scalars.clip_norm = clip;
      list[0].noisy_count = (i - 30) * std::int64_t{1'234'567'891};
      const SampleSpace space{.flags = device(std::vector<std::uint16_t>(32, 0x5a5a)),
                              .counts = device(std::vector<std::uint32_t>(3, 0x5a5a)),
                              .count = device(std::vector<std::uint32_t>{0x5a5a}),
                              .cursor = device(std::vector<StepCursor>{
                                  {.end = 2, .index = 1, .adapts_clip_norm = 1, .clip = rule}}),
                              .list = device(list),
                              .capacity = 300,
                              .counted = device(std::vector<Tally>{seen})};
      launch(sample_flags_kernel, args, space, {.grid = {2}, .block = {64}});
      launch(sample_place_kernel, args, space, {.grid = {2}, .block = {64}});
      const StepCursor at = host(space.cursor, 1)[0];
      const ListedStep now = host(space.list, 2)[1];
      const float next = next_clip(rule, clip, list[0].noisy_count);
      const StepScalars want = scalars_at(rule, next, given);
      const SumScale scale = scale_at(next);
      for (const StepScalars& s : {at.scalars, now.scalars}) {
        EXPECT_EQ(s.clip_norm, want.clip_norm) << i;
        EXPECT_EQ(s.noise_std, want.noise_std) << i;
        EXPECT_EQ(s.inverse_batch, want.inverse_batch) << i;
        EXPECT_EQ(s.learning_rate, want.learning_rate) << i;
      }
      EXPECT_EQ(at.scale.clip_norm, next);
      EXPECT_EQ(at.scale.grid, scale.grid);
      EXPECT_EQ(at.scale.inverse_grid, scale.inverse_grid);
      EXPECT_EQ(at.halves, halves);
    }
}

}  // namespace
}  // namespace cudp

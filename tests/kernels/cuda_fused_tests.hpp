#pragma once
// The fused kernels (kernels/fused/) against the oracle: every example alone, and sums
// that depend on nothing but the examples.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/cuda_fused_fixture.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

INSTANTIATE_TEST_SUITE_P(All, FusedStep, testing::ValuesIn(kFusedCases),
                         [](const auto& info) { return std::string(info.param.network.name); });

/// With a bound above every norm the sum over one example is its gradient, to half a unit.
TEST_P(FusedStep, GradientNormsAndLossOfOneExample) {
  Dataset data = examples(3);
  for (std::uint32_t e = 0; e < 3; ++e) {
    choose(e);
    if (e == 2) data = cases::as_floats(data);
    const auto want = truth(data, e);
    const auto squares = reference::squared_norms(net_, want.gradient);
    double norm = 0;
    for (const double s : squares) norm += s;
    norm = std::sqrt(norm);
    const ClipSettings clip{Clipping::flat, static_cast<float>(norm * 1.01 + 1e-3), 0.01f};
    const auto whole = sum_of(data, {e}, 2, clip, kernels_[0]);
    for (std::size_t other = 1; other < kernels_.size(); ++other)
      EXPECT_EQ(whole.slabs, sum_of(data, {e}, 2, clip, kernels_[other]).slabs)
          << "results do not depend on how much is in shared memory";
    EXPECT_NEAR(whole.losses[0], want.loss, precision() * (1 + want.loss));
    EXPECT_EQ(whole.losses[1], kLoud) << "there is no second example";
    const double unit = unit_of(clip.clip_norm);
    std::vector<double> got(d_);
    for (std::size_t j = 0; j < d_; ++j) got[j] = whole.slabs[j] * unit;
    for (const ParameterTensor& t : net_.parameters) {
      const auto [error, size] =
          cases::distance(got.data() + t.offset, want.gradient.data() + t.offset, t.size);
      EXPECT_TRUE(error <= precision() * size + unit * std::sqrt(static_cast<double>(t.size)))
          << "example " << e << ", " << t.name << ": " << error << " of " << size;
    }
    const auto [error, size] = cases::distance(got.data(), want.gradient.data(), d_);
    EXPECT_TRUE(error <= precision() * size + 0.5 * unit * std::sqrt(static_cast<double>(d_)))
        << "example " << e << ": " << error / size;
    for (std::size_t g = 0; g < layers_; ++g) {
      expect_near(whole.squared_norms[g], squares[g], 2 * squares[g] + 1e-4, static_cast<int>(g));
      EXPECT_EQ(whole.factors[g], 1.0f);
    }
    EXPECT_EQ(whole.slabs[d_], kLoudUnits) << "a block without examples writes nothing";
  }
}

/// The sum over examples is, in units, the sum of what each example alone gives: whatever the
/// number of blocks, the order of the examples, and where the batch starts.
TEST_P(FusedStep, SumsDependOnTheExamplesAlone) {
  Dataset data = cases::as_floats(examples(6));
  const auto features = static_cast<std::size_t>(data.shape.size());
  data.floats[4 * features + features / 2] = kNan;
  data.floats[2 * features + 1] = std::numeric_limits<float>::infinity();  // tanh makes it finite
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    const ClipSettings clip{kind, 0.7f, 0.05f};
    std::vector<std::int64_t> want(d_, 0);
    reference::Values exact(d_, 0.0);
    for (const std::uint32_t e : {0u, 2u, 3u, 4u, 5u, 0u}) {
      const auto alone = sum_of(data, {e}, 1, clip, kernels_[0]);
      for (std::size_t j = 0; j < d_; ++j) want[j] += alone.slabs[j];
      if (e == 2 || e == 4) {
        EXPECT_EQ(alone.slabs, std::vector<std::int32_t>(d_, 0));
        for (std::size_t g = 0; g < layers_; ++g) EXPECT_EQ(alone.factors[g], 0.0f);
        continue;
      }
      const auto example = truth(data, e);
      const auto squares = reference::squared_norms(net_, example.gradient);
      const auto factors = reference::clip_factors(clip, squares);
      double norm = 0;
      for (std::size_t g = 0; g < layers_; ++g) {
        expect_near(alone.factors[g], factors[g], factors[g], static_cast<int>(g));
        norm += factors[g] * factors[g] * squares[g];
      }
      for (const ParameterTensor& t : net_.parameters)
        for (std::size_t j = t.offset; j < t.offset + t.size; ++j)
          exact[j] += factors[static_cast<std::size_t>(t.group)] * example.gradient[j];
      double got = 0;
      for (const std::int32_t v : alone.slabs) got += std::pow(static_cast<double>(v), 2);
      const double unit = unit_of(clip.clip_norm);
      EXPECT_NEAR(std::sqrt(got) * unit, std::sqrt(norm),
                  precision() * clip.clip_norm + 0.5 * unit * std::sqrt(static_cast<double>(d_)))
          << "clipped norm";
    }
    // A list that starts before the micro-batch and ends within it.
    for (const int blocks : {1, 3, 7}) {
      const auto sum = sum_of(data, {1, 5, 4, 2, 3, 0, 0}, blocks, clip, kernels_.back(), 1);
      const double unit = unit_of(clip.clip_norm);
      std::vector<double> got(d_);
      for (std::size_t j = 0; j < d_; ++j) {
        const auto units = static_cast<std::int64_t>(sum.fixed[j]);
        ASSERT_EQ(units, want[j]) << j << " with " << blocks << " blocks";
        got[j] = static_cast<double>(units) * unit;
      }
      const auto [error, size] = cases::distance(got.data(), exact.data(), d_);
      EXPECT_TRUE(error <= precision() * size + 3 * unit * std::sqrt(static_cast<double>(d_)))
          << error / size;
      if (kind != Clipping::flat) break;
    }
  }
}

/// A candidate that is accepted adds its direction; another one adds nothing. Both leave their
/// norm. Who is accepted is what the CPU says, bit for bit, given the norm.
TEST_P(FusedStep, AcceptsCandidatesAndAddsTheirDirections) {
  Dataset data = cases::as_floats(examples(6));
  const auto features = static_cast<std::size_t>(data.shape.size());
  data.floats[4 * features + features / 2] = kNan;
  std::vector<double> now;
  now.reserve(6);
  for (std::uint32_t e = 0; e < 6; ++e) now.push_back(e == 4 ? 0.0 : norm_of(truth(data, e)));
  const double largest = *std::max_element(now.begin(), now.end());
  Candidacy c{.rule = {.clip = 0.8 * largest, .multiple = 3.0, .min_norm = 0.1 * largest},
              .stream = {Generator::chacha20, {{3, 1, 4, 1, 5}}, Stream::acceptance, 0},
              .step = 0,
              .seen = {}};
  c.rule.rate = 0.2 / c.rule.clip;
  for (std::size_t e = 0; e < 6; ++e)
    c.seen.push_back(static_cast<float>(now[e] * (e % 3 == 0 ? 0.3 : e % 3 == 1 ? 1.0 : 2.0)));
  const double unit = unit_of(1.0f);
  int accepted = 0, rejected = 0;
  std::vector<std::int64_t> sum(d_, 0);  // of step 1
  std::vector<float> after = c.seen;
  for (c.step = 0; c.step < 2; ++c.step)
    for (const std::uint32_t e : {0u, 1u, 2u, 4u, 5u}) {
      const Left alone = accepted_of(data, {{e}}, c, kernels_[0]);
      float squared_norm = 0.0f;
      for (std::size_t g = 0; g < layers_; ++g) squared_norm += alone.squared_norms[g];
      float kept = c.seen[e];
      RandomStream stream = c.stream;
      stream.step = c.step;
      const float factor = accept_candidate(c.rule, stream, e, squared_norm, &kept);
      for (std::size_t g = 0; g < layers_; ++g) ASSERT_EQ(alone.factors[g], factor) << e;
      ASSERT_TRUE(std::abs(alone.norms[e] - now[e]) <= precision() * now[e] + 1e-15) << e;
      std::vector<float> touched = c.seen;
      touched[e] = kept;
      ASSERT_EQ(alone.norms, touched) << e;
      for (std::size_t j = 0; c.step == 1 && j < d_; ++j) sum[j] += alone.slabs[j];
      if (c.step == 1) after[e] = kept;
      // By the oracle: unless the word is within rounding of its threshold.
      const double estimate =
          std::fmin(c.rule.multiple * std::fmax(std::fmin(c.seen[e], c.rule.clip), c.rule.min_norm),
                    1.0 / c.rule.rate);
      const double chance =
          e == 4 ? 0.0 : std::fmin(now[e], std::fmin(estimate, c.rule.clip)) / estimate;
      const double word = reference::word(stream, e) * 0x1p-32;
      if (std::abs(word - chance) > 10 * precision() * chance) {
        EXPECT_EQ(factor > 0.0f, word < chance) << "example " << e << ", step " << c.step;
      }
      if (factor == 0.0f) {
        ++rejected;
        ASSERT_EQ(std::vector<std::int32_t>(alone.slabs.begin(),
                                            alone.slabs.begin() + static_cast<std::ptrdiff_t>(d_)),
                  std::vector<std::int32_t>(d_, 0));
        continue;
      }
      ++accepted;
      const auto want = truth(data, e);
      std::vector<double> got(d_), direction(d_);
      for (std::size_t j = 0; j < d_; ++j) {
        got[j] = alone.slabs[j] * unit;
        direction[j] = want.gradient[j] / now[e];
      }
      const auto [error, size] = cases::distance(got.data(), direction.data(), d_);
      EXPECT_TRUE(error <= precision() + 0.5 * unit * std::sqrt(static_cast<double>(d_)))
          << "example " << e << ": " << error << " of " << size;
    }
  EXPECT_GE(accepted, 2);
  EXPECT_GE(rejected, 3);
  c.step = 1;
  for (const int blocks : {1, 3, 7}) {
    // A list that starts before the micro-batch.
    const Left all = accepted_of(data, {{3, 5, 4, 2, 1, 0}, blocks, 1}, c, kernels_.back());
    for (std::size_t j = 0; j < d_; ++j)
      ASSERT_EQ(static_cast<std::int64_t>(all.fixed[j]), sum[j]) << blocks << " blocks";
    EXPECT_EQ(all.norms, after) << blocks << " blocks";
  }
}

/// More candidates a block than a warp makes words for at once: each is decided as if alone.
TEST_P(FusedStep, ManyCandidatesOfABlockAreDecidedOneByOne) {
  constexpr std::uint32_t kMany = 70;
  const Dataset data = examples(kMany);
  Candidacy c{.rule = {.clip = 1.0, .multiple = 4.0, .min_norm = 0.2, .rate = 0.2},
              .stream = {Generator::chacha20, {{2, 7, 1, 8}}, Stream::acceptance, 0},
              .step = 5,
              .seen = std::vector<float>(kMany, 0.7f)};
  Listed listed;
  for (std::uint32_t e = 0; e < kMany; ++e) listed.examples.push_back(e);
  const Left together = accepted_of(data, listed, c, kernels_[0]);
  listed.blocks = 7;
  const Left apart = accepted_of(data, listed, c, kernels_[0]);
  EXPECT_EQ(together.fixed, apart.fixed);
  EXPECT_EQ(together.norms, apart.norms);
  int accepted = 0;
  for (std::uint32_t e = 0; e < kMany; ++e) {
    EXPECT_EQ(together.factors[layers_ * e], apart.factors[layers_ * e]) << e;
    accepted += together.factors[layers_ * e] > 0.0f;
  }
  EXPECT_TRUE(accepted > 0 && accepted < 70) << accepted;
}

/// Of any number of examples, also where they are not listed.
TEST_P(FusedStep, NormsAndLogitsOfAllExamples) {
  const int n = d_ < 10'000 ? 33 : 4;
  Dataset data = cases::as_floats(examples(static_cast<std::size_t>(n) + 2));
  const auto features = static_cast<std::size_t>(data.shape.size());
  data.floats[3 * features + features / 2] = kNan;
  for (const cuda::FusedKernel& kernel : kernels_) {
    const std::vector<float> norms = norms_of(data, 2, n, kernel);
    for (const int other : {0, 1, n + 2}) EXPECT_EQ(norms[static_cast<std::size_t>(other)], kLoud);
    const std::vector<float> logits = logits_of(data, 2, n, kernel);
    const auto outputs = static_cast<std::size_t>(net_.outputs);
    EXPECT_EQ(logits[outputs * static_cast<std::size_t>(n)], kLoud) << "there is no such example";
    for (int i = 0; i < n; ++i) {
      const auto e = static_cast<std::uint32_t>(i) + 2;
      const auto want = truth(data, e);
      const double norm = norm_of(want);
      EXPECT_TRUE(std::abs(norms[e] - norm) <= precision() * norm + 1e-15) << e << ": " << norms[e];
      if (e == 3) continue;
      const reference::Values z = reference::logits(
          net_, reference::Values(theta_.begin(), theta_.end()), reference::features(data, e));
      for (std::size_t o = 0; o < outputs; ++o)
        expect_near(logits[outputs * static_cast<std::size_t>(i) + o], z[o], 1.0 + std::abs(z[o]),
                    i);
    }
  }
}

/// Features of dense rows may have any size: those here are beyond fp16's, and weights make up for
/// it.
TEST_P(FusedStep, RowsMayHoldNumbersOfAnySize) {
  if (kernels_[0].dense.tile == 0) GTEST_SKIP() << "fp16 has a range";
  const std::vector<float> weights = theta_;
  for (const float size : {0x1p20f, 0x1p-30f}) {
    Dataset data = cases::as_floats(examples(3));
    for (float& x : data.floats) x *= size;
    theta_ = weights;
    for (std::size_t j = 0; j < net_.parameters[0].size; ++j) theta_[j] /= size;
    const std::vector<float> norms = norms_of(data, 0, 3, kernels_[0]);
    const std::vector<float> logits = logits_of(data, 0, 3, kernels_[0]);
    for (std::uint32_t e = 0; e < 3; ++e) {
      const double norm = norm_of(truth(data, e));
      // dense_squared_norm's margin is all there is of a gradient of 0.
      EXPECT_TRUE(std::abs(norms[e] - norm) <= precision() * norm + 1e-11) << e << norms[e];
      const reference::Values z = reference::logits(
          net_, reference::Values(theta_.begin(), theta_.end()), reference::features(data, e));
      for (std::size_t o = 0; o < z.size(); ++o)
        expect_near(logits[z.size() * e + o], z[o], 1.0 + std::abs(z[o]), static_cast<int>(o));
    }
  }
}

TEST_P(FusedStep, AnEmptyBatchAddsNothing) {
  const auto sum = sum_of(examples(1), {}, 3, {}, kernels_[0]);
  for (const std::int32_t v : sum.slabs) ASSERT_EQ(v, kLoudUnits);
  for (const FixedPoint v : sum.fixed) ASSERT_EQ(v, 0u);
}

class FusedKernels : public CudaKernel {};

/// Rows of a table by their codes are their dense rows, bit for bit.
TEST_F(FusedKernels, ReadRowsOfATableByTheirCodes) {
  int wide = 0;
  for (const cases::CodedModel& model : cases::kCodedModels)
    for (unsigned seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(testing::Message() << model.name << ", " << seed);
      std::mt19937 random(seed);
      const Dataset data = cases::random_table(random, model.classes, 30, false);
      const Network net = cases::network_of({model.name, model.model, data.shape, model.classes});
      const auto kernels = cuda::fused_kernels_for(
          net, {.multiprocessors = 1, .shared_bytes = shared_bytes()}, Precision::fp32);
      if (kernels.empty()) continue;
      const cuda::FusedKernel* const kernel = kernels.data();
      wide += data.layout->code_bytes() > 1 ? 1 : 0;
      FusedSum a{};
      a.task = FusedTask::clip;
      a.batch = batch(0, 29, 29);
      a.examples = device([] {
        std::vector<std::uint32_t> last_first;
        for (std::uint32_t e = 29; e > 0; --e) last_first.push_back(e);
        return last_first;
      }());
      a.labels = device(data.labels);
      a.parameters = device(cases::weights_for(net).parameters);
      std::copy(kernel->functions.begin(), kernel->functions.end(), a.functions);
      a.dense = kernel->dense;
      a.loss = net.spec.loss;
      a.clip = {Clipping::flat, 0.01f};
      a.sum_scale = device_scale(0.7f, sum_grid(0.7));
      a.stripe = kTileExamples;
      a.blocks = 2;
      const std::size_t slabs = 2 * net.parameter_count;
      const auto layers = 29 * static_cast<std::size_t>(net.groups);
      std::vector<std::int32_t> sums[2];
      std::vector<float> norms[2], logits[2];
      for (const bool coded : {false, true}) {
        a.floats = coded ? nullptr : device(dense(data).floats);
        if (coded) {
          a.coded = data.layout->view(device(data.coded));
          a.coded.number_feature =
              data.layout->numbers() > 0 ? device(data.layout->number_feature) : nullptr;
        }
        a.slabs = device(std::vector<std::int32_t>(slabs, 0));
        a.losses = device(std::vector<float>(29, kLoud));
        a.squared_norms = device(std::vector<float>(layers, kLoud));
        a.factors = device(std::vector<float>(layers, kLoud));
        run_fused(kernel->sum, a, kernel->shared_bytes, kernel->threads);
        sums[coded] = host(a.slabs, slabs);
        norms[coded] = host(a.squared_norms, layers);
        FusedSum b = a;
        b.task = FusedTask::forward;
        b.losses = b.squared_norms = b.factors = nullptr;
        const auto outputs = 29 * static_cast<std::size_t>(net.outputs);
        b.logits = device(std::vector<float>(outputs, kLoud));
        run_fused(kernel->sum, b, kernel->shared_bytes, kernel->threads);
        logits[coded] = host(b.logits, outputs);
      }
      EXPECT_EQ(sums[0], sums[1]);
      EXPECT_EQ(norms[0], norms[1]);
      EXPECT_EQ(logits[0], logits[1]);
      EXPECT_NE(sums[0], std::vector<std::int32_t>(slabs, 0));
      a.coded.features += 1;
      EXPECT_THROW(validate(a), std::invalid_argument);
    }
  EXPECT_GT(wide, 0) << "codes of two bytes";
}

TEST_F(FusedKernels, SlabsAreAddedExactly) {
  constexpr int kBlocks = 4, kN = 300;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> slabs(std::size_t{kBlocks} * kN);
  for (int b = 0; b < kBlocks; ++b)
    for (int j = 0; j < kN; ++j)
      slabs[b * kN + j] = j == 0 ? kMost : j == 1 ? -kMost : (b + 1) * (j - 150);
  FusedReduce a{};
  a.block_sums = {.batch = batch(0, 100, 3),  // the last block had none
                  .slabs = device(slabs),
                  .stripe = 1,
                  .blocks = kBlocks};
  a.n = kN;
  a.fixed = device(std::vector<FixedPoint>(kN, static_cast<FixedPoint>(-7)));
  run(fused_reduce_kernel, a);
  const auto want = [&](int j) {
    std::int64_t v = -7;
    for (int b = 0; b < 3; ++b) v += slabs[b * kN + j];
    return v;
  };
  const auto once = host(a.fixed, kN);
  for (int j = 0; j < kN; ++j) EXPECT_EQ(static_cast<std::int64_t>(once[j]), want(j)) << j;
  a.block_sums.batch = batch(100, 100, 3);  // a second micro-batch, without examples
  run(fused_reduce_kernel, a);
  EXPECT_EQ(host(a.fixed, kN), once);
}

TEST(FusedArguments, AreChecked) {
  EXPECT_THROW(validate(FusedSum{}), std::invalid_argument);
  EXPECT_THROW(validate(FusedReduce{}), std::invalid_argument);
  const std::uint8_t byte = 0;
  const std::uint32_t number = 0;
  const float parameter = 0;
  std::int32_t slab = 0;
  FusedSum a{};
  a.task = FusedTask::clip;
  a.batch = {&number, 0, 28};
  a.examples = &number;
  a.bytes = a.labels = &byte;
  a.parameters = &parameter;
  const SumScale scale = sum_scale(1.0f, sum_grid(1.0));
  a.sum_scale = &scale;
  a.stripe = kTileExamples;
  a.blocks = 1;
  a.slabs = &slab;
  EXPECT_THROW(validate(a), std::invalid_argument);  // convolutions without packed weights
  a.packed = &byte;
  EXPECT_NO_THROW(validate(a));
  a.packed = nullptr;
  const int wide[] = {60, 1000, 10}, narrow[] = {3, 2};
  for (const DenseShapes& good :
       {dense_plan(narrow, kH200, false), dense_plan(wide, kH200, false)}) {
    a.dense = good;
    EXPECT_NO_THROW(validate(a));
    for (const int tile : {0, kMaxTile + 1}) {
      a.dense.tile = tile;
      EXPECT_THROW(validate(a), std::invalid_argument) << tile;
    }
    a.dense = good;
    for (const int layers : {-1, kMaxDenseLayers + 1}) {
      a.dense.layers = layers;
      EXPECT_THROW(validate(a), std::invalid_argument) << layers;
    }
    a.dense = good;
    a.dense.layer[good.layers - 1].out = kFusedParameters;
    EXPECT_THROW(validate(a), std::invalid_argument) << "too many parameters";
  }
  a.dense = dense_plan(narrow, kH200, false);
  a.batch.capacity = kFusedExamples;
  EXPECT_NO_THROW(validate(a));
  a.batch.capacity = kFusedExamples + 1;
  EXPECT_THROW(validate(a), std::invalid_argument);
  a.batch.capacity = 28;

  // Both numbers of a transform, of gradients that are clipped by one norm.
  FusedSum t = a;
  t.transform.mean = &parameter;
  EXPECT_THROW(validate(t), std::invalid_argument);
  t.transform.inverse = &parameter;
  EXPECT_NO_THROW(validate(t));
  t.clip.kind = Clipping::per_layer;
  EXPECT_THROW(validate(t), std::invalid_argument);

  // What a task needs, and nothing of a sum without one.
  float numbers = 0;
  for (const FusedTask task : {FusedTask::norms, FusedTask::forward}) {
    FusedSum b = a;
    b.task = task;
    EXPECT_THROW(validate(b), std::invalid_argument);
    b.norms = task == FusedTask::norms ? &numbers : nullptr;
    b.logits = task == FusedTask::forward ? &numbers : nullptr;
    b.batch.capacity = 1'000'000;
    EXPECT_NO_THROW(validate(b));
    b.losses = b.squared_norms = b.factors = &numbers;
    EXPECT_THROW(validate(b), std::invalid_argument);
  }
  FusedSum b = a;
  b.task = FusedTask::accept;
  b.norms = &numbers;
  EXPECT_THROW(validate(b), std::invalid_argument) << "no rule";
  const ImportanceRule rule;
  const std::uint64_t step = 0;
  b.accept.rule = &rule;
  b.accept.step = &step;
  EXPECT_NO_THROW(validate(b));
  b.norms = nullptr;
  EXPECT_THROW(validate(b), std::invalid_argument) << "no norms";
}

}  // namespace
}  // namespace cudp

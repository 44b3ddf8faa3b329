// Random models from the layer description: every engine against the double-precision oracle, and
// the CUDA engine against the CPU's, example by example.
#include "tests/support/random_models.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/simd_level.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

constexpr unsigned kFirstSeed = 62;  // of the first sixteen that cover the layer description
constexpr unsigned kModels = 16;
constexpr double kTolerance = 1e-5;

struct Drawn {
  std::string text;
  Network net;
  Dataset data;
  TrainState state;
  EngineSettings settings;
  float clip_norm = 1.0f;
  int drawn = 0;  ///< inputs, of which data has those that are not delicate
};

/// Every input stands in the set once with every label: its losses then say all that its logits do.
Drawn drawn_case(unsigned seed) {
  const cases::RandomModel m = cases::random_model(seed);
  const std::string name = "model " + std::to_string(seed);
  Drawn s{.text = m.text,
          .net = build_network(parse_model(m.text, name, m.classes), m.input, m.classes),
          .data = {},
          .state = {},
          .settings = {},
          .clip_norm = 1.0f};
  s.state = cases::weights_for(s.net);
  s.state.moment1.assign(s.net.parameter_count, 0.0f);
  const reference::Values theta(s.state.parameters.begin(), s.state.parameters.end());

  std::mt19937 random(seed);
  s.data.shape = m.input;
  s.data.classes = m.classes;
  s.data.scale = 1.0f / 64.0f;
  s.data.shift = -1.7f;
  for (int kept = 0; kept < 24 / m.classes && s.drawn < 48; ++s.drawn) {
    Dataset one = s.data;
    one.bytes.clear();
    one.floats.clear();
    for (int i = 0; i < m.input.size(); ++i)
      if (m.as_bytes)
        one.bytes.push_back(static_cast<std::uint8_t>(random() % 256));
      else
        one.floats.push_back(static_cast<float>(random() % 4001) / 1000.0f - 2.0f);
    if (cases::is_delicate(s.net, theta, reference::features(one, 0))) continue;
    ++kept;
    for (int label = 0; label < m.classes; ++label) {
      s.data.bytes.insert(s.data.bytes.end(), one.bytes.begin(), one.bytes.end());
      s.data.floats.insert(s.data.floats.end(), one.floats.begin(), one.floats.end());
      s.data.labels.push_back(static_cast<std::uint8_t>(label));
    }
  }
  s.settings.recipe.optimizer.kind = OptimizerKind::momentum;
  s.settings.key = {{seed, 1, 2, 3, 4, 5, 6, 7}};
  s.settings.recipe.draw = Poisson{std::uint64_t{3} << 30};
  s.settings.recipe.contribution = ClippedGradient{
      std::array{Clipping::flat, Clipping::per_layer, Clipping::automatic}[seed % 3]};
  return s;
}

ClippedGradient clipping_of(const Drawn& s) {
  return std::get<ClippedGradient>(s.settings.recipe.contribution);
}

/// What an engine makes of single examples, and of a batch.
struct OneStep {
  PerExample single;
  std::vector<float> sum;  ///< of clipped gradients; what a first momentum step leaves as moment
  std::vector<std::uint32_t> batch;
};

OneStep outcome_of(Engine& engine, const Drawn& s) {
  constexpr std::uint64_t kStep = 3;
  engine.load(s.data);
  engine.set_state(s.state);
  std::vector<std::uint32_t> all(s.data.size());
  std::iota(all.begin(), all.end(), 0u);
  OneStep o{.single = engine.per_example(all, true), .sum = {}, .batch = engine.sampled(kStep)};
  const StepScalars still = cases::still(0.0f, s.clip_norm);
  engine.run(s.settings.recipe, kStep, {&still, 1});
  o.sum = engine.state().moment1;
  return o;
}

/// |got - want| <= 1e-5, relative to
///   the larger of 1 and the loss, for a loss: it is a difference of logits;
///   the tensor's own norm and a tenth of the whole gradient's, for a gradient: of an unimportant
///   tensor cancellation may leave little but rounding;
///   the same two squares, and twice (it is a square), for a layer's squared norm;
///   the sum of the norms of the batch's clipped gradients, for the sum.
void expect_same(const Drawn& s, const OneStep& got, const OneStep& want) {
  const std::size_t d = s.net.parameter_count;
  const auto groups = static_cast<std::size_t>(s.net.groups);
  const std::size_t n = s.data.size();
  ASSERT_EQ(got.single.gradients.size(), n * d);
  ASSERT_EQ(got.single.squared_norms.size(), n * groups);
  ASSERT_EQ(got.single.losses.size(), n);
  std::vector<double> clipped(n);
  for (std::size_t e = 0; e < n; ++e) {
    SCOPED_TRACE("example " + std::to_string(e));
    const double loss = want.single.losses[e];
    EXPECT_TRUE(std::abs(got.single.losses[e] - loss) <= kTolerance * std::fmax(1.0, loss))
        << "loss " << got.single.losses[e] << ", expected " << loss;
    const float* const g = got.single.gradients.data() + e * d;
    const float* const h = want.single.gradients.data() + e * d;
    const auto [error, size] = cases::distance(g, h, d);
    EXPECT_TRUE(error <= kTolerance * size) << "gradient: " << error << " of " << size;
    for (const ParameterTensor& t : s.net.parameters) {
      const auto [tensor_error, tensor_size] = cases::distance(g + t.offset, h + t.offset, t.size);
      EXPECT_TRUE(tensor_error <= kTolerance * (tensor_size + 0.1 * size))
          << "gradient of " << t.name << ": " << tensor_error << " of " << tensor_size;
    }
    reference::Values squares;
    for (std::size_t i = e * groups; i < (e + 1) * groups; ++i) {
      const double square = want.single.squared_norms[i];
      EXPECT_TRUE(std::abs(got.single.squared_norms[i] - square) <=
                  2 * kTolerance * (square + 0.01 * size * size))
          << "squared norm of layer " << i % groups << ": " << got.single.squared_norms[i]
          << ", expected " << square;
      squares.push_back(square);
    }
    const reference::Values factors =
        reference::clip_factors(clipping_of(s).at(s.clip_norm), squares);
    for (std::size_t i = 0; i < groups; ++i) clipped[e] += factors[i] * factors[i] * squares[i];
  }
  ASSERT_EQ(got.batch, want.batch);
  double size = 0.0;
  for (const std::uint32_t e : want.batch) size += std::sqrt(clipped[e]);
  const double error = cases::distance(got.sum.data(), want.sum.data(), d).error;
  const double grid = cases::grid_error(s.clip_norm, d, want.batch.size());
  EXPECT_TRUE(error <= kTolerance * size + grid) << "clipped sum: " << error << " of " << size;
}

class RandomModels : public testing::TestWithParam<unsigned> {};

TEST_P(RandomModels, AgreeOnEveryExample) {
  Drawn s = drawn_case(GetParam());
  SCOPED_TRACE(s.text);
  ASSERT_GE(2 * static_cast<int>(s.data.size()) / s.data.classes, s.drawn)
      << "most inputs are too delicate to compare";
  double norms = 0.0;
  reference::ReferenceEngine oracle(s.net, s.settings);
  for (const float square : outcome_of(oracle, s).single.squared_norms) norms += std::sqrt(square);
  // About half the examples are clipped.
  s.clip_norm = static_cast<float>(norms / static_cast<double>(s.data.size()));
  reference::ReferenceEngine clipping(s.net, s.settings);
  const OneStep want = outcome_of(clipping, s);

  OneStep cpu;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    if (!cases::has_simd_level(level)) continue;
    SCOPED_TRACE(simd_name(level));
    cpu = outcome_of(*cases::cpu_engine_at(level, s.net, s.settings), s);
    expect_same(s, cpu, want);
  }
  const bool by_blas = GetParam() % 2 == 0;
  SCOPED_TRACE(by_blas ? "CUDA, dense layers by BLAS" : "CUDA");
  const auto device =
      layer_wise_engine(s.net, s.settings, by_blas ? 1 : cuda::kLargeDense, {.seed = GetParam()});
  const OneStep cuda = outcome_of(*device, s);
  expect_same(s, cuda, want);
  SCOPED_TRACE("beside the CPU's");
  expect_same(s, cuda, cpu);
}

/// Every kind of layer and loss at least twice among the models, poolings and group norm where
/// their own gradient is asked for, and what is special to some.
TEST(RandomModelsTogether, CoverTheLayerDescription) {
  std::map<std::string, int> seen;
  for (const char* what : {"conv2d",
                           "padded",
                           "strided",
                           "padded behind dense",
                           "dense",
                           "maxpool",
                           "avgpool",
                           "groupnorm",
                           "relu",
                           "tanh",
                           "tempered sigmoid",
                           "softmax",
                           "logistic",
                           "hinge",
                           "images",
                           "vectors",
                           "bytes",
                           "floats",
                           "flat",
                           "per layer",
                           "automatic"})
    seen[what] = 0;
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kModels; ++seed) {
    const Drawn s = drawn_case(seed);
    const Layer* before = nullptr;
    for (const NetworkLayer& l : s.net.layers) {
      if (const auto* c = std::get_if<Conv2d>(&l.layer)) {
        ++seen["conv2d"];
        seen["padded"] += c->pad > 0;
        seen["strided"] += c->stride > 1 && before != nullptr;
        seen["padded behind dense"] +=
            c->pad > 0 && before != nullptr && std::holds_alternative<Dense>(*before);
      }
      seen["dense"] += std::holds_alternative<Dense>(l.layer);
      seen["maxpool"] += before != nullptr && std::holds_alternative<MaxPool2d>(l.layer);
      seen["avgpool"] += before != nullptr && std::holds_alternative<AvgPool2d>(l.layer);
      seen["groupnorm"] += before != nullptr && std::holds_alternative<GroupNorm>(l.layer);
      if (const auto* f = std::get_if<Activate>(&l.layer))
        ++seen[f->kind == Activation::relu   ? "relu"
               : f->kind == Activation::tanh ? "tanh"
                                             : "tempered sigmoid"];
      if (l.has_parameters()) before = &l.layer;
    }
    const Loss loss = s.net.spec.loss;
    ++seen[loss == Loss::softmax_cross_entropy ? "softmax"
           : loss == Loss::logistic            ? "logistic"
                                               : "hinge"];
    ++seen[s.net.input.height > 1 ? "images" : "vectors"];
    ++seen[s.data.is_bytes() ? "bytes" : "floats"];
    const Clipping kind = clipping_of(s).kind;
    ++seen[kind == Clipping::flat        ? "flat"
           : kind == Clipping::per_layer ? "per layer"
                                         : "automatic"];
  }
  for (const auto& [what, times] : seen) EXPECT_GE(times, 2) << what;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomModels, testing::Range(kFirstSeed, kFirstSeed + kModels),
                         [](const auto& i) { return "seed_" + std::to_string(i.param); });

}  // namespace
}  // namespace cudp

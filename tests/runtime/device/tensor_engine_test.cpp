// Layers multiplied in TF32, under the emulator: every example within 2e-3 of the double-precision
// oracle, which layers those are, and that no clipped gradient is longer than it may be.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cuda/layers/product_layer.hpp"
#include "runtime/device/cuda/layout.hpp"
#include "runtime/device/sensitivity.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Case;

constexpr double kTf32Tolerance = 2e-3;  // of a gradient and of a norm, relative
constexpr double kLeastError = 1e-5;     // what float32 would stay below

EngineSettings tf32_settings(int micro_batch = 32) {
  EngineSettings s;
  s.precision = Precision::tf32;
  s.micro_batch = micro_batch;
  return s;
}
/// What a device that knows TF32 has at least.
constexpr std::size_t kShared = std::size_t{99} * 1024;
std::unique_ptr<Engine> layer_wise(const Network& net, const EngineSettings& s,
                                   std::size_t shared_bytes = kShared) {
  return layer_wise_engine(net, s, cuda::kLargeDense, {.shared_bytes = shared_bytes});
}

/// The norm by which an example is clipped is that of the gradient that is added: not of an exact
/// one, which is a thousand times farther from it than this.
void expect_own_norms(const Network& net, const PerExample& got, std::size_t examples) {
  for (std::size_t e = 0; e < examples; ++e)
    for (const NetworkLayer& l : net.layers) {
      if (!l.has_parameters()) continue;
      double square = 0.0;
      for (std::size_t i = 0; i < l.parameter_count; ++i) {
        const ParameterTensor& t = net.parameters[l.first_parameter + i];
        const float* const g = got.gradients.data() + e * net.parameter_count + t.offset;
        for (std::size_t j = 0; j < t.size; ++j) square += double{g[j]} * g[j];
      }
      const std::size_t at = e * static_cast<std::size_t>(net.groups);
      const double norm = got.squared_norms[at + static_cast<std::size_t>(l.group)];
      EXPECT_TRUE(std::abs(norm - square) <= 3e-6 * square)
          << "layer " << l.group << ": " << norm << ", added " << square;
    }
}

/// Gradients, norms and losses of every example; the largest relative error of a gradient, which
/// is to be below `tolerance`.
double expect_near_the_oracle(const Network& net, const Dataset& data, const TrainState& state,
                              double tolerance = kTf32Tolerance,
                              std::int64_t large_dense = cuda::kLargeDense) {
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0u);
  const auto device =
      layer_wise_engine(net, tf32_settings(), large_dense, {.shared_bytes = kShared});
  reference::ReferenceEngine oracle(net, {});
  PerExample got, want;
  for (Engine* e : {device.get(), static_cast<Engine*>(&oracle)}) {
    e->load(data);
    e->set_state(state);
    (e == &oracle ? want : got) = e->per_example(all, true);
  }
  expect_own_norms(net, got, data.size());
  const std::size_t d = net.parameter_count;
  const auto groups = static_cast<std::size_t>(net.groups);
  double largest = 0.0;
  for (std::size_t e = 0; e < data.size(); ++e) {
    SCOPED_TRACE("example " + std::to_string(e));
    EXPECT_NEAR(got.losses[e], want.losses[e], kTf32Tolerance * (1.0 + want.losses[e]));
    const auto [error, size] =
        cases::distance(got.gradients.data() + e * d, want.gradients.data() + e * d, d);
    EXPECT_TRUE(error <= tolerance * size) << "gradient: " << error << " of " << size;
    largest = std::fmax(largest, error / size);
    double got_square = 0.0;
    double square = 0.0;
    for (std::size_t i = e * groups; i < (e + 1) * groups; ++i) {
      got_square += got.squared_norms[i];
      square += want.squared_norms[i];
    }
    EXPECT_TRUE(std::abs(std::sqrt(got_square) - std::sqrt(square)) <=
                kTf32Tolerance * std::sqrt(square))
        << "norm: " << std::sqrt(got_square) << ", expected " << std::sqrt(square);
  }
  return largest;
}

class TensorEngine : public testing::TestWithParam<Case> {
 protected:
  /// With average in place of maximum pooling where asked for.
  double expect_near(bool smooth, double tolerance) const {
    Case c = GetParam();
    std::string text(builtin_model(c.model));
    for (std::size_t at = 0; smooth && (at = text.find("maxpool", at)) != std::string::npos;)
      text.replace(at, 3, "avg");
    c.model = text.c_str();
    const Network net = cases::network_of(c);
    const std::size_t examples = net.parameter_count > 100'000 ? 2 : 5;
    return expect_near_the_oracle(net, cases::examples_for(c, examples), cases::weights_for(net),
                                  tolerance);
  }
};

TEST_P(TensorEngine, EveryExampleIsNearTheOracle) {
  EXPECT_GT(expect_near(true, kTf32Tolerance), kLeastError) << "was it TF32?";
}

/// Of pixels that are nearer to each other than TF32 tells apart a maximum may take the other, and
/// its gradient goes elsewhere: as good a gradient, and of the same length.
TEST_P(TensorEngine, NormsAreNearTheOracleWithMaximumPoolingToo) { expect_near(false, 0.03); }

INSTANTIATE_TEST_SUITE_P(
    All, TensorEngine,
    testing::Values(Case{"cnn", "cnn", {1, 28, 28}, 10},
                    Case{"cifar_cnn", "cifar-cnn", {3, 32, 32}, 10},
                    Case{"scatter_cifar_cnn", "scatter-cifar-cnn", {243, 8, 8}, 10},
                    Case{"wide_mlp", "mlp", {40, 1, 1}, 20}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TensorEngineBlas, EveryExampleIsNearTheOracle) {
  const Case c{"wide_mlp", "mlp", {40, 1, 1}, 20};
  const Network net = cases::network_of(c);
  const double error = expect_near_the_oracle(net, cases::examples_for(c, 5),
                                              cases::weights_for(net), kTf32Tolerance, 1);
  EXPECT_GT(error, kLeastError) << "was it TF32?";
}

bool uses_tensor_cores(const Network& net) {
  return cuda::build_layout(net, {.precision = Precision::tf32}).storage.uses_tensor_cores;
}

/// Without kinks, where a small difference may take another gradient, and with layers that gain.
bool is_smooth(const Network& net) {
  for (const NetworkLayer& l : net.layers) {
    const auto* f = std::get_if<Activate>(&l.layer);
    if (f != nullptr && f->kind == Activation::relu) return false;
    if (std::holds_alternative<MaxPool2d>(l.layer)) return false;
  }
  return net.spec.loss != Loss::hinge;
}

TEST(TensorEngineRandom, ModelsAreNearTheOracle) {
  int models = 0;
  for (unsigned seed = 1; models < 4; ++seed) {
    const cases::RandomModel m = cases::random_model(seed);
    const Network net = build_network(parse_model(m.text, "random", m.classes), m.input, m.classes);
    if (!is_smooth(net) || !uses_tensor_cores(net)) continue;
    ++models;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + m.text);
    Case c{"random", m.text.c_str(), m.input, m.classes};
    expect_near_the_oracle(net, cases::examples_for(c, 6), cases::weights_for(net));
  }
}

/// The second convolution's gradient is made from patches.
constexpr const char* kPatched = R"(name = "patched"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "conv2d", name = "conv1", out = 16, kernel = 3, pad = 1 },
  { type = "activation" },
  { type = "conv2d", name = "conv2", out = 40, kernel = 3, pad = 1, stride = 2 },
  { type = "activation" },
  { type = "dense", name = "fc", out = "outputs" },
])";

TEST(TensorEngineSum, DoesNotDependOnTheMicroBatchOrSharedMemory) {
  for (const Case& c :
       {Case{"mixed", cases::kMixed, {2, 11, 9}, 4}, Case{"patched", kPatched, {2, 16, 16}, 4}}) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    ASSERT_TRUE(uses_tensor_cores(net));
    const Dataset data = cases::examples_for(c, 80);
    std::vector<float> first;
    for (const auto& [micro_batch, shared_kb] : {std::pair{32, 99}, {96, 99}, {96, 227}}) {
      EngineSettings s = tf32_settings(micro_batch);
      s.recipe.draw = Poisson{std::uint64_t{1} << 32};
      auto engine = layer_wise(net, s, static_cast<std::size_t>(shared_kb) * 1024);
      const auto sum = cases::clipped_sum(*engine, s.recipe, net, data, 0.7f);
      if (first.empty()) first = sum;
      EXPECT_EQ(first, sum) << micro_batch << " examples, " << shared_kb << " KB";
    }
  }
}

/// Forward and backward products are made from patches of pixels, of 32 columns and of 64.
constexpr const char* kLarge = R"(name = "large"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "conv2d", name = "conv1", out = 16, kernel = 3, pad = 1 },
  { type = "activation" },
  { type = "conv2d", name = "conv2", out = 40, kernel = 3, pad = 1 },
  { type = "activation" },
  { type = "avgpool", kernel = 16, stride = 16 },
  { type = "dense", name = "fc", out = "outputs" },
])";

/// Alone an example is divided among more blocks than four together, and its products would be
/// thin; what it comes to is the same, bit for bit.
TEST(TensorEnginePatches, AnExampleAloneIsTheSame) {
  const Case c{"large", kLarge, {1, 64, 64}, 4};
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 4);
  const cuda::CudaLayout layout = cuda::build_layout(
      net,
      {.precision = Precision::tf32, .limits = {.multiprocessors = 3, .shared_bytes = kShared}});
  std::set<int> columns;
  for (const cuda::ProductPlan& p : layout.storage.patched_products) {
    device::Product product{};
    product.rows_per_example = p.rows_per_example;
    product.terms = p.terms;
    product.columns = p.columns;
    product.batch.capacity = 4;
    EXPECT_FALSE(device::is_thin(product));
    columns.insert(patch_columns(p.columns));
    product.batch.capacity = 1;
    EXPECT_TRUE(device::is_thin(product));
    EXPECT_LT(spread(p.patch, 1, p.columns, 1000).lines, p.patch.lines);
  }
  ASSERT_EQ(columns, (std::set<int>{32, 64}));

  expect_near_the_oracle(net, data, cases::weights_for(net));
  const auto engine = layer_wise(net, tf32_settings());
  engine->load(data);
  engine->set_state(cases::weights_for(net));
  const std::uint32_t all[] = {0, 1, 2, 3};
  const PerExample together = engine->per_example(all, true);
  for (const std::uint32_t e : all) {
    const PerExample alone = engine->per_example({&e, 1}, true);
    EXPECT_EQ(alone.losses[0], together.losses[e]);
    for (const ParameterTensor& t : net.parameters) {
      const float* const one = alone.gradients.data() + t.offset;
      const float* const of_four = together.gradients.data() + e * net.parameter_count + t.offset;
      EXPECT_TRUE(std::equal(one, one + t.size, of_four)) << "example " << e << ", " << t.name;
    }
  }
}

/// Input of a convolution that BLAS has written, so that nothing has rounded it.
constexpr const char* kAfterBlas = R"(name = "after_blas"
loss = "cross_entropy"
layers = [
  { type = "dense", name = "a", out = 32 },
  { type = "conv2d", name = "b", out = 20, kernel = 3, pad = 2 },
  { type = "tanh" },
  { type = "dense", name = "c", out = "outputs" },
])";

/// Patches are rounded as they are read, so what wrote them need not round.
TEST(TensorEnginePatches, NeedNoRoundedInput) {
  const Case c{"after_blas", kAfterBlas, {40, 1, 1}, 4};
  const Network net = cases::network_of(c);
  const cuda::CudaLayout layout =
      cuda::build_layout(net, {.precision = Precision::tf32,
                               .large_dense = 1,
                               .limits = {.multiprocessors = 3, .shared_bytes = kShared}});
  const auto& convolution = dynamic_cast<const cuda::ProductLayer&>(*layout.layers[2]);
  EXPECT_EQ(layout.edges[1].value_as, Precision::fp32);
  EXPECT_GT(convolution.gradient_plan().patch.lines, 0);
  EXPECT_EQ(layout.storage.patched_products.size(), 1u) << "forward; back there is one pixel";
  const double error = expect_near_the_oracle(net, cases::examples_for(c, 5),
                                              cases::weights_for(net), kTf32Tolerance, 1);
  EXPECT_GT(error, kLeastError) << "was it fp16?";
}

/// What one example adds, measured in double: clipped whole, by layer, and as adaclip transforms
/// it.
TEST(TensorEngineSum, NoExampleAddsMoreThanTheClippingNorm) {
  const Case c{"cifar_cnn", "cifar-cnn", {3, 8, 8}, 10};
  const Network net = cases::network_of(c);
  const Dataset data = cases::examples_for(c, 1);
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    EngineSettings s = tf32_settings();
    s.recipe = {.draw = Poisson{std::uint64_t{1} << 32},
                .contribution = ClippedGradient{kind, 1e-4f}};
    auto engine = layer_wise(net, s);
    const auto sum = cases::clipped_sum(*engine, s.recipe, net, data, 0.01f);
    const std::vector<float> none(sum.size(), 0.0f);
    const double norm = cases::distance(none.data(), sum.data(), sum.size()).size;
    // The sum is read as the difference of parameters near 1, each rounded.
    const double read = std::sqrt(static_cast<double>(sum.size())) * 0x1p-24;
    EXPECT_TRUE(norm <= 0.01 * (1.0 + sensitivity_rounding_error(net, kCudaArithmetic)) + read)
        << norm;
    EXPECT_GT(norm, 0.0099);
  }
}

TEST(TensorLayers, AreThoseThatGain) {
  const auto precisions = [](const char* model, Shape shape, int classes) {
    const Network net = cases::network_of({"case", model, shape, classes});
    std::string text;
    const auto kind = [](const cuda::ProductLayer& l) {
      const cuda::GradientPlan& g = l.gradient_plan();
      return l.precision() == Precision::fp32 ? "-"
             : g.precision == Precision::fp32 ? "f"
             : g.patch.lines == 0             ? "t"
                                              : "p";
    };
    const cuda::CudaLayout layout = cuda::build_layout(net, {.precision = Precision::tf32});
    for (const auto& l : layout.layers)
      if (const auto* p = dynamic_cast<const cuda::ProductLayer*>(l.get())) text += kind(*p);
    return text;
  };
  // t: tensor cores throughout, p: the gradient from patches. f: forward and back. -: float32, as
  // too few outputs have it.
  EXPECT_EQ(precisions("cifar-cnn", {3, 32, 32}, 10), "tpppppf-");
  EXPECT_EQ(precisions("scatter-cifar-cnn", {243, 8, 8}, 10), "pp-");
  EXPECT_EQ(precisions(kPatched, {2, 16, 16}, 4), "tp-");
  EXPECT_EQ(precisions("logistic", {60, 1, 1}, 10), "-");
  EXPECT_EQ(precisions("mlp", {784, 1, 1}, 10), "f-");
  EXPECT_EQ(precisions("mlp", {2000, 1, 1}, 10), "f-") << "BLAS has it";
  const Network net = cases::network_of({"case", "cifar-cnn", {3, 32, 32}, 10});
  EXPECT_FALSE(cuda::build_layout(net).storage.uses_tensor_cores);
}

}  // namespace
}  // namespace cudp

#pragma once
// Layers for texts that are wide enough for tensor cores, in TF32: near the oracle to what rounding
// of the operands makes, and as independent of other examples as in float32.
// tests/runtime/device/text_engine_test.cpp tries kernels under the emulator, tests/gpu/ a device.
#include "runtime/base/error.hpp"
#include "tests/runtime/device/text_engine_tests.hpp"

namespace cudp {
namespace {

class TextEngineTensors : public TextEngine {
 protected:
  EngineSettings settings() const override {
    EngineSettings s = TextEngine::settings();
    s.precision = Precision::tf32;
    return s;
  }

  /// Against the oracle, example by example; and each norm is that of the gradient that is added.
  void expect_near_the_oracle(const Case& c, std::size_t examples) const {
    const Network net = cases::network_of(c);
    const Dataset data = texts_of_every_length(c, examples);
    reference::ReferenceEngine oracle(net, {});
    oracle.load(data);
    oracle.set_state(weights_for(net));
    const PerExample want = oracle.per_example(all_of(data), true);
    const PerExample got = per_example(net, data, weights_for(net));
    const std::size_t d = net.parameter_count;
    double worst = 0.0;
    for (std::size_t e = 0; e < data.size(); ++e) {
      EXPECT_TRUE(std::abs(got.losses[e] - want.losses[e]) <= 2e-3 * (1 + want.losses[e]));
      const auto [error, size] =
          cases::distance(got.gradients.data() + e * d, want.gradients.data() + e * d, d);
      EXPECT_TRUE(error <= 2e-3 * size + 1e-12)
          << "example " << e << ": " << error << " of " << size;
      worst = std::max(worst, size > 0 ? error / size : 0.0);
      double square = 0.0;
      for (std::size_t i = 0; i < d; ++i)
        square += double{got.gradients[e * d + i]} * got.gradients[e * d + i];
      double norm = 0.0;
      for (int g = 0; g < net.groups; ++g)
        norm += got.squared_norms[e * static_cast<std::size_t>(net.groups) +
                                  static_cast<std::size_t>(g)];
      EXPECT_TRUE(std::abs(norm - square) <= 2e-5 * square + 1e-9) << "example " << e;
    }
    EXPECT_GT(worst, 2e-5) << "this is float32";
  }
};

/// Layers that tensor cores make, over each other, with a number of units that is whole tiles and
/// one that is not.
constexpr const char* kTensorLayers = R"(
name = "tensors"
loss = "softmax"
layers = [
  { type = "embedding", name = "e" },
  { type = "dense", name = "a", out = 68, per_token = true },
  { type = "tanh" },
  { type = "lstm", name = "b", hidden = 64, bidirectional = true, output = "sequence" },
  { type = "gru", name = "c", hidden = 70, output = "mean" },
  { type = "dense", name = "d", out = "outputs" },
]
)";
const Case kTensorCase{"tensors", kTensorLayers, {1, 1, 7}, 3, {13, 66}};

TEST_P(TextEngineTensors, RecurrentLayersAreNearTheOracle) {
  struct Sizes {
    int hidden, columns, words;
  };
  int number = 0;
  for (const char* cell : {"lstm", "gru"})
    for (const Sizes s :
         {Sizes{64, 3, 7}, Sizes{64, 100, 80}, Sizes{100, 32, 1}, Sizes{100, 100, 80},
          Sizes{128, 100, 7}, Sizes{67, 5, 20}, Sizes{136, 70, 9}}) {
      const std::string model = one_layer(cell, s.hidden, ++number);
      SCOPED_TRACE(model + std::to_string(s.columns) + " columns, texts of " +
                   std::to_string(s.words));
      expect_near_the_oracle({"one", model.c_str(), {1, 1, s.words}, 3, {11, s.columns}}, 4);
    }
}

TEST_P(TextEngineTensors, LayersOverEachOtherAreNearTheOracle) {
  expect_near_the_oracle(kTensorCase, 19);
}

TEST_P(TextEngineTensors, SumsAreNearTheOracle) {
  const Network net = cases::network_of(kTensorCase);
  const Dataset data = texts_of_every_length(kTensorCase, 9);
  const EngineSettings s = settings();
  reference::ReferenceEngine oracle(net, s);
  const auto got = clipped_sum(*engine(net, s), s.recipe, net, data, 0.7f);
  const auto want = clipped_sum(oracle, s.recipe, net, data, 0.7f);
  for (const ParameterTensor& p : net.parameters) {
    const auto [error, size] =
        cases::distance(got.data() + p.offset, want.data() + p.offset, p.size);
    EXPECT_TRUE(error <= 2e-3 * size + 1e-4 + cases::grid_error(0.7, p.size, data.size()))
        << p.name << ": " << error << " of " << size;
  }
}

/// Evaluations: what a library gives is as near to ours as sums in another order are. Empty texts,
/// which it does not know, are among them.
TEST_P(TextEngineTensors, ALibraryGivesTheLogitsOfOurKernels) {
  for (const Case& c :
       {cases::kTextCases[0], cases::kTextCases[2], cases::kTextCases[5], kTensorCase}) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 37);
    std::vector<float> logits[2];
    for (const bool by_library : {false, true}) {
      EngineSettings s;
      s.evaluate_with = by_library ? EvaluateWith::cudnn : EvaluateWith::ours;
      std::unique_ptr<Engine> e;
      try {
        e = engine(net, s);
      } catch (const Error& missing) {
        if (!by_library) throw;
        GTEST_SKIP() << missing.what();
      }
      e->set_state(weights_for(net));
      logits[by_library ? 1 : 0] = e->logits(data);
    }
    const auto [error, size] =
        cases::distance(logits[1].data(), logits[0].data(), logits[0].size());
    EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
  }
}

TEST_P(TextEngineTensors, AnExampleAddsTheSameBitsAloneAndInCompany) {
  expect_the_same_sum_alone_and_in_company(kTensorCase);
}

TEST_P(TextEngineTensors, MorePaddingAndOtherTextsChangeNoBit) {
  expect_padding_to_change_no_bit(kTensorCase);
  const Network net = cases::network_of(kTensorCase);
  const Dataset data = texts_for(kTensorCase, 12);
  const PerExample a = per_example(net, data, weights_for(net));
  for (const std::size_t i : {0u, 1u, 5u}) {
    const std::size_t listed[] = {i};
    const PerExample one = per_example(net, select_examples(data, listed), weights_for(net));
    const auto from = a.gradients.begin() + static_cast<std::ptrdiff_t>(i * net.parameter_count);
    EXPECT_TRUE(std::equal(one.gradients.begin(), one.gradients.end(), from)) << "example " << i;
  }
}

/// Words x, -x, x, ...: a weight's gradient is what rounding leaves of terms that cancel. It is
/// still no more than the clipping norm that is added.
TEST_P(TextEngineTensors, TermsThatCancelKeepTheClippingNorm) {
  static constexpr const char* kDense = R"(
name = "dense"
layers = [
  { type = "embedding", name = "e" },
  { type = "dense", name = "a", out = 64, per_token = true },
  { type = "mean" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
  const std::string lstm = one_layer("lstm", 64, 1);
  const std::string gru = one_layer("gru", 64, 1);
  for (const char* model : {kDense, lstm.c_str(), gru.c_str()})
    expect_the_norm_of_terms_that_cancel({"cancel", model, {1, 1, 40}, 2, {2, 64}});
}

}  // namespace
}  // namespace cudp

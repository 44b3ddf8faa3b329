#pragma once
// The fused kernel of texts (kernels/fused/recurrent_kernel.cuh) against the oracle, text by text,
// and against itself: results depend on no group, grid, place or neighbour, by a bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/compiled_recurrent.hpp"
#include "tests/kernels/fused_network.hpp"

namespace cudp {
namespace {

/// A network of the kernel's layers: `recurrent` is the recurrent one, `head` the outputs of the
/// dense layer after it.
std::string text_model(const std::string& recurrent, int head) {
  return "name = 'texts'\nloss = 'softmax'\nactivation = 'relu'\nlayers = [{type = 'embedding', "
         "name = 'e'}, "
         "{type = 'dense', name = 'a', out = 32, per_token = true}, {type = 'activation'}, " +
         recurrent + ", {type = 'dense', name = 'b', out = " + std::to_string(head) +
         "}, {type = 'activation'}, {type = 'dense', name = 'c', out = 'outputs'}]";
}
const std::string kGruLayers =
    text_model("{type = 'gru', name = 'r', hidden = 32, bidirectional = true}", 16);
const std::string kWideLayers = text_model("{type = 'lstm', name = 'r', hidden = 64}", 16);
const std::string kOneWayLayers = text_model("{type = 'lstm', name = 'r', hidden = 32}", 9);
const std::string kOneWayGruLayers = text_model("{type = 'gru', name = 'r', hidden = 64}", 9);
struct OneWay {
  static constexpr fused::TextLayers kLayers{36, 32, 32, 1, 9, 5};
};
struct OneWayGru {
  static constexpr fused::TextLayers kLayers{36, 32, 64, 1, 9, 5, fused::TextCell::gru};
};

/// An instance of the kernel, for one network and length of texts.
struct TextInstance {
  cases::Case network;
  void (*kernel)(FusedSum);
  std::size_t (*shared_bytes)(int texts, int places);
  std::int64_t (*scratch_bytes)(int texts, int places);
  bool transforms;
  std::size_t parameters;
};

template <class N, bool transforms = false>
TextInstance text_instance(const cases::Case& network) {
  using P = fused::TextPlan<N, transforms>;
  return {network,
          fused::recurrent_kernel<P>,
          [](int texts, int places) { return fused::text_shared_bytes<P>(texts, places); },
          [](int texts, int places) { return P::scratch_bytes(texts, places); },
          transforms,
          std::size_t{P::kParameters}};
}

const cases::Case kImdbRnn{"imdb_rnn", "imdb-rnn", {1, 1, 21}, 2, {50, 100}};
const cases::Case kLongTexts{"long", "imdb-rnn", {1, 1, 97}, 2, {50, 100}};
const cases::Case kGru{"gru", kGruLayers.c_str(), {1, 1, 21}, 2, {50, 100}};
const cases::Case kLongGru{"long_gru", kGruLayers.c_str(), {1, 1, 97}, 2, {50, 100}};
const cases::Case kWide{"wide", kWideLayers.c_str(), {1, 1, 21}, 2, {50, 100}};
const cases::Case kOneWayTexts{"one_way", kOneWayLayers.c_str(), {1, 1, 21}, 5, {50, 36}};
const cases::Case kOneWayGru{"one_way_gru", kOneWayGruLayers.c_str(), {1, 1, 21}, 5, {50, 36}};

class TextStep : public FusedNetworkTest {
 protected:
  /// How a launch divides the texts.
  struct Shape {
    int group = 1, blocks = 1;
  };
  void use(const TextInstance& t) {
    use_network(t.network);
    places_ = t.network.input.width;
    ASSERT_EQ(d_, t.parameters);
  }

  /// Words of its own for a text: the table's last row.
  static void spoil(Dataset& data, std::uint32_t e, float value) {
    WordVectors v = *data.vectors;
    const auto columns = static_cast<std::size_t>(v.columns);
    v.values[(static_cast<std::size_t>(v.rows) - 1) * columns + 3] = value;
    for (std::uint16_t& token : data.tokens)
      if (token == v.rows - 1) token = 0;
    const auto places = static_cast<std::size_t>(data.shape.size());
    data.lengths[e] = static_cast<std::uint16_t>(places);
    data.tokens[e * places + places / 2] = static_cast<std::uint16_t>(v.rows - 1);
    data.vectors = std::make_shared<const WordVectors>(std::move(v));
  }

  FusedSum arguments(FusedTask task, const TextInstance& t, const Dataset& data,
                     const Shape& shape) {
    FusedSum a = arguments_of(task, data, shape.blocks);
    const std::int64_t scratch = shape.blocks * t.scratch_bytes(shape.group, places_);
    a.texts = {
        .of = {.tokens = device(data.tokens),
               .lengths = device(data.lengths),
               .vectors = device(data.vectors->values)},
        .places = places_,
        .group = shape.group,
        .scratch = device(std::vector<unsigned char>(static_cast<std::size_t>(scratch), fill_))};
    return a;
  }

  void run_texts(const TextInstance& t, const FusedSum& a) {
    validate(a);
    const std::size_t bytes = t.shared_bytes(a.texts.group, a.texts.places);
    ASSERT_LE(bytes, shared_bytes());
    allow_shared(t.kernel, bytes);
    launch(t.kernel, a,
           LaunchShape{
               .grid = {static_cast<unsigned>(a.blocks)}, .block = {256}, .shared_bytes = bytes});
  }

  Left left_by(const TextInstance& t, const FusedSum& a,
               const std::vector<std::uint32_t>& examples) {
    return FusedNetworkTest::left_by(a, examples,
                                     [&](const FusedSum& with) { run_texts(t, with); });
  }
  Left sum_of(const TextInstance& t, const Dataset& data,
              const std::vector<std::uint32_t>& examples, const Shape& shape,
              const ClipSettings& clip, float mean = 0.0f, float inverse = 1.0f) {
    FusedSum a = arguments(FusedTask::clip, t, data, shape);
    a.clip = {clip.kind, clip.stability};
    if (t.transforms)
      a.transform = {.mean = device(std::vector<float>(d_, mean)),
                     .inverse = device(std::vector<float>(d_, inverse))};
    a.sum_scale = device_scale(clip.clip_norm, sum_grid(static_cast<double>(clip.clip_norm)));
    return left_by(t, a, examples);
  }

  /// With a bound above every norm, the sum over one text is its gradient.
  void expect_gradients(const TextInstance& t, const std::vector<std::uint32_t>& examples) {
    use(t);
    const Dataset data = cases::examples_for(t.network, 6);
    const Activate functions[] = {
        {Activation::relu}, {Activation::tanh}, {Activation::tempered_sigmoid, 1.6f, 1.3f, 0.7f}};
    for (const std::uint32_t e : examples) {
      choose(functions[e % 3]);
      expect_gradient(data, e, kPrecision, [&](const ClipSettings& clip) {
        return sum_of(t, data, {e}, {4, 1}, clip);
      });
    }
  }

  template <class N>
  void expect_norms_logits_and_transforms(const cases::Case& network);
  void expect_accepted(const TextInstance& t);

  static constexpr double kPrecision = 1.5e-3;  ///< of norms and sums, relative
  int places_ = 0;
  unsigned char fill_ = 0xff;  ///< of scratch memory before a launch: NaN
};

TEST_F(TextStep, GivesTheGradientOfOneText) {
  expect_gradients(text_instance<fused::ImdbRnn>(kImdbRnn), {0, 1, 2, 3, 4, 5});
  expect_gradients(text_instance<fused::ImdbGru>(kGru), {0, 1, 2, 3, 4, 5});
  expect_gradients(text_instance<fused::ImdbOneWay>(kWide), {0, 1, 2, 3, 4, 5});
  expect_gradients(text_instance<OneWay>(kOneWayTexts), {0, 1, 3});
  expect_gradients(text_instance<OneWayGru>(kOneWayGru), {0, 1, 3});
}

/// Texts of more positions than are in shared memory at once.
TEST_F(TextStep, GivesTheGradientOfOneLongText) {
  expect_gradients(text_instance<fused::ImdbRnn>(kLongTexts), {1, 3});
  expect_gradients(text_instance<fused::ImdbGru>(kLongGru), {1, 3});
}

/// Sums of the words' layer that cancel up to what one fp16 number would lose of the weights, or of
/// the vectors: a ReLU has the sign of float32's sums.
TEST_F(TextStep, AKinkSeesTheSumsOfFloat32) {
  const TextInstance t = text_instance<fused::ImdbRnn>(kImdbRnn);
  use(t);
  const ParameterTensor& weight = net_.parameters[0];
  const ParameterTensor& bias = net_.parameters[1];
  constexpr float kMore = 1.0f + 0x1p-12f;  // 1 as an fp16 number
  for (const bool of_weights : {true, false}) {
    std::mt19937 random(3);
    const auto sign = [&] { return random() % 2 == 0 ? 1.0f : -1.0f; };
    Dataset data = cases::examples_for(t.network, 3);
    WordVectors v = *data.vectors;
    for (std::size_t i = 0; i < v.values.size(); i += 2) {
      v.values[i] = sign() * static_cast<float>(1 + random() % 8) / 8.0f;
      v.values[i + 1] = v.values[i] * (of_weights ? 1.0f : kMore);
    }
    data.vectors = std::make_shared<const WordVectors>(std::move(v));
    for (std::size_t i = weight.offset; i < weight.offset + weight.size; i += 2) {
      theta_[i] = sign();
      theta_[i + 1] = -theta_[i] * (of_weights ? kMore : 1.0f);
    }
    std::fill_n(theta_.begin() + static_cast<std::ptrdiff_t>(bias.offset), bias.size, 0.0f);
    const auto want = truth(data, 1);
    const double norm = norm_of(data, 1);
    const ClipSettings clip{Clipping::flat, static_cast<float>(norm * 1.01), 0.01f};
    const Left left = sum_of(t, data, {1}, {1, 1}, clip);
    const double unit = sum_grid(static_cast<double>(clip.clip_norm));
    std::vector<double> got(weight.size);
    for (std::size_t j = 0; j < weight.size; ++j)
      got[j] = static_cast<double>(left.sum[weight.offset + j]) * unit;
    const auto [error, size] =
        cases::distance(got.data(), want.gradient.data() + weight.offset, weight.size);
    EXPECT_TRUE(size > 0 && error <= 0.01 * size) << error << " of " << size;
  }
}

/// What a text gives is the same, bit for bit, in every place of a group and of the grid, beside
/// any others, one that is not finite among them, and whatever is in scratch memory.
TEST_F(TextStep, ATextGivesTheSameBitsInEveryPlace) {
  for (const TextInstance& t :
       {text_instance<fused::ImdbRnn>(kImdbRnn), text_instance<fused::ImdbGru>(kGru),
        text_instance<fused::ImdbOneWay>(kWide), text_instance<OneWay>(kOneWayTexts),
        text_instance<OneWayGru>(kOneWayGru)}) {
    use(t);
    constexpr std::uint32_t kTexts = 10;
    for (const float value : {kNan, 1e5f, std::numeric_limits<float>::infinity()}) {
      Dataset data = cases::examples_for(t.network, kTexts);
      const std::uint32_t bad = 3;
      spoil(data, bad, value);
      const ClipSettings clip{Clipping::per_layer, 0.7f, 0.05f};
      fill_ = 0x7e;
      std::vector<Left> alone;
      alone.reserve(kTexts);
      for (std::uint32_t e = 0; e < kTexts; ++e)
        alone.push_back(sum_of(t, data, {e}, {1, 1}, clip));
      EXPECT_EQ(alone[bad].sum, std::vector<std::int64_t>(d_, 0));
      EXPECT_EQ(alone[bad].factors[0], 0.0f);
      fill_ = 0xff;
      const std::vector<std::uint32_t> orders[] = {
          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 3, 0, 4, 1}, {3, 2}, {3, 3, 3, 3, 0, 2, 4, 6, 8, 9}};
      for (const auto& order : orders)
        for (const Shape& shape : {Shape{8, 1}, Shape{4, 2}, Shape{2, 1}, Shape{8, 2}}) {
          const Left left = sum_of(t, data, order, shape, clip);
          std::vector<std::int64_t> want(d_, 0);
          for (std::size_t i = 0; i < order.size(); ++i) {
            const Left& one = alone[order[i]];
            for (std::size_t j = 0; j < d_; ++j) want[j] += one.sum[j];
            if (order[i] == bad) continue;
            for (std::size_t g = 0; g < layers_; ++g)
              ASSERT_EQ(left.squared_norms[i * layers_ + g], one.squared_norms[g])
                  << t.network.name << ", place " << i << ", layer " << g;
            EXPECT_EQ(left.losses[i], one.losses[0]);
          }
          ASSERT_EQ(left.sum, want) << shape.group << " texts, " << shape.blocks << " blocks";
        }
      if (t.kernel != fused::recurrent_kernel<fused::TextPlan<fused::ImdbRnn, false>>) break;
    }
  }
}

template <class N>
void TextStep::expect_norms_logits_and_transforms(const cases::Case& network) {
  const TextInstance t = text_instance<N>(network);
  use(t);
  constexpr int kTexts = 6;
  const Dataset data = cases::examples_for(t.network, kTexts);
  const auto written = [&](FusedTask task, const Shape& shape) {
    FusedSum a = arguments(task, t, data, shape);
    a.batch = batch(0, kTexts, kTexts);
    const std::size_t size = task == FusedTask::norms ? kTexts : 2 * kTexts;
    float* const to = device(std::vector<float>(size, kLoud));
    (task == FusedTask::norms ? a.norms : a.logits) = to;
    run_texts(t, a);
    return host(to, size);
  };
  const std::vector<float> norms = written(FusedTask::norms, {8, 1});
  const std::vector<float> logits = written(FusedTask::forward, {8, 1});
  for (std::uint32_t e = 0; e < kTexts; ++e) {
    const double norm = norm_of(data, e);
    EXPECT_NEAR(norms[e], norm, kPrecision * norm);
    const reference::Values z = reference::logits(
        net_, reference::Values(theta_.begin(), theta_.end()), reference::features(data, e));
    for (std::size_t o = 0; o < 2; ++o)
      EXPECT_NEAR(logits[std::size_t{2} * e + o], z[o], 1e-3) << e;
  }
  EXPECT_EQ(written(FusedTask::norms, {2, 2}), norms);
  EXPECT_EQ(written(FusedTask::forward, {4, 1}), logits);

  const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
  const std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5};
  const TextInstance transformed = text_instance<N, true>(network);
  const auto want = [&](std::uint32_t e, float mean, float inverse) {  // w of the oracle
    reference::Values w = truth(data, e).gradient;
    for (double& x : w) x = (x - mean) * inverse;
    return w;
  };
  for (const auto& [mean, inverse] : {std::pair{0.0f, 1.0f}, {0.003f, 1.5f}}) {
    const Left left = sum_of(transformed, data, order, {4, 1}, clip, mean, inverse);
    reference::Values exact(d_, 0.0);
    for (const std::uint32_t e : order) {
      const auto w = want(e, mean, inverse);
      const auto squares = reference::squared_norms(net_, w);
      const auto factors = reference::clip_factors(clip, squares);
      for (std::size_t g = 0; g < layers_; ++g)
        EXPECT_NEAR(left.squared_norms[e * layers_ + g], squares[g],
                    2 * kPrecision * (squares[g] + 0.01));
      for (std::size_t j = 0; j < d_; ++j) exact[j] += factors[0] * w[j];
    }
    std::vector<double> got(d_);
    const double unit = sum_grid(static_cast<double>(clip.clip_norm));
    for (std::size_t j = 0; j < d_; ++j) got[j] = static_cast<double>(left.sum[j]) * unit;
    const auto [error, size] = cases::distance(got.data(), exact.data(), d_);
    EXPECT_TRUE(error <= kPrecision * size) << error / size;
    EXPECT_EQ(sum_of(transformed, data, order, {8, 2}, clip, mean, inverse).sum, left.sum);
  }
}

TEST_F(TextStep, NormsLogitsAndTransforms) {
  expect_norms_logits_and_transforms<fused::ImdbRnn>(kImdbRnn);
  expect_norms_logits_and_transforms<fused::ImdbGru>(kGru);
  expect_norms_logits_and_transforms<fused::ImdbOneWay>(kWide);
}

/// Accepted candidates add their direction, as the norm and their second word say.
void TextStep::expect_accepted(const TextInstance& t) {
  use(t);
  constexpr std::uint32_t kTexts = 6;
  const Dataset data = cases::examples_for(t.network, kTexts);
  const auto accepted = [&](const std::vector<std::uint32_t>& order, const Shape& shape) {
    FusedSum a = arguments(FusedTask::accept, t, data, shape);
    set_acceptance(a, kTexts);
    return std::pair{left_by(t, a, order), host(a.norms, kTexts)};
  };
  const auto [all, norms] = accepted({0, 1, 2, 3, 4, 5}, {8, 1});
  int taken = 0;
  std::vector<std::int64_t> want(d_, 0);
  for (std::uint32_t e = 0; e < kTexts; ++e) {
    EXPECT_NEAR(norms[e], norm_of(data, e), kPrecision * norm_of(data, e));
    const auto [alone, norm] = accepted({e}, {1, 1});
    EXPECT_EQ(norm[e], norms[e]);
    EXPECT_EQ(alone.factors[0], all.factors[layers_ * e]);
    const float factor = factor_by_rule(e, norms[e]);
    EXPECT_NEAR(alone.factors[0], factor, 1e-5f * factor);
    taken += factor > 0.0f ? 1 : 0;
    for (std::size_t j = 0; j < d_; ++j) want[j] += alone.sum[j];
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(all.sum, want);
  EXPECT_EQ(accepted({5, 0, 3, 1, 2, 4}, {2, 2}).first.sum, want);
}

TEST_F(TextStep, AcceptsCandidates) {
  expect_accepted(text_instance<fused::ImdbRnn>(kImdbRnn));
  expect_accepted(text_instance<fused::ImdbGru>(kGru));
  expect_accepted(text_instance<fused::ImdbOneWay>(kWide));
}

/// Classes have weights. A clipped gradient is multiplied by that of its class, with the same norm,
/// loss and factor as without; the norms of all other tasks are those of the weighted loss.
TEST_F(TextStep, WeighsClasses) {
  const TextInstance instances[] = {text_instance<fused::ImdbRnn>(kImdbRnn),
                                    text_instance<OneWayGru>(kOneWayGru)};
  for (const TextInstance& t : instances) {
    use(t);
    const std::vector<std::uint32_t> order{2, 0, 1};
    Dataset data = cases::examples_for(t.network, order.size());
    for (std::size_t e = 0; e < order.size(); ++e)
      data.labels[e] = static_cast<std::uint8_t>(e % static_cast<std::size_t>(net_.classes));
    for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
      const ClipSettings clip{kind, 0.7f, 0.05f};
      std::vector<std::int64_t> want(d_, 0);
      for (const std::uint32_t e : order) {
        weighs_ = false;
        const Left plain = sum_of(t, data, {e}, {1, 1}, clip);
        weighs_ = true;
        const Left alone = sum_of(t, data, {e}, {1, 1}, clip);
        expect_weighted_sum(alone, plain, class_weight(data.labels[e]));
        for (std::size_t j = 0; j < d_; ++j) want[j] += alone.sum[j];
      }
      EXPECT_EQ(sum_of(t, data, order, {4, 1}, clip).sum, want) << t.network.name;
      EXPECT_EQ(sum_of(t, data, order, {2, 2}, clip).sum, want) << t.network.name;
    }
  }
  weighs_ = true;
  expect_norms_logits_and_transforms<fused::ImdbRnn>(kImdbRnn);
  expect_accepted(instances[0]);
}

}  // namespace
}  // namespace cudp

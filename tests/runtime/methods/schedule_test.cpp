#include "runtime/methods/schedule.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/methods/dpsgd.hpp"
#include "runtime/methods/initial_weights.hpp"
#include "tests/support/method_cases.hpp"

namespace cudp {
namespace {

PrivacyPlan plan() {
  PrivacyPlan p;
  p.steps = 100;
  p.expected_batch = 64.0;
  p.noise_multiplier = 1.1;
  p.sampling_threshold = 7;
  p.clip_norm = 0.29;
  p.sensitivity = 0.3;
  return p;
}

double rate(const TrainConfig& c, std::uint64_t step) {
  return Schedule(c, plan(), 10).learning_rate(step);
}

TEST(Schedule, LearningRates) {
  TrainConfig c;
  c.lr = 2.0;
  EXPECT_EQ(rate(c, 0), 2.0);
  EXPECT_EQ(rate(c, 99), 2.0);
  c.schedule = ScheduleKind::step;
  c.decay_every = 2;
  c.decay_factor = 0.5;
  EXPECT_EQ(rate(c, 19), 2.0);
  EXPECT_EQ(rate(c, 20), 1.0);
  EXPECT_EQ(rate(c, 40), 0.5);
  c.schedule = ScheduleKind::cosine;
  c.final_lr = 0.1;
  EXPECT_DOUBLE_EQ(rate(c, 0), 2.0);
  EXPECT_DOUBLE_EQ(rate(c, 50), 2.0 * 0.55);
  EXPECT_NEAR(rate(c, 99), 0.2, 1e-3);
  c.schedule = ScheduleKind::polynomial;
  c.lr = 1.0;
  EXPECT_DOUBLE_EQ(rate(c, 5), 1.0 / std::sqrt(25.0));
  c.schedule = ScheduleKind::constant;
  c.warmup = 4;
  EXPECT_DOUBLE_EQ(rate(c, 0), 0.25);
  EXPECT_DOUBLE_EQ(rate(c, 2), 0.75);
  EXPECT_DOUBLE_EQ(rate(c, 3), 1.0);
}

TEST(Schedule, ScalarsOfAStep) {
  TrainConfig c;
  c.optimizer = OptimizerKind::adam;
  c.ema = 0.9;
  const Schedule schedule(c, plan(), 10);
  const StepScalars s = schedule.at(2);
  // Rounding to float must not take noise away.
  EXPECT_GE(static_cast<double>(s.noise_std), 1.1 * 0.3);
  EXPECT_LE(static_cast<double>(s.noise_std), 1.1 * 0.3 * (1.0 + 0x1p-22));
  EXPECT_EQ(s.inverse_batch, 1.0f / 64.0f);
  // Nor let an example add more.
  EXPECT_LE(static_cast<double>(s.clip_norm), 0.29);
  EXPECT_GE(static_cast<double>(s.clip_norm), 0.29 * (1.0 - 0x1p-22));
  EXPECT_FLOAT_EQ(s.bias1, static_cast<float>(1.0 / (1.0 - std::pow(0.9, 3))));
  EXPECT_FLOAT_EQ(s.bias2, static_cast<float>(1.0 / (1.0 - std::pow(0.999, 3))));
  EXPECT_FLOAT_EQ(schedule.at(0).ema_decay, 0.1f);
  EXPECT_FLOAT_EQ(schedule.at(99).ema_decay, 0.9f);
  c.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(Schedule(c, plan(), 10).at(2).bias1, 1.0f);
}

Network network(const char* toml, Shape input, int classes) {
  return build_network(parse_model(toml, "test", classes), input, classes);
}

TEST(DpSgd, IsAlgorithm1) {
  TrainConfig c;
  c.optimizer = OptimizerKind::sgd;
  const Network net = network(builtin_model("logistic").data(), {2, 1, 1}, 2);
  const StepRecipe algorithm1{.draw = Poisson{7},
                              .contribution = ClippedGradient{Clipping::flat},
                              .optimizer = {.kind = OptimizerKind::sgd, .momentum = 0.9f}};
  EXPECT_EQ(DpSgd(cases::context_of(c, net, 10), plan()).recipe(), algorithm1);
}

TEST(InitialWeights, ZeroForLinearModels) {
  const Network net = network(builtin_model("logistic").data(), {20, 1, 1}, 2);
  for (const float w : initial_weights(net, Generator::chacha20, {{1}})) EXPECT_EQ(w, 0.0f);
}

TEST(InitialWeights, AreUniformWithinTheirLimit) {
  for (const bool relu : {false, true}) {
    const Network net = build_network(
        parse_model(builtin_model("cnn"), "cnn", 10, relu ? "relu" : "tanh"), {1, 28, 28}, 10);
    const std::vector<float> w = initial_weights(net, Generator::chacha20, {{5}});
    for (const ParameterTensor& t : net.parameters) {
      const double limit = std::sqrt(6.0 / (relu ? t.fan_in : t.fan_in + t.fan_out));
      double largest = 0.0;
      double squares = 0.0;
      for (std::size_t j = t.offset; j < t.offset + t.size; ++j) {
        largest = std::fmax(largest, std::fabs(w[j]));
        squares += static_cast<double>(w[j]) * w[j];
      }
      if (t.is_bias) {
        EXPECT_EQ(largest, 0.0) << t.name;
        continue;
      }
      EXPECT_LE(largest, limit * (1.0 + 1e-6)) << t.name;
      // The mean of u^2 is 1/3 with standard deviation sqrt(4/45/n): five of them is 1e-6.
      const double n = static_cast<double>(t.size);
      EXPECT_NEAR(squares / n / (limit * limit), 1.0 / 3.0, 5.0 * std::sqrt(4.0 / 45.0 / n))
          << t.name;
    }
  }
}

TEST(InitialWeights, OfRecurrentLayers) {
  const Network net = build_network(
      parse_model("name='r'\nlayers=[{type='embedding',name='e',trainable=true,trainable_rows=4,"
                  "columns=6},{type='relu'},{type='lstm',name='l',hidden=5,bidirectional=true,"
                  "output='sequence'},{type='gru',name='g',hidden=3},{type='dense',name='d',"
                  "out='outputs'}]",
                  "test", 3),
      {1, 1, 7}, 3, {.words = 9, .columns = 0});
  const std::vector<float> w = initial_weights(net, Generator::chacha20, {{5}});
  int orthogonal = 0;
  for (const ParameterTensor& t : net.parameters) {
    const float* const first = w.data() + t.offset;
    if (t.name.find("weight_hh") != std::string::npos) {
      ++orthogonal;
      for (int a = 0; a < t.shape[1]; ++a)
        for (int b = 0; b <= a; ++b) {
          double dot = 0.0;
          for (int row = 0; row < t.shape[0]; ++row)
            dot += double{first[row * t.shape[1] + a]} * first[row * t.shape[1] + b];
          EXPECT_NEAR(dot, a == b ? 1.0 : 0.0, 1e-6) << t.name;
        }
    } else if (t.name.find("l.bias_ih") != std::string::npos) {
      for (int j = 0; j < t.shape[0]; ++j)
        EXPECT_EQ(first[j], j >= 5 && j < 10 ? 1.0f : 0.0f) << t.name;
    } else if (t.is_bias) {
      for (std::size_t j = 0; j < t.size; ++j) EXPECT_EQ(first[j], 0.0f) << t.name;
    } else {
      const double limit =
          std::sqrt(6.0 / (t.name == "d.weight" ? t.fan_in : t.fan_in + t.fan_out));
      for (std::size_t j = 0; j < t.size; ++j) EXPECT_LE(std::fabs(first[j]), limit) << t.name;
      EXPECT_NE(first[0], first[1]);
    }
  }
  EXPECT_EQ(orthogonal, 3);
}

TEST(InitialWeights, OfATableAreThePublicVectors) {
  const ModelSpec spec = parse_model(
      "name='r'\nlayers=[{type='embedding',name='e',trainable=true,trainable_rows=4},"
      "{type='mean'},{type='dense',name='d',out='outputs'}]",
      "test", 3);
  const Network net = build_network(spec, {1, 1, 7}, 3, {.words = 9, .columns = 2});
  WordVectors vectors{.rows = 9, .columns = 2, .values = std::vector<float>(18)};
  for (std::size_t i = 0; i < 18; ++i) vectors.values[i] = static_cast<float>(i);
  const std::vector<float> w = initial_weights(net, Generator::chacha20, {{5}}, &vectors);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(w[i], static_cast<float>(i));
}

TEST(InitialWeights, FollowTheKeyAndStartGroupNormsAtOne) {
  const Network net = network(
      "name='n'\nlayers=[{type='conv2d',name='c',out=4,kernel=3},{type='groupnorm',name='g',"
      "groups=2},{type='tanh'},{type='dense',name='d',out='outputs'}]",
      {1, 6, 6}, 3);
  const auto a = initial_weights(net, Generator::chacha20, {{1}});
  EXPECT_EQ(a, initial_weights(net, Generator::chacha20, {{1}}));
  EXPECT_NE(a, initial_weights(net, Generator::chacha20, {{2}}));
  EXPECT_NE(a, initial_weights(net, Generator::philox, {{1}}));
  const ParameterTensor& scale = net.parameters[2];
  ASSERT_EQ(scale.name, "g.weight");
  for (std::size_t j = 0; j < scale.size; ++j) EXPECT_EQ(a[scale.offset + j], 1.0f);
}

}  // namespace
}  // namespace cudp

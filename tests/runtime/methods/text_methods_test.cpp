// Every method that trains by an engine, on texts.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "runtime/results/predictor.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"

namespace cudp {
namespace {

constexpr const char* kModel = R"(
name = "words"
loss = "softmax"
layers = [
  { type = "embedding", name = "e" },
  { type = "dense", name = "a", out = 6, per_token = true },
  { type = "tanh" },
  { type = "KIND", name = "b", hidden = 8, bidirectional = true },
  { type = "dense", name = "c", out = "outputs" },
]
)";

cases::Case texts_of(const std::string& model) {
  return {"words", model.c_str(), {1, 1, 12}, 2, {20, 8}};
}

/// Class 1 are the texts in which a word of the first five stands.
Dataset labelled_texts(const cases::Case& c, std::size_t n) {
  Dataset d = cases::texts_for(c, n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t* const words = d.tokens.data() + 12 * i;
    d.lengths[i] = static_cast<std::uint16_t>(3 + i % 10);
    d.labels[i] = static_cast<std::uint8_t>(i % 2);
    for (std::size_t t = 0; t < 12; ++t)
      words[t] = static_cast<std::uint16_t>(5 + (7 * i + t * t) % 15);
    if (i % 2 == 1) words[i % d.lengths[i]] = static_cast<std::uint16_t>(i % 5);
  }
  return d;
}

struct Trained {
  std::vector<float> before;
  std::vector<float> after;
  double accuracy = 0.0;
};

Trained train(TrainConfig config, const std::string& model) {
  const cases::Case c = texts_of(model);
  const Network net = cases::network_of(c);
  const Dataset data = labelled_texts(c, 400);
  config.delta = 1e-5;
  config.batch = 100;
  config.threads = 2;
  const MethodEntry& entry = method_entry(config.method);
  if (entry.gives_privacy && !config.sigma) config.epsilon = 50.0;
  if (entry.defaults != nullptr) entry.defaults(config);
  if (entry.complete != nullptr) entry.complete(config);
  if (entry.fit != nullptr) entry.fit(config, net, data);
  cases::MethodTraining<> training(
      entry.make(cases::context_of(config, net, TrainingSize{400.0, 0.0})), data);
  Method& method = *training.method;
  Trained t{.before = method.parameters(), .after = {}};
  for (std::uint64_t step = 0; step < method.steps();) {
    const std::uint64_t last = method.authorise(training.budget, step, step + 4);
    if (last == step) break;
    step = method.train(step, last);
  }
  t.after = method.parameters();
  t.accuracy = evaluate(Predictor(training.backend, net, {}).predict(t.after, data)).accuracy;
  return t;
}

class TextMethod : public testing::TestWithParam<const char*> {};

TEST_P(TextMethod, Trains) {
  for (const char* kind : {"lstm", "gru"}) {
    SCOPED_TRACE(kind);
    std::string model = kModel;
    model.replace(model.find("KIND"), 4, kind);
    TrainConfig config;
    config.method = GetParam();
    config.epochs = 3;
    const Trained t = train(config, model);
    EXPECT_NE(t.after, t.before);
    EXPECT_TRUE(
        std::all_of(t.after.begin(), t.after.end(), [](float x) { return std::isfinite(x); }));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextMethod,
                         testing::Values("sgd", "dpsgd", "dpsgd-ts", "dpsgd-decay",
                                         "dpsgd-quantile", "adp-sgd", "adaclip", "dpis", "sgd-ma",
                                         "sgd-adv"),
                         [](const auto& i) {
                           std::string name = i.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// With little noise what is to be learned is learned: every kind of clipping, and none.
TEST(TextMethods, LearnWhichWordsStandInAText) {
  for (const char* kind : {"lstm", "gru"}) {
    std::string model = kModel;
    model.replace(model.find("KIND"), 4, kind);
    TrainConfig config;
    config.epochs = 45;
    config.lr = 0.01;
    config.optimizer = OptimizerKind::adam;
    config.sigma = 0.1;
    config.allow_weak_privacy = true;
    for (const Clipping clipping : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
      config.clipping = clipping;
      EXPECT_GE(train(config, model).accuracy, 0.85) << kind;
    }
    config.clipping = Clipping::flat;
    config.method = "sgd";
    config.sigma.reset();
    EXPECT_GE(train(config, model).accuracy, 0.95) << kind;
  }
}

}  // namespace
}  // namespace cudp

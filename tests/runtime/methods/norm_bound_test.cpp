#include "runtime/methods/norm_bound.hpp"

#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

Network linear(const Shape& input, int classes, const char* loss) {
  const std::string text = std::string("name = 'one'\nloss = '") + loss +
                           "'\nlayers = [{ type = 'dense', name = 'l', out = 'outputs' }]";
  return build_network(parse_model(text, "test", classes), input, classes);
}

/// The longest gradient of the worst input and the worst weights: all features at their largest,
/// and everything on a wrong class.
double longest(double features, double largest, bool softmax) {
  return std::sqrt(softmax ? 2.0 : 1.0) * std::sqrt(features * largest * largest + 1.0);
}

TEST(NormBound, IsTheLongestGradient) {
  Dataset table;
  table.shape = {5, 1, 1};
  table.floats.assign(5, 0.0f);
  const double one = norm_bound(linear(table.shape, 2, "cross_entropy"), table);
  EXPECT_GE(one, longest(5, 1.0, false));
  EXPECT_NEAR(one, longest(5, 1.0, false), 1e-5);
  const double three = norm_bound(linear(table.shape, 3, "cross_entropy"), table);
  EXPECT_GE(three, longest(5, 1.0, true));
  EXPECT_NEAR(three, longest(5, 1.0, true), 1e-5);

  Dataset images;
  images.shape = {1, 28, 28};
  images.bytes.assign(784, 0);
  const Network ten = linear(images.shape, 10, "cross_entropy");
  EXPECT_NEAR(norm_bound(ten, images), longest(784, 1.0, true), 1e-3);
  images.scale = 1.0f / 64.0f;  // -3 .. 0.98
  images.shift = -3.0f;
  EXPECT_NEAR(norm_bound(ten, images), longest(784, 3.0, true), 1e-3);
}

/// Of a huber loss the slope is at most its delta, for an answer far from the target; such a row's
/// gradient is added whole.
TEST(NormBound, OfAHuberLossIsTheLongestGradientToo) {
  for (const float delta : {0.02f, 0.3f, 1.7f}) {
    Dataset table;
    table.shape = {5, 1, 1};
    table.classes = 1;
    table.floats.assign(5, 1.0f);
    table.targets = {1.0f};
    table.labels = {0};
    Network net = build_network(parse_model(builtin_model("linear"), "linear", 1), table.shape, 1);
    net.spec.loss = Loss::huber;
    net.spec.huber = delta;
    const double longest = static_cast<double>(delta) * std::sqrt(6.0);
    const double bound = norm_bound(net, table);
    EXPECT_GE(bound, longest);
    EXPECT_NEAR(bound, longest, 1e-5 * longest);

    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 32};
    s.recipe.contribution = ClippedGradient{Clipping::flat};
    const auto engine = make_cpu_engine(net, s);
    engine->load(table);
    TrainState far;
    far.parameters.assign(net.parameter_count, -1.0f);
    engine->set_state(far);
    const StepScalars one = cases::still(-1.0f, static_cast<float>(bound));
    engine->run(s.recipe, 0, {&one, 1});
    const std::vector<float> moved = engine->state().parameters;
    double square = 0.0;
    for (const float w : moved) square += std::pow(static_cast<double>(w) + 1.0, 2);
    EXPECT_NEAR(std::sqrt(square), longest, 1e-5 * longest + 1e-6) << "no part of it is cut";
  }
}

TEST(NormBound, IsForLogisticRegressionAlone) {
  Dataset table;
  table.shape = {5, 1, 1};
  table.floats.assign(5, 0.0f);
  EXPECT_THROW(norm_bound(linear(table.shape, 2, "hinge"), table), InputError);
  const Network mlp =
      build_network(parse_model(builtin_model("mlp"), "mlp", 3, "relu"), table.shape, 3);
  EXPECT_THROW(norm_bound(mlp, table), InputError);
}

TEST(NormBound, NeedsInputsWithAPublicRange) {
  const auto fits = [](const Dataset& rows, Normalise normalise) {
    TrainConfig config;
    config.normalise = normalise;
    try {
      norm_bound_method().fit(config, linear({5, 1, 1}, 2, "cross_entropy"), rows);
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  Dataset array;
  array.shape = {5, 1, 1};
  array.floats.assign(5, 1e6f);
  EXPECT_FALSE(fits(array, Normalise::none)) << "a gradient may be longer, and would be cut";
  EXPECT_FALSE(fits(array, Normalise::layer));
  EXPECT_TRUE(fits(array, Normalise::unit));
  Dataset pixels = array;
  pixels.floats.clear();
  pixels.bytes.assign(5, 255);
  EXPECT_TRUE(fits(pixels, Normalise::none));
  Dataset table = array;
  table.layout = std::make_shared<RowLayout>();
  EXPECT_TRUE(fits(table, Normalise::none));
  EXPECT_FALSE(fits(table, Normalise::layer));
}

}  // namespace
}  // namespace cudp

// Losses of a target in the CPU engine: sums, gradients and losses are the oracle's, of rows by
// their codes and of dense ones; and no row adds more than the stated sensitivity.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/target.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/oracle_sums.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp {
namespace {

using cases::Adds;
using cases::InfluenceCase;
using cases::target_case;

/// A linear model and one with hidden layers.
const char* const kTargetModels[] = {"linear", cases::kHidden};

TEST(TargetEngine, SumsAreTheOracles) {
  for (const char* const model : kTargetModels)
    for (const Loss loss : {Loss::squared, Loss::huber})
      for (const Adds adds : {Adds::flat, Adds::per_layer, Adds::automatic, Adds::transformed}) {
        const InfluenceCase c = target_case(model, loss, adds, 3);
        const Dataset dense = cudp::dense(c.data);
        const reference::Values want = cases::oracle_sum(c);
        for (const Dataset* data : {&c.data, &dense}) {
          const std::vector<float> got =
              cases::released_sum(*make_cpu_engine(c.net, c.settings), c, *data);
          const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
          EXPECT_GT(d.size, 0.1);
          EXPECT_LE(d.error, (adds == Adds::transformed ? 1e-3 : 1e-5) * (d.size + 1.0) +
                                 cases::grid_error(1.0, want.size(), 60));
        }
      }
}

TEST(TargetEngine, GradientsAndLossesAreTheOracles) {
  for (const char* const model : kTargetModels)
    for (const Loss loss : {Loss::squared, Loss::huber}) {
      const InfluenceCase c = target_case(model, loss, Adds::flat, 5);
      const auto cpu = make_cpu_engine(c.net, c.settings);
      reference::ReferenceEngine oracle(c.net, c.settings);
      cpu->load(c.data);
      oracle.load(cudp::dense(c.data));
      for (Engine* e : {cpu.get(), static_cast<Engine*>(&oracle)}) e->set_state(c.state);
      const std::uint32_t some[] = {0, 7, 39};
      cases::expect_same_gradients(cpu->per_example(some, true), oracle.per_example(some, true));
    }
}

/// Rows that overflow, whatever the loss: one adds what it adds alone, within the bound.
TEST(TargetEngine, ARowAddsNoMoreThanIsStated) {
  for (const char* const model : kTargetModels)
    for (const Loss loss : {Loss::squared, Loss::huber})
      for (const Adds adds :
           {Adds::flat, Adds::per_layer, Adds::automatic, Adds::directions, Adds::transformed})
        for (unsigned seed = 1; seed <= 4; ++seed) {
          const InfluenceCase c = target_case(model, loss, adds, seed, true);
          EXPECT_EQ(
              cases::measure_influence([&] { return make_cpu_engine(c.net, c.settings); }, c).fault,
              "")
              << "seed " << seed;
        }
}

TEST(TargetEngine, ExamplesWithoutTargetsAreRefused) {
  InfluenceCase c = target_case("linear", Loss::squared, Adds::flat, 1);
  c.data.targets.pop_back();
  EXPECT_THROW(make_cpu_engine(c.net, c.settings)->load(c.data), Error);
}

/// The derivative is the loss's, by differences; NaN stays NaN.
TEST(TargetLoss, DerivativeIsTheLosses) {
  for (const Loss loss : {Loss::squared, Loss::huber})
    for (const float z : {-3.0f, -0.71f, -0.2f, 0.05f, 0.6f, 2.5f}) {
      float d = 0.0f;
      target_loss(loss, z, 0.1f, 0.4f, &d);
      const double step = 1.0 / 64;
      const auto at = [&](double x) {
        return static_cast<double>(target_loss(loss, static_cast<float>(x), 0.1f, 0.4f, nullptr));
      };
      EXPECT_NEAR(d, (at(z + step) - at(z - step)) / (2.0 * step), 1e-4);
    }
  float d = 0.0f;
  EXPECT_TRUE(std::isnan(target_loss(Loss::huber, NAN, 0.0f, 0.4f, &d)));
  EXPECT_TRUE(std::isnan(d));
}

TEST(TargetBounds, ScaleToOneAndBack) {
  const TargetBounds b{10.0, 60.0};
  EXPECT_EQ(b.scaled(10.0), -1.0f);
  EXPECT_EQ(b.scaled(60.0), 1.0f);
  EXPECT_EQ(b.scaled(35.0), 0.0f);
  EXPECT_EQ(b.scaled(1e9), 1.0f);
  EXPECT_EQ(b.scaled(-1e9), -1.0f);
  EXPECT_EQ(b.value(0.0), 35.0);
  EXPECT_EQ(b.value(7.0), 60.0);
  EXPECT_EQ(b.value(-7.0), 10.0);
  EXPECT_EQ(b.scaled_distance(5.0), 0.2);
}

}  // namespace
}  // namespace cudp

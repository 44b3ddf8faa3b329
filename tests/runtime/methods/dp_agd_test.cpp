#include "runtime/methods/dp_agd.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "privacy/filter.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/dp_agd_method.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/method_training.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using privacy::Mechanism;

/// An engine with a gradient, and losses that a test makes up.
class FakeEngine final : public LinearEngine {
 public:
  explicit FakeEngine(std::vector<double> gradient) : gradient_(std::move(gradient)) {}

  int dimension() const override { return static_cast<int>(gradient_.size()); }
  std::size_t size() const override { return 100; }
  void draw_batch(const RandomStream&, std::uint64_t) override { ++batches; }
  std::vector<std::uint32_t> batch() override { return {}; }
  std::vector<double> clipped_gradient_sum(std::span<const float>, double) override {
    return gradient_;
  }
  std::vector<double> clipped_losses(std::span<const float> direction, std::span<const float> steps,
                                     double) override {
    directions.emplace_back(direction.begin(), direction.end());
    grids.emplace_back(steps.begin(), steps.end());
    return losses(steps.size());
  }
  std::uint64_t correct(std::span<const float>, const Dataset&) override { return 0; }

  std::function<std::vector<double>(std::size_t count)> losses;
  std::vector<std::vector<float>> directions;
  std::vector<std::vector<float>> grids;
  int batches = 0;

 private:
  std::vector<double> gradient_;
};

/// Far the least at one place: noise does not matter.
std::vector<double> best_at(std::size_t place, std::size_t count) {
  std::vector<double> losses(count, 1e12);
  losses[place] = 0.0;
  return losses;
}

DpAgdSettings small_settings() {
  DpAgdSettings s;
  s.rho_gradient = 1e-3;
  s.rho_selection = 5e-4;
  s.gamma = 0.3;
  s.l2 = 0.0;
  return s;
}

/// Of the direction's coordinates across a gradient that dwarfs the noise, times its length: the
/// noise. False alarm 1e-6.
TEST(DpAgd, MergedGradientHasTheNoiseOfItsWholeBudget) {
  constexpr int kD = 65;
  constexpr int kRuns = 1500;
  constexpr double kLength = 1e7;
  const DpAgdSettings settings = small_settings();
  double squares[4] = {};
  double products = 0.0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> gradient(kD, 0.0);
    gradient[0] = kLength;
    FakeEngine engine(gradient);
    engine.losses = [&](std::size_t n) { return best_at(engine.directions.size() > 3 ? 5 : 0, n); };
    Gate gate(Generator::chacha20, key_from_seed(static_cast<std::uint64_t>(run)), all_paid());
    DpAgd method(settings, engine, 100, gate);
    DpAgdState state = method.begin(std::vector<float>(kD, 0.0f));
    ASSERT_TRUE(method.iterate(state));
    ASSERT_EQ(engine.directions.size(), 4u);
    for (std::size_t merges = 0; merges < 4; ++merges)
      for (std::size_t j = 1; j < kD; ++j) {
        const double noise = kLength * static_cast<double>(engine.directions[merges][j]);
        squares[merges] += noise * noise;
        if (merges == 3) products += noise * kLength * static_cast<double>(engine.directions[0][j]);
      }
  }
  const double samples = kRuns * (kD - 1.0);
  const double c = linear_gradient_sensitivity(settings.gradient_clip, kD, settings.max_examples);
  double rho = settings.rho_gradient;
  for (const double square : squares) {
    const double variance = c * c / (2.0 * rho);
    EXPECT_TRUE(std::fabs(square / samples / variance - 1.0) <= 5.0 * std::sqrt(2.0 / samples));
    rho *= 1.0 + settings.gamma;
  }
  // Measurements are independent: the first is rho_0/rho_3 of the mean, which is its covariance.
  const double merged = c * c / (2.0 * settings.rho_gradient * std::pow(1.0 + settings.gamma, 3));
  EXPECT_NEAR(products / samples / merged, 1.0, 5.0 * std::sqrt(3.2 / samples));
}

TEST(DpAgd, NeverSpendsPastItsBudget) {
  std::mt19937_64 random(2024);
  double least_used = 1.0;
  std::uint64_t retries = 0;
  for (int run = 0; run < 10'000; ++run) {
    std::uniform_real_distribution<double> uniform;
    const bool laplace = run % 2 == 1;
    const double epsilon = 0.05 * std::pow(40.0, uniform(random));
    privacy::Filter filter(privacy::zcdp_budget(epsilon, 1e-8));
    DpAgdSettings s;
    const double share = 0.01 + 0.2 * uniform(random);
    s.rho_gradient = filter.limit() * share * uniform(random);
    s.rho_selection = filter.limit() * share * uniform(random);
    s.gamma = 0.05 + uniform(random);
    s.selection = laplace ? SelectionNoise::laplace : SelectionNoise::gumbel;
    FakeEngine engine({1.0, 2.0});
    engine.losses = [&](std::size_t n) {
      return best_at(random() % 3 == 0 ? 1 + random() % (n - 1) : 0, n);
    };
    // Counted apart from the filter, by the definitions.
    double rho = 0.0;
    bool refused = false;
    std::size_t selections = 0;
    const auto ask = [&](std::uint64_t number, const Mechanism& release) {
      EXPECT_FALSE(refused) << "a release after a refusal";
      refused = !filter.authorise(number, number + 1, release);
      if (refused) return false;
      double part = 0.0;
      if (const auto* gaussian = std::get_if<privacy::Gaussian>(&release))
        part = 0.5 / (gaussian->sigma * gaussian->sigma);
      else if (const auto* range = std::get_if<privacy::BoundedRange>(&release))
        part = range->epsilon * range->epsilon / 8.0;
      else
        part = std::get<privacy::ApproximateDp>(release).epsilon *
               std::tanh(0.5 * std::get<privacy::ApproximateDp>(release).epsilon);
      selections += std::holds_alternative<privacy::Gaussian>(release) ? 0 : 1;
      rho += part;
      return true;
    };
    AskingBooks books(ask);
    Gate gate(Generator::philox, key_from_seed(1), books);
    DpAgd method(s, engine, 100, gate);
    DpAgdState state = method.begin({0.0f, 0.0f});
    for (int i = 0; i < 10'000 && method.iterate(state); ++i) {
    }
    EXPECT_TRUE(refused);
    ASSERT_LE(rho, filter.limit()) << run;
    ASSERT_LE(privacy::epsilon_from_zcdp(rho, 1e-8), epsilon) << run;
    // A choice is made where its release was allowed, and nowhere else.
    EXPECT_LE(selections, engine.directions.size());
    EXPECT_GE(selections + 1, engine.directions.size());
    least_used = std::fmin(least_used, rho / filter.limit());
    retries += selections - state.iterations;
  }
  EXPECT_GT(least_used, 0.2);
  EXPECT_GT(retries, 10'000u);
}

TEST(DpAgd, ARefusalLeavesTheModelAlone) {
  FakeEngine engine({3.0, 4.0});
  engine.losses = [](std::size_t n) { return best_at(n - 1, n); };
  for (std::uint64_t allowed = 0; allowed < 4; ++allowed) {
    AskingBooks books([=](std::uint64_t number, const Mechanism&) { return number < allowed; });
    Gate gate(Generator::chacha20, {}, books);
    DpAgd method(small_settings(), engine, 100, gate);
    DpAgdState state = method.begin({1.0f, 1.0f});
    EXPECT_EQ(method.iterate(state), allowed >= 2);
    EXPECT_EQ(state.releases, std::min<std::uint64_t>(allowed, 2));
    EXPECT_EQ(state.w == std::vector<float>({1.0f, 1.0f}), allowed < 2);
  }
}

TEST(DpAgd, StepSizesFollowThoseChosen) {
  FakeEngine engine({1e9, 0.0});
  std::size_t place = 10;
  engine.losses = [&](std::size_t n) { return best_at(place, n); };
  Gate gate(Generator::chacha20, {}, all_paid());
  DpAgd method(small_settings(), engine, 100, gate);
  DpAgdState state = method.begin({0.0f, 0.0f});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(method.iterate(state));
  ASSERT_EQ(engine.grids.front().size(), 20u);
  EXPECT_EQ(engine.grids.front().front(), 0.0f);
  EXPECT_FLOAT_EQ(engine.grids.back().back(), 2.0f);
  EXPECT_NEAR(state.w[0], -10.0 * 20.0 / 19.0, 1e-4);  // ten steps of 10/19 of 2
  place = 19;
  ASSERT_TRUE(method.iterate(state));
  EXPECT_FLOAT_EQ(engine.grids.back().back(), static_cast<float>(1.1 * 20.0 / 19.0));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(method.iterate(state));
  EXPECT_FLOAT_EQ(engine.grids.back().back(), static_cast<float>(1.1 * 1.1 * 20.0 / 19.0));
}

TEST(DpAgd, StepsShrinkWhereNoneHelps) {
  DpAgdSettings s = small_settings();
  s.shrink = 0.5;
  FakeEngine engine({1e9, 0.0});
  engine.losses = [&](std::size_t n) { return best_at(engine.grids.size() < 4 ? 0 : 19, n); };
  Gate gate(Generator::chacha20, {}, all_paid());
  DpAgd method(s, engine, 100, gate);
  DpAgdState state = method.begin({0.0f, 0.0f});
  ASSERT_TRUE(method.iterate(state));
  EXPECT_FLOAT_EQ(engine.grids.front().back(), 2.0f);
  EXPECT_FLOAT_EQ(engine.grids.back().back(), 0.25f);
  EXPECT_NEAR(state.w[0], -0.25, 1e-5);
}

TEST(DpAgd, RepeatsItselfUnderOneKey) {
  FakeEngine engine({1.0, 2.0});
  engine.losses = [](std::size_t n) { return std::vector<double>(n, 10.0); };
  const auto run = [&](std::uint64_t seed) {
    Gate gate(Generator::chacha20, key_from_seed(seed), all_paid());
    DpAgd method(small_settings(), engine, 100, gate);
    DpAgdState state = method.begin({0.0f, 0.0f});
    for (int i = 0; i < 5; ++i) method.iterate(state);
    return state.w;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

/// Under a fresh key there may be more rows than the noisy count allowed for: sums stay exact up to
/// 2^28 at least, and more are refused.
TEST(DpAgd, SumsAreExactForAsManyRowsAsAreTaken) {
  for (const double max_examples : {1.0, 1000.0, 0x1p28, 0x1p28 + 1.0, 0x1p40})
    for (const double bound : {0.3, 1.0, 7.0}) {
      const double capacity = linear_capacity(max_examples);
      EXPECT_GE(capacity, max_examples <= 0x1p28 ? 0x1p28 : max_examples);
      EXPECT_LE(capacity * bound / linear_grid(bound, max_examples), 0x1p53);
    }
  TrainConfig config;
  config.method = "dp-agd";
  config.epsilon = 1.0;
  config.delta = 1e-5;
  const Network network = cases::network_of(cases::kCases[0]);
  Dataset data = cases::examples_for(cases::kCases[0], 10);
  data.whole = (std::size_t{1} << 28) + 1;
  try {
    const cases::MethodTraining<> training(
        method_entry("dp-agd").make(cases::context_of(config, network, {1000.0, 5.0})), data);
    ADD_FAILURE() << "more rows were taken";
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "expected at most 268435456 training examples with --method dp-agd, found more");
  }
}

/// Noisy gradients are on the sum's grid or a finer one, or where the noise dwarfs that on a
/// coarser one that the sensitivity counts; the gate takes them all.
TEST(DpAgd, ReleasesGradientsOnAGrid) {
  for (const double rho : {1e-16, 1e-9, 1e-3, 1e4}) {
    DpAgdSettings s = small_settings();
    s.rho_gradient = rho;
    s.max_examples = 1000.0;
    FakeEngine engine({1.0, 2.0, 3.0});
    engine.losses = [&](std::size_t n) { return best_at(engine.directions.size() > 1 ? 3 : 0, n); };
    Gate gate(Generator::chacha20, key_from_seed(3), all_paid());
    DpAgd method(s, engine, 100, gate);
    DpAgdState state = method.begin({0.0f, 0.0f, 0.0f});
    ASSERT_TRUE(method.iterate(state));
    const std::vector<Released>& released = gate.released();
    ASSERT_EQ(released.size(), 2u);
    const double exact = linear_gradient_sensitivity(s.gradient_clip, 3, s.max_examples);
    const double grid = linear_grid(s.gradient_clip, s.max_examples);
    for (const auto& [r, dimension] : released) {
      EXPECT_EQ(dimension, 3u);
      const double part = &r == &released[0].release ? rho : s.gamma * rho;
      EXPECT_NEAR(r.noise_std / r.sensitivity * std::sqrt(2.0 * part), 1.0, 1e-14);
      EXPECT_GE(r.noise_std / r.sensitivity, 1.0 / std::sqrt(2.0 * part));
      EXPECT_GE(r.sensitivity, exact + (r.grid > grid ? std::sqrt(3.0) * r.grid : 0.0));
      EXPECT_LE(r.sensitivity, 1.001 * exact);
    }
    EXPECT_EQ(released[0].release.step, 0u);
    EXPECT_EQ(released[1].release.step, 2u);  // 1 was a choice
  }
}

TEST(DpAgd, RegularisesByTheExpectedExamples) {
  DpAgdSettings s = small_settings();
  s.l2 = 0.5;
  s.rho_gradient = 1e12;  // as good as no noise
  s.threshold = std::uint64_t{1} << 31;
  FakeEngine engine({0.0, 0.0});
  std::vector<double> seen;
  engine.losses = [](std::size_t n) { return std::vector<double>(n, 0.0); };
  s.rho_selection = 1e12;
  Gate gate(Generator::chacha20, {}, all_paid());
  DpAgd method(s, engine, 200, gate);
  DpAgdState state = method.begin({3.0f, 4.0f});  // |w| = 5: the best step of [0, 2] is 2
  ASSERT_TRUE(method.iterate(state));
  EXPECT_EQ(engine.batches, 1);
  EXPECT_NEAR(state.w[0], 3.0 * 3.0 / 5.0, 1e-3);
  EXPECT_NEAR(state.w[1], 4.0 * 3.0 / 5.0, 1e-3);
}

TEST(DpAgdBudget, SharesOut) {
  TrainConfig c;
  c.epsilon = 0.4;
  c.delta = 1e-8;
  const double rho = privacy::zcdp_for(0.4, 1e-8);
  const DpAgdSettings s = dp_agd_settings(c, rho, 30'000, 30'000);
  EXPECT_NEAR(s.rho_gradient + s.rho_selection, rho / 120.0, 1e-12 * rho);
  EXPECT_NEAR(s.rho_gradient, 0.6 * rho / 120.0, 1e-12 * rho);

  auto& options = c.of<DpAgdOptions>();
  options.budget_split = BudgetSplit::epsilon;
  options.noisy_min = SelectionNoise::laplace;
  const DpAgdSettings paper = dp_agd_settings(c, rho, 30'000, 30'000);
  const double each = 0.4 / 120.0;
  EXPECT_NEAR(paper.rho_selection, each * each / 2.0, 1e-15);
  EXPECT_NEAR(paper.rho_gradient, each * each / (4.0 * std::log(1.25e8)), 1e-15);

  EXPECT_EQ(dp_agd_budget(c).epsilon, 0.4);
  options.conversion = Conversion::classical;
  const double classical = privacy::zcdp_for(dp_agd_budget(c).epsilon, 1e-8);
  EXPECT_NEAR(privacy::epsilon_from_zcdp_classical(classical, 1e-8), 0.4, 1e-6);
  EXPECT_LT(classical, rho);
}

}  // namespace
}  // namespace cudp

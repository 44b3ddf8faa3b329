// How a clipping norm follows a quantile: the numbers of a rule, against libm.
#include "kernels/step/clip_rule.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"

namespace cudp {
namespace {

TEST(ClipRule, ItsExponentialIsWithinAnUlp) {
  double worst = 0.0;
  for (int i = -70'000; i <= 70'000; ++i) {
    const double x = i * 0.00999 + 1e-7 * (i % 7);
    const double want = std::exp(x);
    if (x < -700.0 || x > 700.0) continue;
    worst = std::max(worst, std::abs(same_exp(x) - want) / want);
  }
  EXPECT_LE(worst, 0x1.8p-52);
  EXPECT_GT(worst, 0.0) << "it is not libm's";
  EXPECT_EQ(same_exp(0.0), 1.0);
  EXPECT_EQ(same_exp(1e9), same_exp(700.0));
  EXPECT_EQ(same_exp(-1e9), same_exp(-700.0));
}

TEST(ClipRule, GridsAndNoiseAreTheHosts) {
  for (const float clip : {1e-30f, 0.001f, 0.5f, std::nextafterf(1.0f, 0.0f), 1.0f, 3.7f, 1e30f}) {
    const SumScale scale = scale_at(clip);
    EXPECT_EQ(scale.grid, sum_grid(static_cast<double>(clip)));
    EXPECT_EQ(static_cast<double>(scale.inverse_grid) * scale.grid, 1.0);
    EXPECT_EQ(scale.clip_norm, clip);
  }
  for (const double x : {1.0, 1.0 + 0x1p-40, 1.0 - 0x1p-40, 0.1, 1e-20, 7e20}) {
    const float f = float_not_below(x);
    EXPECT_GE(static_cast<double>(f), x);
    EXPECT_LT(static_cast<double>(std::nextafterf(f, 0.0f)), x);
  }
}

/// Andrew et al. 2021, Algorithm 1, in long double.
TEST(ClipRule, FollowsThePaper) {
  ClipRule r{.target = 0.7, .rate = 0.3, .min_clip = 0.25, .max_clip = 4.0, .expected_batch = 64.0};
  for (const double grid : {0.5, 0x1p-21}) {
    r.grid = grid;
    for (const int below : {0, 10, 40, 60}) {
      // 66 examples: 5 are not finite, the others clipped or below.
      const std::uint64_t halves = halves_of(66, 61 - static_cast<std::uint64_t>(below), 5);
      const double held = below - 33.0;
      const std::int64_t noise = -37;
      const std::int64_t count = noisy_count_of(r, halves, noise);
      EXPECT_EQ(static_cast<double>(count) * grid, held + grid * static_cast<double>(noise));
      const long double share = (held + grid * static_cast<double>(noise)) / 64.0L + 0.5L;
      const long double want = 1.5L * std::exp(-0.3L * (share - 0.7L));
      EXPECT_NEAR(next_clip(r, 1.5f, count), static_cast<double>(want), 1.5e-7 * 1.5);
    }
  }
  EXPECT_EQ(next_clip(r, 1.0f, std::numeric_limits<std::int64_t>::min()), 4.0f);
  EXPECT_EQ(next_clip(r, 1.0f, std::numeric_limits<std::int64_t>::max()), 0.25f);
}

TEST(ClipRule, StepsHaveTheNoiseOfTheirNorm) {
  ClipRule r{.noise_multiplier = 1.1, .sensitivity = 1.25};
  const StepScalars given{.learning_rate = 0.5f,
                          .noise_std = 9.0f,
                          .inverse_batch = 0.125f,
                          .bias1 = 1.0f,
                          .bias2 = 1.0f,
                          .ema_decay = 0.0f,
                          .clip_norm = 9.0f};
  const StepScalars plain = scalars_at(r, 0.75f, given);
  EXPECT_EQ(plain.clip_norm, 0.75f);
  EXPECT_EQ(plain.noise_std, float_not_below(1.1 * 0.75 * 1.25));
  EXPECT_EQ(plain.inverse_batch, 0.125f);
  EXPECT_EQ(plain.learning_rate, 0.5f);
  r.normalised = true;
  EXPECT_EQ(scalars_at(r, 0.75f, given).inverse_batch, 0.125f / 0.75f);
}

TEST(ClipRule, IsValidated) {
  EXPECT_NO_THROW(validate(ClipRule{}));
  const auto refused = [](auto&& change) {
    ClipRule r;
    change(r);
    EXPECT_THROW(validate(r), std::invalid_argument);
  };
  refused([](ClipRule& r) { r.target = 1.0; });
  refused([](ClipRule& r) { r.rate = 0.0; });
  refused([](ClipRule& r) { r.min_clip = 2e3; });
  refused([](ClipRule& r) { r.max_clip = HUGE_VAL; });
  refused([](ClipRule& r) { r.expected_batch = 0.0; });
  refused([](ClipRule& r) { r.grid = 0.3; });
  refused([](ClipRule& r) { r.grid = 1.0; });
  refused([](ClipRule& r) { r.noise_multiplier = std::nan(""); });
}

}  // namespace
}  // namespace cudp

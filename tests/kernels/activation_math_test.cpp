#include "kernels/layers/activation_math.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/vec.hpp"
#include "kernels/layers/loss_math.hpp"

namespace cudp {
namespace {

using portable::kLanes;
using portable::Vec;

double ulp(double exact) {
  const auto f = static_cast<float>(std::abs(exact));
  return static_cast<double>(std::nextafter(f, 1e38f)) - static_cast<double>(f);
}

/// Largest error in ulp of `f` over floats in [low, high], both signs where low is 0: every
/// `step`-th bit pattern.
template <class F, class Exact>
double worst_ulp(F f, Exact exact, float low, float high, std::uint32_t step = 997) {
  double worst = 0.0;
  for (const float sign : {1.0f, -1.0f}) {
    std::uint32_t bits = 0, last = 0;
    std::memcpy(&bits, &low, 4);
    std::memcpy(&last, &high, 4);
    for (; bits <= last; bits += step) {
      float x = 0.0f;
      std::memcpy(&x, &bits, 4);
      x *= sign;
      const double want = exact(static_cast<double>(x));
      const double error = std::abs(static_cast<double>(f(x)) - want) / ulp(want);
      if (!(error <= worst) && !std::isnan(worst)) worst = error;
    }
  }
  return worst;
}

TEST(ActivationMath, TanhAndExpToTheLastBits) {
  const double tanh_error = worst_ulp([](float x) { return tanh_of(x); },
                                      [](double x) { return std::tanh(x); }, 1e-30f, 30.0f);
  const double exp_error = worst_ulp([](float x) { return exp_of(x); },
                                     [](double x) { return std::exp(x); }, 1e-30f, 87.0f);
  EXPECT_TRUE(tanh_error <= 4.0) << tanh_error;
  EXPECT_TRUE(exp_error <= 2.0) << exp_error;
  RecordProperty("tanh_ulp", std::to_string(tanh_error));
  RecordProperty("exp_ulp", std::to_string(exp_error));
}

TEST(ActivationMath, EdgesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tanh_of(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(tanh_of(-0.0f)));
  EXPECT_EQ(tanh_of(inf), 1.0f);
  EXPECT_EQ(tanh_of(-inf), -1.0f);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_TRUE(exp_of(-inf) < 2e-38f);
  EXPECT_TRUE(exp_of(inf) > 1e38f);
  EXPECT_TRUE(std::isnan(tanh_of(NAN)) && std::isnan(exp_of(NAN)) && std::isnan(exp_of(-NAN)));
  EXPECT_TRUE(std::isnan(Relu{}.value(NAN)));
  EXPECT_TRUE(std::isnan(Tanh{}.derivative(NAN)));
}

TEST(ActivationMath, AVectorGivesTheSameAsItsLanes) {
  const TemperedSigmoid ts(1.5f, 3.0f, 0.25f);
  for (int start = -40; start < 40; ++start) {
    Vec x;
    for (int i = 0; i < kLanes; ++i) x[i] = 0.37f * static_cast<float>(start * kLanes + i);
    x[0] = NAN;
    const auto check = [&](Vec got, auto scalar) {
      EXPECT_TRUE(std::isnan(got[0]));
      for (int i = 1; i < kLanes; ++i) {
        const float want = scalar(x[i]);
        EXPECT_TRUE(std::abs(got[i] - want) <= 1e-6f * std::abs(want)) << x[i];
      }
    };
    check(tanh_of(x), [](float v) { return tanh_of(v); });
    check(exp_of(x), [](float v) { return exp_of(v); });
    check(Relu{}.value(x), [](float v) { return Relu{}.value(v); });
    check(ts.value(x), [&](float v) { return ts.value(v); });
    check(ts.derivative(x), [&](float v) { return ts.derivative(v); });
  }
}

TEST(ActivationMath, TemperedSigmoidAndDerivativesFollowTheirDefinitions) {
  const double s = 1.6, t = 2.5, o = 0.7;
  const TemperedSigmoid ts(1.6f, 2.5f, 0.7f);
  for (double x = -6.0; x < 6.0; x += 0.0625) {
    const double want = s / (1.0 + std::exp(-t * x)) - o;
    const double sigma = 1.0 / (1.0 + std::exp(-t * x));
    const auto f = static_cast<float>(x);
    EXPECT_TRUE(std::abs(ts.value(f) - want) <= 4e-7) << x;
    EXPECT_TRUE(std::abs(ts.derivative(ts.value(f)) - s * t * sigma * (1.0 - sigma)) <= 2e-6) << x;
    EXPECT_TRUE(std::abs(Tanh{}.derivative(tanh_of(f)) - 1.0 / std::pow(std::cosh(x), 2)) <= 3e-7)
        << x;
    EXPECT_EQ(Relu{}.value(f), x > 0 ? f : 0.0f);
    EXPECT_EQ(Relu{}.derivative(Relu{}.value(f)), x > 0 ? 1.0f : 0.0f);
  }
}

// --- Losses: value by the definition in double, gradient by central differences of it. ---

double softmax_loss(const std::vector<double>& z, int label) {
  double total = 0.0;
  for (const double v : z) total += std::exp(v);
  return std::log(total) - z[static_cast<std::size_t>(label)];
}

TEST(LossMath, SoftmaxMatchesItsDefinition) {
  const std::vector<float> z{0.3f, -1.7f, 5.5f, 0.0f, 5.25f};
  const std::vector<double> zd(z.begin(), z.end());
  for (int label = 0; label < 5; ++label) {
    std::vector<float> d(5);
    const float got = softmax_cross_entropy(z.data(), 5, label, d.data());
    EXPECT_TRUE(std::abs(got - softmax_loss(zd, label)) <= 1e-6);
    for (std::size_t c = 0; c < 5; ++c) {
      auto up = zd, down = zd;
      up[c] += 1e-5;
      down[c] -= 1e-5;
      const double want = (softmax_loss(up, label) - softmax_loss(down, label)) / 2e-5;
      EXPECT_TRUE(std::abs(d[c] - want) <= 3e-7) << c;
    }
  }
}

/// Where the label is nearly certain, its gradient is the small share of the others.
TEST(LossMath, SoftmaxGradientsAreRightInTheirOwnSize) {
  for (const float margin : {2.0f, 9.0f, 20.0f, 60.0f})
    for (const int label : {0, 1, 2}) {
      const std::vector<float> z{0.5f, margin, -1.25f};
      std::vector<float> d = z;  // in place
      softmax_cross_entropy(d.data(), 3, label, d.data());
      std::vector<double> e;
      e.reserve(z.size());
      for (const float v : z) e.push_back(std::exp(double{v} - double{margin}));
      const double total = e[0] + e[1] + e[2];
      for (int c = 0; c < 3; ++c) {
        double want = e[static_cast<std::size_t>(c)] / total;
        if (c == label) {
          want = 0.0;
          for (int o = 0; o < 3; ++o)
            if (o != label) want -= e[static_cast<std::size_t>(o)] / total;
        }
        EXPECT_TRUE(std::abs(d[static_cast<std::size_t>(c)] / want - 1.0) <= 1e-6)
            << margin << ", label " << label << ", class " << c;
      }
    }
}

TEST(LossMath, BinaryLossesMatchTheirDefinitions) {
  for (const int label : {0, 1})
    for (double z = -30.0; z < 30.0; z += 0.3) {
      const double y = 2 * label - 1, m = y * z;
      const auto f = static_cast<float>(z);
      float d = 0.0f;
      const float logistic = logistic_loss(f, label, &d);
      EXPECT_TRUE(std::abs(logistic - std::log1p(std::exp(-m))) <= 1e-6 * (1 + std::abs(m)));
      EXPECT_TRUE(std::abs(d + y / (1.0 + std::exp(m))) <= 2e-7) << z;
      const float hinge = hinge_loss(f, label, &d);
      EXPECT_TRUE(std::abs(hinge - std::max(0.0, 1.0 - m)) <= 1e-5);
      EXPECT_EQ(d, 1.0 - y * static_cast<double>(f) > 0 ? -y : 0.0) << z;
    }
}

TEST(LossMath, NonFiniteLogitsShow) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {NAN, inf}) {
    std::vector<float> z{0.0f, 1.0f, bad}, d(3);
    softmax_cross_entropy(z.data(), 3, 0, d.data());
    EXPECT_TRUE(std::isnan(d[0]));
  }
  float d = 0.0f;
  EXPECT_TRUE(std::isnan(logistic_loss(NAN, 1, &d)) && std::isnan(d));
  EXPECT_TRUE(std::isnan(hinge_loss(NAN, 1, &d)) && std::isnan(d));
}

}  // namespace
}  // namespace cudp

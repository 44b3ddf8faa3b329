#include "bench/reproduce/non_private.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace cudp {
namespace {

TEST(Minimise, FindsTheValleyOfRosenbrock) {
  const auto w = minimise(
      [](const std::vector<double>& x, std::vector<double>& g) {
        const double a = 1.0 - x[0];
        const double b = x[1] - x[0] * x[0];
        g = {-2.0 * a - 400.0 * x[0] * b, 200.0 * b};
        return a * a + 100.0 * b * b;
      },
      {-1.2, 1.0}, 1e-9, 500);
  EXPECT_NEAR(w[0], 1.0, 1e-7);
  EXPECT_NEAR(w[1], 1.0, 1e-7);
}

/// One feature that is 1, three examples of class 1 and one of class 0: without a penalty on the
/// weights the score is log 3, and weight and bias share it.
TEST(FitNonPrivate, IsTheClosedForm) {
  Dataset data;
  data.shape = {1, 1, 1};
  data.classes = 2;
  data.floats = {1.0f, 1.0f, 1.0f, 1.0f};
  data.labels = {1, 0, 1, 1};
  const std::vector<float> w = fit_non_private(data, Loss::logistic, 0.0);
  EXPECT_NEAR(w[0], 0.5 * std::log(3.0), 1e-4);
  EXPECT_NEAR(w[1], 0.5 * std::log(3.0), 1e-4);
  // l2 z / 2 = 3/4 - 1/(1 + e^-z) at the minimum
  const std::vector<float> tied = fit_non_private(data, Loss::logistic, 0.3);
  const double z = static_cast<double>(tied[0]) + static_cast<double>(tied[1]);
  EXPECT_NEAR(0.15 * z, 0.75 - 1.0 / (1.0 + std::exp(-z)), 1e-5);
}

}  // namespace
}  // namespace cudp

#pragma once
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace cudp {

/// Expects the mean and the variance of n normal numbers. False alarms have a probability of about
/// 1e-6 in total.
inline void expect_normal(const std::vector<double>& z, double variance) {
  const auto n = static_cast<double>(z.size());
  double sum = 0.0;
  double squares = 0.0;
  for (const double x : z) {
    sum += x;
    squares += x * x;
  }
  EXPECT_TRUE(std::fabs(sum / std::sqrt(n * variance)) <= 5.1);
  EXPECT_TRUE(std::fabs((squares / variance - n) / std::sqrt(2.0 * n)) <= 5.3)
      << squares / n << " where " << variance << " was due";
}

}  // namespace cudp

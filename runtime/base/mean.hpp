#pragma once
#include <cmath>
#include <vector>

namespace cudp {

/// Mean and sample standard deviation of a list of numbers.
struct MeanAndDeviation {
  double mean = 0.0;
  double deviation = 0.0;
};

inline MeanAndDeviation mean_and_deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  MeanAndDeviation m;
  for (const double v : values) m.mean += v / n;
  double square = 0.0;
  for (const double v : values) square += (v - m.mean) * (v - m.mean);
  if (values.size() > 1) m.deviation = std::sqrt(square / (n - 1.0));
  return m;
}

}  // namespace cudp

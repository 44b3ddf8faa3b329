#pragma once
// Sum of the gradient norms of all examples. Importance sampling starts an epoch with it and
// chooses the next clipping norm from it (runtime/methods/dpis.cpp). The norms are added as
// integers, so that the order of the examples does not matter.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Returns min(norm, max_norm) / grid, rounded towards zero; a NaN counts as max_norm. Requires
/// max_norm >= 0 and max_norm / grid < 2^63.
CUDP_HD unsigned long long norm_units(float norm, double max_norm, double grid) {
  const double n = static_cast<double>(norm) < max_norm ? static_cast<double>(norm) : max_norm;
  return static_cast<unsigned long long>(n / grid);
}

/// Adds up n gradient norms: *total = sum of min(norm, max_norm) / grid, each summand rounded down
/// to an integer.
struct NormTotal {
  const float* norms;
  std::int64_t n;
  double max_norm;
  double grid;
  unsigned long long* total;  ///< written: the sum of the norms
};

inline void validate(const NormTotal& a) {
  expect(a.norms && a.total && a.n > 0, "norm total: expected pointers and n > 0");
  expect(a.max_norm > 0.0 && a.grid > 0.0 && a.max_norm / a.grid < 0x1p63,
         "norm total: expected a largest norm > 0 and below 2^63 units of the grid");
}
/// Returns a launch shape with 16 norms per thread. A block adds up its norms before it adds the
/// result to *total, so it needs a single atomic addition.
inline LaunchShape launch_shape(const NormTotal& a) { return strided_shape((a.n + 15) / 16); }

}  // namespace cudp

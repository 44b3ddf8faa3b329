#pragma once
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"

namespace cudp::inline CUDP_SIMT {

/// Calls body(i) for 0 <= i < n, distributed over all threads of the launch.
template <class Body>
__device__ __forceinline__ void for_each_number(std::int64_t n, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step)
    body(i);
}

/// Returns the product x y, rounded to the nearest integer, plus the constant kToUnitsBits, modulo
/// 2^32. The caller subtracts the constant; if it adds up many results, it may subtract all
/// constants at once from the sum. Requires |x y| <= 2^22.
__device__ __forceinline__ std::uint32_t biased_product(float x, float y) {
  return ScalarLanes::bits(ScalarLanes::fma(x, y, kToUnits));
}
/// Returns the product x y, rounded to the nearest integer. Requires |x y| <= 2^22.
__device__ __forceinline__ std::int32_t rounded_product(float x, float y) {
  return static_cast<std::int32_t>(biased_product(x, y)) - kToUnitsBits;
}

/// Returns the product x y, rounded to the nearest integer and clamped to [-2^22, 2^22]. If x y is
/// NaN, returns -2^22.
__device__ __forceinline__ std::int32_t saturated_product(float x, float y) {
  const float sum = ScalarLanes::fma(x, y, kToUnits);
  return static_cast<std::int32_t>(ScalarLanes::bits(fminf(fmaxf(sum, kMinSum), kMaxSum))) -
         kToUnitsBits;
}

}  // namespace cudp::inline CUDP_SIMT

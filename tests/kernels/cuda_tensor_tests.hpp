#pragma once
// One product of a tensor core, and the rounding of its operands: on a device, of the device
// itself; under the emulator, of the twin that all tests of tensor cores rest on.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/tensor_core.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp::inline CUDP_SIMT {

struct RoundNumbers {
  const float* from;
  float* to;
  int n;
};
inline void validate(const RoundNumbers&) {}
inline LaunchShape launch_shape(const RoundNumbers& a) { return strided_shape(a.n, 32); }

// grid, block: any.
__global__ inline void round_numbers_kernel(RoundNumbers a) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < a.n) a.to[i] = to_tf32(a.from[i]);
}
/// to [2 n]: the parts of each number.
// grid, block: any.
__global__ inline void split_numbers_kernel(RoundNumbers a) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= a.n) return;
  const SplitTf32 parts = split_tf32(a.from[i]);
  const int at = 2 * i;
  a.to[at] = parts.high;
  a.to[at + 1] = parts.low;
}

/// d [16, 8] += a [16, 8] b [8, 8], row by row.
struct OneProduct {
  const float* a;
  const float* b;
  float* d;
};
inline void validate(const OneProduct&) {}
inline LaunchShape launch_shape(const OneProduct&) { return {.grid = {1}, .block = {32}}; }

// grid: 1. block: a warp.
__global__ inline void one_product_kernel(OneProduct p) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const float a[4] = {p.a[8 * g + t], p.a[8 * (g + 8) + t], p.a[8 * g + t + 4],
                      p.a[8 * (g + 8) + t + 4]};
  const float b[2] = {p.b[8 * t + g], p.b[8 * (t + 4) + g]};
  float* const top = &p.d[8 * g + 2 * t];
  float* const bottom = top + 64;
  float d[4] = {top[0], top[1], bottom[0], bottom[1]};
  mma_tf32(d, d + 2, a, b);
  for (int i = 0; i < 2; ++i) {
    top[i] = d[i];
    bottom[i] = d[2 + i];
  }
}

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {
namespace {

/// v to 11 significant bits, by the definition: shares nothing with what it judges.
float nearest_tf32(float v) {
  if (v == 0.0f || !std::isfinite(v)) return v;
  int exponent = 0;
  std::frexp(v, &exponent);                        // v in [1/2, 1) 2^exponent
  const int last = std::max(exponent - 11, -136);  // the exponent of the last bit kept
  return static_cast<float>(std::ldexp(std::round(std::ldexp(double{v}, -last)), last));
}

std::vector<float> nearest_tf32(std::vector<float> v) {
  for (float& x : v) x = nearest_tf32(x);
  return v;
}

TEST_F(CudaKernel, OperandsAreRoundedToNearestTiesAway) {
  struct Row {
    std::uint32_t from, to;
  };
  const Row rows[] = {{0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000},  // below half: down
                      {0x3f801000, 0x3f802000},                            // ties go away from zero
                      {0xbf801000, 0xbf802000}, {0x3f803000, 0x3f804000}, {0x3f801001, 0x3f802000},
                      {0x3f802000, 0x3f802000},                            // above half; exact
                      {0x3fffefff, 0x3fffe000}, {0x3ffff000, 0x40000000},  // into the next exponent
                      {0xbfffffff, 0xc0000000}, {0x00000000, 0x00000000}, {0x80000000, 0x80000000},
                      {0x00000fff, 0x00000000}, {0x00001000, 0x00002000},  // denormals
                      {0x80005000, 0x80006000}, {0x007fffff, 0x00800000}, {0x7f7fefff, 0x7f7fe000},
                      {0x7f7ff000, 0x7f800000},  // beyond the largest: infinity
                      {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}};
  std::vector<float> from, to;
  for (const Row& r : rows) {
    from.push_back(std::bit_cast<float>(r.from));
    to.push_back(std::bit_cast<float>(r.to));
  }
  for (const float v : normals(1000, 3)) {
    from.push_back(v);
    to.push_back(nearest_tf32(v));
  }
  from.push_back(kNan);
  const int n = static_cast<int>(from.size());
  const RoundNumbers a{device(from), device(std::vector<float>(from.size(), kLoud)), n};
  run(round_numbers_kernel, a);
  const std::vector<float> got = host(a.to, from.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(to[i])) << from[i];
  EXPECT_TRUE(std::isnan(got.back()));
}

TEST_F(CudaKernel, TwoNumbersOfTf32HoldANumber) {
  std::vector<float> from = normals(1000, 4);
  for (const float v : {0.0f, -1.0f, 0x1.ffep0f, 0x1.ffefffp0f, 0x1.fffffep0f, 1e30f, -3e-30f})
    from.push_back(v);
  const std::size_t finite = from.size();
  for (const float v : {kNan, -kNan, std::numeric_limits<float>::infinity(),
                        std::bit_cast<float>(0x7fffffffu), std::bit_cast<float>(0xffffffffu)})
    from.push_back(v);
  const int n = static_cast<int>(from.size());
  const RoundNumbers a{device(from), device(std::vector<float>(2 * from.size(), kLoud)), n};
  run(split_numbers_kernel, a);
  const std::vector<float> got = host(a.to, 2 * from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const float high = got[2 * i], low = got[2 * i + 1];
    if (i >= finite) {
      EXPECT_TRUE(std::isnan(high + low)) << "nothing that is not finite is lost: " << i;
      continue;
    }
    for (const float part : {high, low})
      EXPECT_EQ(std::bit_cast<std::uint32_t>(part) & 0x1fffu, 0u) << from[i];
    EXPECT_LE(std::abs(double{from[i]} - high), 0x1p-11 * std::abs(from[i])) << from[i];
    EXPECT_LE(std::abs(double{from[i]} - high - low), 0x1p-21 * std::abs(from[i])) << from[i];
  }
}

TEST_F(CudaKernel, ATensorCoreMultipliesWhatItsFragmentsHold) {
  const std::vector<float> a = nearest_tf32(normals(128, 1));
  const std::vector<float> b = nearest_tf32(normals(64, 2));
  const std::vector<float> d = normals(128, 3);
  const OneProduct p{device(a), device(b), device(d)};
  run(one_product_kernel, p);
  const std::vector<float> got = host(p.d, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      double want = d[8 * i + j];
      double size = std::abs(want);
      for (int k = 0; k < 8; ++k) {
        want += double{a[8 * i + k]} * b[8 * k + j];
        size += std::abs(double{a[8 * i + k]} * b[8 * k + j]);
      }
      EXPECT_TRUE(std::abs(got[8 * i + j] - want) <= 1e-6 * size) << i << ", " << j;
    }
}

/// What is not finite stays in its own row.
TEST_F(CudaKernel, ATensorCoreKeepsRowsApart) {
  std::vector<float> a(128, 1.0f);
  a[8 * 3 + 5] = kNan;
  a[std::size_t{8} * 9] = INFINITY;
  const OneProduct p{device(a), device(std::vector<float>(64, 0.5f)),
                     device(std::vector<float>(128, 0.0f))};
  run(one_product_kernel, p);
  const std::vector<float> got = host(p.d, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      const float v = got[8 * i + j];
      EXPECT_TRUE(i == 3 ? std::isnan(v) : v == (i == 9 ? INFINITY : 4.0f)) << i << ": " << v;
    }
}

}  // namespace
}  // namespace cudp

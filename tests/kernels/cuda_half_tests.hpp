#pragma once
// Products of a tensor core in fp16, loads of its operands and conversions: on a device, of the
// device itself; under the emulator, of the functions that stand in for it.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/half_core.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp::inline CUDP_SIMT {

/// Mistakes in a kernel that the tests must notice.
enum class HalfBug { none, a_registers_exchanged, not_transposed, d_registers_exchanged };

/// d [16, 8] = a [16, 16] b [16, 8]. Operands are fp16 as they lie in shared memory: a is stored by
/// rows, or by columns if `by_columns`; b is stored by columns, or by rows if `by_columns`.
struct HalfProduct {
  const std::uint16_t* a;  // [16, 16]
  const std::uint16_t* b;  // [8, 16], or [16, 8]
  float* d;                // [16, 8]
};
inline void validate(const HalfProduct&) {}
inline LaunchShape launch_shape(const HalfProduct&) { return {.grid = {1}, .block = {32}}; }

inline constexpr int kHalfPitch = 24;  // 3 x 16 bytes: 8 rows have no bank in common

/// Copies rows of `columns` halves to shared memory.
__device__ inline void share_rows(std::uint16_t* shared, const std::uint16_t* from, int rows,
                                  int columns) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += 32)
    shared[i / columns * kHalfPitch + i % columns] = from[i];
}

// grid: 1. block: a warp.
template <bool by_columns, HalfBug bug>
__global__ void half_product_kernel(HalfProduct p) {
  CUDP_SHARED(Four, a_rows, [16 * kHalfPitch / 8]);
  CUDP_SHARED(Four, b_rows, [16 * kHalfPitch / 8]);
  auto* const a_shared = reinterpret_cast<std::uint16_t*>(&a_rows[0]);
  auto* const b_shared = reinterpret_cast<std::uint16_t*>(&b_rows[0]);
  share_rows(a_shared, p.a, 16, 16);
  share_rows(b_shared, p.b, by_columns ? 16 : 8, by_columns ? 8 : 16);
  __syncwarp();
  const int lane = static_cast<int>(threadIdx.x), r = lane % 8, m = lane / 8;
  u32 a[4], b[2];
  if (by_columns) {
    const int a_at = (r + m / 2 * 8) * kHalfPitch + m % 2 * 8;
    // The addresses of the upper half of the warp must not matter: these are not aligned.
    const int b_at = m < 2 ? (r + m * 8) * kHalfPitch : 1;
    if (bug == HalfBug::not_transposed)
      ldmatrix_x4(a, a_shared + a_at);
    else
      ldmatrix_x4_trans(a, a_shared + a_at);
    ldmatrix_x2_trans(b, b_shared + b_at);
  } else {
    const int a_at = (r + m % 2 * 8) * kHalfPitch + m / 2 * 8;
    const int b_at = r * kHalfPitch + m % 2 * 8;
    u32 twice[4];  // b's two matrices, then both again
    ldmatrix_x4(a, a_shared + a_at);
    ldmatrix_x4(twice, b_shared + b_at);
    b[0] = twice[0];
    b[1] = twice[1];
  }
  if (bug == HalfBug::a_registers_exchanged) {
    const u32 kept = a[1];
    a[1] = a[2];
    a[2] = kept;
  }
  float d[4] = {};
  multiply_add(d, a, b);
  if (bug == HalfBug::d_registers_exchanged) {
    const float kept = d[1];
    d[1] = d[2];
    d[2] = kept;
  }
  float* const top = &p.d[8 * (lane / 4) + 2 * (lane % 4)];
  for (int i = 0; i < 4; ++i) top[i / 2 * 64 + i % 2] = d[i];
}

/// One number, or one word, of each operation for each thread.
struct HalfNumbers {
  const float* x;   // [n]
  const float* y;   // [n]
  const u32* a;     // [n]
  const u32* b;     // [n]
  const u32* c;     // [n]
  u32* rounded;     // [n]: x and y
  u32* split_high;  // [n]
  u32* split_low;   // [n]
  float* low;       // [n], of a
  float* high;      // [n], of a
  u32* fused;       // [n]: a b + c
  u32* bytes;       // [2 n]: the four of a
  u32* permuted;    // [n]: of a and b, by c
  int n;
};
inline void validate(const HalfNumbers&) {}
inline LaunchShape launch_shape(const HalfNumbers& a) { return strided_shape(a.n, 32); }

// grid, block: any.
__global__ inline void half_numbers_kernel(HalfNumbers s) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= s.n) return;
  s.rounded[i] = halves(s.x[i], s.y[i]);
  const SplitHalves split = split_halves(s.x[i], s.y[i]);
  s.split_high[i] = split.high;
  s.split_low[i] = split.low;
  s.low[i] = low_half(s.a[i]);
  s.high[i] = high_half(s.a[i]);
  s.fused[i] = fma_halves(s.a[i], s.b[i], s.c[i]);
  const int at = 2 * i;
  s.bytes[at] = bytes_to_halves<0>(s.a[i]);
  s.bytes[at + 1] = bytes_to_halves<2>(s.a[i]);
  s.permuted[i] = permute_bytes(s.a[i], s.b[i], s.c[i]);
}

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {
namespace {

/// The value of an fp16 number, by the definition.
double value_of_half(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}
/// v to 11 significant bits, ties to even: shares nothing with what it judges.
double nearest_half(double v) {
  if (v == 0.0 || !std::isfinite(v)) return v;
  int exponent = 0;
  std::frexp(v, &exponent);                       // v in [1/2, 1) 2^exponent
  const int last = std::max(exponent - 11, -24);  // the exponent of the last bit kept
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -last)), last);
  return std::abs(rounded) > 65504.0 ? std::copysign(INFINITY, v) : rounded;
}
/// Equal, signs of zero included; any NaN equals any other.
bool same_number(double got, double want) {
  return std::isnan(want) ? std::isnan(got)
                          : got == want && std::signbit(got) == std::signbit(want);
}

/// A whole number up to 2048, which fp16 has.
std::uint16_t whole_half(int v) {
  if (v == 0) return 0;
  const int exponent = std::ilogb(v);
  return static_cast<std::uint16_t>(((exponent + 14) << 10) + (v << 10 >> exponent));
}

class HalfCore : public CudaKernel {
 protected:
  using Operand = std::vector<std::uint16_t>;
  template <bool by_columns, HalfBug bug = HalfBug::none>
  std::vector<float> product(const Operand& a, const Operand& b) {
    Operand stored_a = a, stored_b = b;  // a [16, 16], b [16, 8]
    if (by_columns)
      for (int i = 0; i < 256; ++i) stored_a[i] = a[i % 16 * 16 + i / 16];
    else
      for (int i = 0; i < 128; ++i) stored_b[i] = b[i % 16 * 8 + i / 16];
    const HalfProduct p{device(stored_a), device(stored_b), device(std::vector<float>(128, kLoud))};
    run(half_product_kernel<by_columns, bug>, p);
    return host(p.d, 128);
  }
  static Operand operand(std::size_t n, unsigned seed) {
    Operand v(n);
    std::mt19937 random(seed);
    for (std::uint16_t& h : v)  // 2^-4 to 2^4, either sign
      h = static_cast<std::uint16_t>((random() & 0x8000) | (11 + random() % 8) << 10 |
                                     (random() & 1023));
    return v;
  }
  /// False if a number is off by more than the rounding of sums explains.
  static bool is_product(const std::vector<float>& d, const Operand& a, const Operand& b) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        double want = 0.0, size = 0.0;
        for (int k = 0; k < 16; ++k) {
          const double term = value_of_half(a[16 * i + k]) * value_of_half(b[8 * k + j]);
          want += term;
          size += std::abs(term);
        }
        if (!(std::abs(d[8 * i + j] - want) <= 1e-6 * size)) return false;
      }
    return true;
  }
};

TEST_F(HalfCore, MultipliesWhatItsFragmentsHold) {
  const Operand a = operand(256, 1), b = operand(128, 2);
  EXPECT_TRUE(is_product(product<false>(a, b), a, b));
  EXPECT_TRUE(is_product(product<true>(a, b), a, b));
  EXPECT_EQ(product<false>(a, b), product<true>(a, b)) << "the same fragments by another way";
}

TEST_F(HalfCore, AWrongFragmentIsNoticed) {
  const Operand a = operand(256, 1), b = operand(128, 2);
  EXPECT_FALSE(is_product(product<false, HalfBug::a_registers_exchanged>(a, b), a, b));
  EXPECT_FALSE(is_product(product<true, HalfBug::a_registers_exchanged>(a, b), a, b));
  EXPECT_FALSE(is_product(product<true, HalfBug::not_transposed>(a, b), a, b));
  EXPECT_FALSE(is_product(product<false, HalfBug::d_registers_exchanged>(a, b), a, b));
}

/// Each number of a and b alone stands where the tables of the PTX ISA have it.
TEST_F(HalfCore, EveryNumberHasItsPlace) {
  Operand a(256), ones(128, 0x3c00);
  for (int i = 0; i < 256; ++i) a[i] = whole_half(i);  // exact
  const std::vector<float> rows = product<false>(a, ones);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(rows[i], 16 * (16 * (i / 8)) + 120) << i;
  for (int k = 0; k < 16; ++k) {  // a's column k, times b's row k
    Operand unit(256);
    for (int row = 0; row < 16; ++row) unit[16 * row + k] = whole_half(row + 1);
    Operand b(128);
    for (int i = 0; i < 128; ++i) b[i] = whole_half(i);
    const std::vector<float> d = product<true>(unit, b);
    for (int i = 0; i < 128; ++i) EXPECT_EQ(d[i], (i / 8 + 1) * (8 * k + i % 8)) << k << ", " << i;
  }
}

/// What is not finite stays in its own row.
TEST_F(HalfCore, KeepsRowsApart) {
  Operand a(256, 0x3c00), b(128, 0x3800);
  a[16 * 3 + 5] = 0x7e00;           // NaN
  a[std::size_t{16} * 9] = 0x7c00;  // infinity
  const std::vector<float> d = product<false>(a, b);
  for (int i = 0; i < 128; ++i) {
    const int row = i / 8;
    EXPECT_TRUE(row == 3 ? std::isnan(d[i]) : d[i] == (row == 9 ? INFINITY : 8.0f)) << d[i];
  }
}

TEST_F(HalfCore, NumbersAreConvertedByTheirDefinitions) {
  std::vector<float> x = {0.0f,     -0.0f,     1.0f,         65504.0f,  65519.9f,
                          65520.0f, -65520.0f, 1e30f,        INFINITY,  kNan,
                          0x1p-24f, 0x1p-25f,  0x1.8p-25f,   -0x3p-25f, 2049.0f,
                          2051.0f,  0x1p-14f,  0x1.ffcp-15f, 1e-42f};
  for (const float v : normals(1000, 3)) x.push_back(v);
  std::mt19937 random(4);
  while (x.size() < 70000)  // all exponents that fp16 has, and some more
    x.push_back(std::ldexp(1.0f + static_cast<float>(random()) * 0x1p-32f,
                           static_cast<int>(random() % 48) - 30));
  const auto n = x.size();
  std::vector<float> y(x.rbegin(), x.rend());
  std::vector<std::uint32_t> a(n), b(n), c(n);
  for (std::size_t i = 0; i < n; ++i) {
    // Every fp16 number in either half.
    a[i] = static_cast<std::uint32_t>(i) & 0xffff;
    a[i] |= (a[i] * 40503u & 0xffff) << 16;
    b[i] = static_cast<std::uint32_t>(random());
    c[i] = static_cast<std::uint32_t>(random());
  }
  const std::vector<std::uint32_t> none(n);
  const std::vector<float> zeros(n);
  const HalfNumbers s{device(x),     device(y),          device(a),
                      device(b),     device(c),          device(none),
                      device(none),  device(none),       device(zeros),
                      device(zeros), device(none),       device(std::vector<std::uint32_t>(2 * n)),
                      device(none),  static_cast<int>(n)};
  run(half_numbers_kernel, s);
  const auto rounded = host(s.rounded, n), high = host(s.split_high, n), low = host(s.split_low, n);
  const auto bytes = host(s.bytes, 2 * n), permuted = host(s.permuted, n);
  const auto a_low = host(s.low, n), a_high = host(s.high, n);
  const auto check = [](bool right, const char* what, std::size_t i) {
    if (!right) ADD_FAILURE() << what << " " << i;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const auto is = [](std::uint32_t got, int half, double want) {
      return same_number(value_of_half(got >> 16 * half & 0xffff), want);
    };
    const double x_high = nearest_half(x[i]), y_high = nearest_half(y[i]);
    check(is(rounded[i], 0, x_high) && is(rounded[i], 1, y_high), "halves", i);
    check(high[i] == rounded[i] && is(low[i], 0, nearest_half(x[i] - x_high)) &&
              is(low[i], 1, nearest_half(y[i] - y_high)),
          "split_halves", i);
    check(is(a[i], 0, a_low[i]) && is(a[i], 1, a_high[i]), "low_half, high_half", i);
    for (int k = 0; k < 4; ++k) {
      check(is(bytes[2 * i + k / 2], k % 2, (a[i] >> 8 * k & 255) / 256.0), "bytes", i);
      const std::uint32_t nibble = c[i] >> 4 * k & 15;
      const std::uint64_t both = std::uint64_t{b[i]} << 32 | a[i];
      const auto byte = static_cast<std::uint8_t>(both >> 8 * (nibble % 8));
      const std::uint32_t want = nibble < 8 ? byte : byte < 128 ? 0 : 255;
      check((permuted[i] >> 8 * k & 255) == want, "permute_bytes", i);
    }
  }
}

TEST_F(HalfCore, AFusedProductIsRoundedOnce) {
  std::mt19937 random(5);
  const auto half = [&] {  // 2^-6 to 2^10: sums are exact in double
    return (static_cast<std::uint32_t>(random()) & 0x8000) | (9 + random() % 17) << 10 |
           (random() & 1023);
  };
  // 1 - 2^-20 + 2050: in float32 that would be 2051, a tie.
  std::vector<std::uint32_t> a{0x3c01}, b{0x3bfe}, c{0x6801};
  while (a.size() < 20000) {
    a.push_back(half() | half() << 16);
    b.push_back(half() | half() << 16);
    c.push_back(half() | half() << 16);
  }
  const auto n = a.size();
  const std::vector<std::uint32_t> none(n);
  const std::vector<float> zeros(n);
  const HalfNumbers s{device(zeros), device(zeros),      device(a),
                      device(b),     device(c),          device(none),
                      device(none),  device(none),       device(zeros),
                      device(zeros), device(none),       device(std::vector<std::uint32_t>(2 * n)),
                      device(none),  static_cast<int>(n)};
  run(half_numbers_kernel, s);
  const auto got = host(s.fused, n);
  EXPECT_EQ(value_of_half(got[0] & 0xffff), 2050.0);
  for (std::size_t i = 0; i < n; ++i)
    for (int k = 0; k < 2; ++k) {
      const auto of = [&](const std::vector<std::uint32_t>& v) {
        return value_of_half(v[i] >> 16 * k & 0xffff);
      };
      if (!same_number(of(got), nearest_half(of(a) * of(b) + of(c)))) ADD_FAILURE() << i;
    }
}

}  // namespace
}  // namespace cudp

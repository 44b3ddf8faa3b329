// The emulator's tensor-core products. Compiled with optimisation, because emulated kernels spend
// much of their time here.
#include <cstdint>

#include "tests/support/simt/simt_half.hpp"
#include "tests/support/simt/simt_tensor.hpp"

namespace simt {

void half_values(const HalfWords& bits, HalfValues& values) {
  const auto infinite = reinterpret_cast<HalfWords>((bits & 0x7c00u) == 0x7c00u);  // or NaN
  // 2^112 times infinity or NaN is itself, so that these get their exponent before the product.
  const HalfWords wide = (bits & 0x7fffu) << 13 | (infinite & 0x7f800000u);
  const HalfValues positive = reinterpret_cast<HalfValues>(wide) * 0x1p112f;
  values =
      reinterpret_cast<HalfValues>(reinterpret_cast<HalfWords>(positive) | (bits & 0x8000u) << 16);
}

const char* multiply_halves(void* const (&lanes)[32]) {
  const auto of = [&](int g, int t) -> HalfFragments& {
    return *static_cast<HalfFragments*>(lanes[4 * g + t]);
  };
  HalfWords a[16], b[8];  // a: row; pair of columns. b: pair of rows; column.
  HalfValues d[16];
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t) {
      const HalfFragments& f = of(g, t);
      for (int i = 0; i < 4; ++i) a[g + i % 2 * 8][t + i / 2 * 4] = f.a[i];
      for (int i = 0; i < 2; ++i) b[t + i * 4][g] = f.b[i];
      for (int i = 0; i < 4; ++i) d[g + i / 2 * 8][2 * t + i % 2] = f.d[i];
    }
  HalfValues b_row[16];
  for (int k = 0; k < 16; k += 2) {
    half_values(b[k / 2] & 0xffffu, b_row[k]);
    half_values(b[k / 2] >> 16, b_row[k + 1]);
  }
  for (int row = 0; row < 16; ++row) {
    HalfValues even, odd, sum = d[row];
    half_values(a[row] & 0xffffu, even);
    half_values(a[row] >> 16, odd);
    for (int k = 0; k < 16; k += 2) {
      sum += even[k / 2] * b_row[k];
      sum += odd[k / 2] * b_row[k + 1];
    }
    d[row] = sum;
  }
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t)
      for (int i = 0; i < 4; ++i) of(g, t).d[i] = d[g + i / 2 * 8][2 * t + i % 2];
  return nullptr;
}

const char* multiply_fragments(void* const (&lanes)[32]) {
  const auto of = [&](int g, int t) -> TensorFragments& {
    return *static_cast<TensorFragments*>(lanes[4 * g + t]);
  };
  using Row = float __attribute__((vector_size(32)));
  float a[16][8];
  Row b[8], d[16];
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t) {
      const TensorFragments& f = of(g, t);
      for (int i = 0; i < 4; ++i) a[g + i % 2 * 8][t + i / 2 * 4] = f.a[i];
      for (int i = 0; i < 2; ++i) b[t + i * 4][g] = f.b[i];
      for (int i = 0; i < 4; ++i) d[g + i / 2 * 8][2 * t + i % 2] = f.d[i];
      for (const float v : {f.a[0], f.a[1], f.a[2], f.a[3], f.b[0], f.b[1]})
        if (!is_tf32(v)) return "an operand of mma is not rounded to TF32";
    }
  for (int row = 0; row < 16; ++row) {
    Row sum = d[row];
    for (int k = 0; k < 8; ++k) sum += a[row][k] * b[k];
    d[row] = sum;
  }
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t)
      for (int i = 0; i < 4; ++i) of(g, t).d[i] = d[g + i / 2 * 8][2 * t + i % 2];
  return nullptr;
}

}  // namespace simt

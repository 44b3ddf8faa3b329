#pragma once
// The emulator's ldmatrix and fp16 tensor core. Fragments are those of the PTX ISA for
// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: with g = lane / 4, t = lane % 4, and two
// numbers to a register of a and b, the first in its low half,
//   a, 16 x 16: a0 (g, 2t), (g, 2t+1)      a1 (g+8, 2t), (g+8, 2t+1)
//               a2 (g, 2t+8), (g, 2t+9)    a3 (g+8, 2t+8), (g+8, 2t+9)
//   b, 16 x 8:  b0 (2t, g), (2t+1, g)      b1 (2t+8, g), (2t+9, g)
//   d, 16 x 8:  d0 (g, 2t)   d1 (g, 2t+1)   d2 (g+8, 2t)   d3 (g+8, 2t+1)
// Products of fp16 numbers are exact in float32. It adds them in float32, one after the other. How
// a device rounds while it adds is not documented, and nothing may rest on it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "tests/support/simt/simt_emulator.hpp"

namespace simt {

/// Returns x rounded to fp16: to nearest, ties to even; beyond the largest, infinity.
template <class Float>
std::uint16_t half_bits(Float x) {
  const _Float16 h = static_cast<_Float16>(x);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &h, sizeof bits);
  return std::isnan(x) ? 0x7fff : bits;  // NaN becomes the canonical one
}
/// Returns the value of an fp16 number, exactly. _Float16 is not used, because its conversion is a
/// call.
inline float half_value(std::uint16_t bits) {
  const bool finite = (bits & 0x7c00u) != 0x7c00u;
  std::uint32_t wide = std::uint32_t{bits & 0x7fffu} << 13 | (finite ? 0 : 0x7f800000u);
  float x = 0;
  std::memcpy(&x, &wide, sizeof x);
  if (finite) x *= 0x1p112f;  // the exponents' biases are 15 and 127
  return (bits & 0x8000u) != 0 ? -x : x;
}

/// prmt.b32: nibble i of `selector` is the index of byte i of the result. If its bit 3 is set, the
/// result is the sign bit of that byte, repeated eight times.
inline std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t nibble = selector >> 4 * i & 15;
    std::uint32_t byte = ((nibble & 4) != 0 ? high : low) >> 8 * (nibble & 3) & 255;
    if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

/// Returns a b + c in fp16, rounded once. The product is exact in double. The sum is rounded to odd
/// in double, so that rounding it to fp16 does not round twice.
inline std::uint16_t fma_half(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const double product = double{half_value(a)} * half_value(b), term = half_value(c);
  double sum = product + term;
  const double taken = sum - product;
  const double lost = (product - (sum - taken)) + (term - taken);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  if (std::isfinite(sum) && lost != 0 && bits % 2 == 0)
    sum = std::nextafter(sum, std::copysign(std::numeric_limits<double>::infinity(), lost));
  return half_bits(sum);
}
/// Returns a b + c for each of two fp16 numbers in a word (fma.rn.f16x2).
inline std::uint32_t fma_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto part = [&](unsigned shift) -> std::uint32_t {
    const auto of = [&](std::uint32_t both) { return static_cast<std::uint16_t>(both >> shift); };
    return fma_half(of(a), of(b), of(c));
  };
  return part(0) | part(16) << 16;
}

/// Statistics of the ldmatrix calls at one line of the source.
struct MatrixLoads {
  long matrices = 0;
  long conflicts = 0;  ///< extra passes, because rows of a matrix share banks
};
/// Statistics by file and line of the call. They add up over launches until a test clears them.
inline std::map<std::pair<const char*, int>, MatrixLoads> matrix_loads;

/// Arguments and result of ldmatrix for one lane: the row that it passes, its address, and the
/// registers that it receives.
struct MatrixRow {
  const void* from;
  std::uint16_t row[8];
  std::uint32_t r[4];
  const char* file;
  int line;
};

/// Returns the number of passes in which a matrix's rows are read. Banks repeat every 128 bytes,
/// and a row of 16 bytes covers four of them: two rows at different addresses conflict if these are
/// equal modulo 128.
inline long passes(const void* const (&rows)[8]) {
  long most = 1;
  for (int r = 0; r < 8; ++r) {
    long same_banks = 1;
    for (int q = 0; q < r; ++q) {
      const auto distance =
          reinterpret_cast<std::uintptr_t>(rows[r]) - reinterpret_cast<std::uintptr_t>(rows[q]);
      bool first = distance != 0;  // of the rows at its address
      for (int p = 0; p < q; ++p) first = first && rows[p] != rows[q];
      if (first && distance % 128 == 0) ++same_banks;
    }
    most = same_banks > most ? same_banks : most;
  }
  return most;
}

template <int matrices, bool transposed>
const char* exchange_rows(void* const (&lanes)[32]) {
  const auto of = [&](int lane) -> MatrixRow& { return *static_cast<MatrixRow*>(lanes[lane]); };
  for (int m = 0; m < matrices; ++m) {
    const void* rows[8];
    for (int r = 0; r < 8; ++r) rows[r] = of(8 * m + r).from;
    MatrixLoads& loads = matrix_loads[{of(0).file, of(0).line}];
    ++loads.matrices;
    loads.conflicts += passes(rows) - 1;
    const auto at = [&](int row, int column) -> std::uint32_t {
      return of(8 * m + row).row[column];
    };
    for (int g = 0; g < 8; ++g)
      for (int t = 0; t < 4; ++t)
        of(4 * g + t).r[m] = transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16
                                        : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
  return nullptr;
}

/// Loads as many matrices as r has registers (ldmatrix).
template <std::size_t matrices>
void load_matrices(std::uint32_t (&r)[matrices], const void* from, bool transposed,
                   const char* file, int line) {
  MatrixRow mine{from, {}, {}, file, line};
  if (lane_id() < 8 * matrices) {
    check_shared(from, sizeof mine.row, file, line);
    std::memcpy(mine.row, from, sizeof mine.row);  // here, so that TSan sees which lane reads it
  }
  together(transposed ? exchange_rows<matrices, true> : exchange_rows<matrices, false>, &mine, file,
           line);
  for (std::size_t m = 0; m < matrices; ++m) r[m] = mine.r[m];
}

/// Registers of one lane for a tensor-core product (mma).
struct HalfFragments {
  std::uint32_t a[4];
  std::uint32_t b[2];
  float d[4];
};

/// Computes d += a b for the whole warp: what multiply_add() does once all of its lanes have come.
const char* multiply_halves(void* const (&lanes)[32]);

/// Eight words, and the values of eight fp16 numbers.
using HalfWords = std::uint32_t __attribute__((vector_size(32)));
using HalfValues = float __attribute__((vector_size(32)));
/// values: half_value() of each word's low 16 bits. The high ones must be 0.
void half_values(const HalfWords& bits, HalfValues& values);

inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                         const char* file, int line) {
  HalfFragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {d[0], d[1], d[2], d[3]}};
  together(multiply_halves, &mine, file, line);
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

}  // namespace simt

#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/features/second_moments.hpp"

namespace cudp::CUDP_SIMD {
namespace {

using Doubles = double __attribute__((vector_size(kLanes * 4)));
constexpr int kDoubles = kLanes / 2;
constexpr int kRows = 4;  // number of rows of `sum` that are kept in registers at once
// Number of SIMD registers of columns that are kept for each of these rows.
constexpr int kVectors = kRegisters == 32 ? 4 : 2;
constexpr int kColumns = kVectors * kDoubles;
static_assert(kColumnTile % kColumns == 0);

CUDP_INLINE Doubles load_doubles(const double* p) {
  Doubles v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

CUDP_INLINE void add_tile(const SecondMoments& a, int i, int j) {
  Doubles acc[kRows][kVectors] = {};
  for (std::int64_t r = 0; r < a.count; ++r) {
    const double* x = a.rows + r * a.stride;
    for (int v = 0; v < kVectors; ++v) {
      const Doubles b = load_doubles(x + j + std::ptrdiff_t{v} * kDoubles);
      for (int k = 0; k < kRows; ++k) acc[k][v] += (x[i + k] - Doubles{}) * b;
    }
  }
  for (int k = 0; k < kRows; ++k)
    for (int v = 0; v < kVectors; ++v) {
      double* const out = a.sum + (i + k) * a.stride + j + std::ptrdiff_t{v} * kDoubles;
      const Doubles sum = load_doubles(out) + acc[k][v];
      __builtin_memcpy(out, &sum, sizeof sum);
    }
}

}  // namespace

void second_moments(const SecondMoments& a) {
  for (int i = a.begin; i < a.end; i += kRows)
    for (int j = i / kColumnTile * kColumnTile; j < a.stride; j += kColumns) add_tile(a, i, j);
}

void project_row(const ProjectRow& a) {
  for (int k = 0; k < a.outputs; k += kLanes) {
    Vec sum{};
    for (int i = 0; i < a.inputs; ++i)
      sum += broadcast(a.x[i]) * load(a.directions + static_cast<std::int64_t>(i) * a.outputs + k);
    store(a.out + k, sum);
  }
}

}  // namespace cudp::CUDP_SIMD

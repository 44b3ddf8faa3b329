#pragma once
#include <cstdint>

namespace cudp {

/// Offsets of the t-th summand of the sums of a GatherGemm: from the start of a row of matrix a,
/// and from the start of matrix b.
struct GemmStep {
  std::int32_t a;
  std::int32_t b;
};

/// Initial value of each sum of a GatherGemm: 0, the bias of the column, or the number that is
/// already in `out`.
enum class GemmStart : int { zero, bias, out };

/// Matrix product of every convolution and dense layer on the CPU. Index tables say where the rows
/// and the summands are in memory, so no input is unfolded (im2col):
///   out[out_row[m] + out_column(n)] = start + sum_t a[a_row[m] + step[t].a] * b[step[t].b + n]
/// for m in 0..rows-1, n in 0..columns-1, t in 0..terms-1. columns is a multiple of 16; rows and
/// terms may be 0. out_column(n) = n, or out_block[n / 16] + n % 16 if that table is given. start
/// is 0, bias[n], or the number that is already in out. In the last case several (m, n) may have
/// the same offset in out, and each adds to it.
///
///   use                     rows           terms            a     b             out
///   conv forward            output pixels  taps x channels  x     weight        y
///   conv weight gradient    taps x chann.  output pixels    x     dy            dweight
///   conv input gradient     output pixels  output channels  dy    weight^T      dx, block per tap
///   dense forward           examples       inputs           x     weight        y
///   dense weight gradient   inputs         examples         x     factor * dy   sum of dweight
///   dense input gradient    examples       outputs          dy    weight^T      dx
/// (x: input; y: output; d: gradient; tap: position of the convolution's kernel.)
struct GatherGemm {
  const float* a;
  const float* b;
  float* out;
  const std::int32_t* a_row;    ///< [rows], offset of each row in a
  const std::int32_t* out_row;  ///< [rows], offset of each row in out
  /// Offset in `out` of each block of 16 columns, [columns / 16]; null: the blocks are consecutive.
  const std::int32_t* out_block;
  const GemmStep* step;  ///< [terms], offsets of each summand
  const float* bias;     ///< [columns], for GemmStart::bias
  int rows;
  int terms;
  int columns;
  GemmStart start;
};

/// Sums rows of a matrix b: out[n] = sum over t < terms of b[step[t].b + n], for n < columns.
/// columns is a multiple of 16.
struct ColumnSum {
  const float* b;
  const GemmStep* step;
  int terms;
  int columns;
  float* out;
};

}  // namespace cudp

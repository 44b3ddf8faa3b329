#pragma once
// Matrix products of convolutions and dense layers over a micro-batch. Elements of the matrices are
// found through index tables, so no input is unfolded in memory.
#include <algorithm>
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/layers/epilogue.hpp"
#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/tile.hpp"

namespace cudp {

namespace device {

/// Matrix product out(i, j) = bias[j] + sum over t of a(i, t) * b(t, j), with t = 0 .. terms - 1
/// and i < rows_per_example times the number of examples. Then `epilogue` (an activation, its
/// derivative or none) is applied. Every sum runs over t in order, whatever the micro-batch; with
/// tensor cores 8 summands are added at a time.
///
///   use                    rows            summed over      a    b        out
///   conv forward           output pixels   channels, taps   x    weight   y
///   conv input gradient    input pixels    channels, taps   dy   weight   dx
///   dense forward          one             inputs           x    weight   y
///   dense input gradient   one             outputs          dy   weight   dx
/// (Rows are those of one example. x: input; y: output; dx, dy: their gradients.)
struct Product {
  Batch batch;
  Factor a;
  Factor b;
  const float* bias;  ///< [columns], added to each row of the product, or null
  float* out;
  Axis out_row;
  Axis out_column;
  std::int32_t rows_per_example;
  std::int32_t terms;
  std::int32_t columns;
  /// Number of rows of a block's tile: kTileRows or kTallRows. The caller chooses it, and launches
  /// the kernel with tiles of this size.
  std::int32_t tile_rows = 64;
  Epilogue epilogue = {};
  Axis y_row = {};  ///< layout of epilogue.y, like out_row and out_column
  Axis y_column = {};
};

}  // namespace device

/// Weight gradient of each example, a matrix [rows, columns]: G(i, j) = sum over p of x(i, p) dy(p,
/// j), with x the layer's input and dy the gradient of its output. The bias gradient is the sum
/// over p of dy(p, j). p runs over the example's output pixels (only one for a dense layer);
/// terms_per_example is their number. Gradients are stored in PyTorch's order of weights, G(i, j)
/// at index j * rows + i, followed by the bias gradient.
struct WeightGradient {
  Batch batch;
  Factor x;
  Factor dy;
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t terms_per_example;
  /// Sizes of the patches (a few rows of output pixels at a time) for the kernels of
  /// patch_gradient.cuh, which are faster. patch.lines = 0: these kernels are not used.
  ConvPatch patch = {};
  /// [capacity, outputs], derivative of each example's loss by its logits, from which the kernels
  /// of patch_gradient.cuh choose the power of two that they multiply an example's dy by. Others do
  /// not read it.
  const float* logit_gradients = nullptr;
  std::int32_t outputs = 0;
};

/// Computes the squared norm of each tile of each example's weight gradient, parts[tile, e]; parts
/// is [tiles, capacity]. The gradient itself is never stored.
struct WeightGradientNorm {
  WeightGradient gradient;
  float* parts;
  /// Transform of each number G of the gradient before it is squared, (G - mean) * inverse
  /// (coordinate-wise clipping). Both arrays have a number for each weight and bias, (rows + 1) *
  /// columns numbers. Null pointers: no transform.
  Transform transform = {};
};

/// Adds weighted gradients: sum += sum over examples e of factors[e] G_e, with G_e the gradient of
/// example e. An example with factor 0 is skipped, not multiplied, because it may contain NaN.
///
/// Why no example adds more than its factor allows, even if the terms of its gradient cancel. For
/// layers with several terms per example, one function (multiply_tile, or Patch::multiply) computes
/// G_e as a tile of float32 numbers in registers. The kernel for norms and the kernel for sums call
/// it with the same data in the same order of terms, and every number is at the same position of a
/// fragment. So the G_e that is added equals, bit for bit, the G_e whose norm was computed, however
/// it was rounded. factors[e] multiplies it afterwards in float32, which
/// runtime/device/sensitivity.hpp accounts for. TF32 only has to give equal sums for equal
/// operands. Neither the rounding of the operands (which cancelling terms can magnify by any
/// factor) nor the order in which tensor cores add matters. Scaling an operand by the clip factor
/// before it is rounded, or computing the norm in float32, would break this argument. (The power of
/// two by which Patch::multiply scales dy is the same for norm and sum.)
///
/// If an example has one term (dense layers), its norm is computed as that of an outer product,
/// without forming it. Such layers multiply in float32 here, even if they use TF32 forward and
/// backward.
///
/// Every number of a weighted gradient is rounded independently to a multiple of scale->grid, and
/// these multiples are added as integers. Of each tile there are `stripes` blocks. A block adds up
/// every stripes-th example and adds the result to `sum` once. Sums are exact, so they do not
/// depend on the number of stripes.
struct WeightGradientSum {
  WeightGradient gradient;
  const float* factors;  ///< factor of example e at e * factor_stride
  std::int32_t factor_stride;
  std::int32_t stripes;   ///< see gradient_stripes()
  FixedPoint* sum;        ///< [(rows + 1) columns], added to
  const SumScale* scale;  ///< each added number is rounded to a multiple of scale->grid
  /// Transform of each number G of the gradient before it is added, (G - mean) * inverse
  /// (coordinate-wise clipping). Null pointers: none.
  Transform transform = {};
};

/// Largest number of examples whose gradients a block adds up as 32-bit integers before it adds
/// these to the sums in memory. An example adds to each of them at most kMaxUnits in magnitude. So
/// a sum of 511 examples is at most 511 * 2^22 = 2^31 - 2^22 in magnitude, which fits; one of 512
/// may not.
inline constexpr int kMaxExamplesAtOnce = 511;
static_assert(kMaxExamplesAtOnce * kMaxUnits <= 0x7fffffff);

/// Writes the gradient G_e of each example e to gradients[e], without a clip factor. This is a
/// kernel of its own, because the kernel that sums gradients needs all registers for its integers.
struct WeightGradientRows {
  WeightGradient gradient;
  float* gradients;     ///< [capacity, stride], written
  std::int64_t stride;  ///< >= (rows + 1) columns
};

// --- Tiles ---

/// Returns the launch grid of a kernel for weight gradients: x and y count the tiles along the
/// gradient's rows and columns, z is `groups`, the number of examples or groups of examples.
/// patch_width: number of columns of a tile if the kernels of patch_gradient.cuh are used,
/// otherwise 0.
inline Extent gradient_grid(std::int32_t rows, std::int32_t columns, int patch_width,
                            unsigned groups) {
  return patch_width > 0
             ? Extent{divide_up(rows, kPatchRows), divide_up(columns, patch_width), groups}
             : Extent{divide_up(rows, kTileRows), divide_up(columns, tile_columns(columns)),
                      groups};
}
inline int gradient_tiles(std::int32_t rows, std::int32_t columns, int patch_width = 0) {
  const Extent grid = gradient_grid(rows, columns, patch_width, 1);
  return static_cast<int>(grid.x * grid.y);
}

namespace device {

/// Returns whether the product p is thin: its sums are long, but it has so few elements that large
/// tiles would occupy few blocks, which would mostly wait for memory. Thin products have a kernel
/// with the narrowest tiles, which adds more products at a time to each sum.
inline bool is_thin(const Product& p) {
  constexpr unsigned kBlocks = 256;
  return p.terms >= 64 &&
         divide_up(p.batch.capacity * p.rows_per_example, kTileRows) * divide_up(p.columns, 64) <
             kBlocks;
}

}  // namespace device

namespace device {

inline void validate(const Product& p) {
  validate(p.batch);
  validate(p.a);
  validate(p.b);
  validate(p.epilogue);
  expect(p.a.term.period == 0 && p.b.line.period == 0 && p.b.term.period == 0 &&
             p.out_column.period == 0,
         "product: expected examples along the rows only");
  expect(p.out != nullptr && p.rows_per_example > 0 && p.terms >= 0 && p.columns > 0,
         "product: expected an output, rows and columns > 0, terms >= 0");
  expect(p.tile_rows == kTileRows || (p.tile_rows == kTallRows && p.columns > 16 && !is_thin(p)),
         "product: expected tiles of 64 rows, or of 128 if it is wide");
  expect(std::int64_t{p.batch.capacity} * p.rows_per_example < (std::int64_t{1} << 31) - kTallRows,
         "product: the micro-batch is too large for 32-bit offsets");
}

inline LaunchShape launch_shape(const Product& p) {
  const int columns = is_thin(p) ? kThinColumns : tile_columns(p.columns);
  return {.grid = {divide_up(p.batch.capacity * p.rows_per_example, p.tile_rows),
                   divide_up(p.columns, columns)},
          .block = {tile_threads(columns)},
          .shared_bytes = 0};
}

}  // namespace device

inline void validate(const WeightGradient& g) {
  validate(g.batch);
  validate(g.x);
  validate(g.dy);
  expect(g.rows > 0 && g.columns > 0 && g.terms_per_example > 0,
         "weight gradient: expected rows, columns and terms > 0");
  expect(g.batch.capacity <= 65535, "weight gradient: expected a micro-batch of at most 65535");
  const ConvPatch& p = g.patch;
  expect(p.lines == 0 ||
             (g.rows == kPatchTaps * p.x.channels && g.columns == p.dy.channels &&
              g.terms_per_example == p.dy.height * p.dy.width && p.dy.height % p.lines == 0 &&
              p.lines * p.dy.width <= kMaxPatchTerms && p.x_pixels.n > 1 && p.dy_pixels.n > 1),
         "weight gradient: expected patches of its own planes");
  expect(p.lines == 0 || (g.logit_gradients != nullptr && g.outputs > 0),
         "weight gradient: expected the derivatives by the logits with patches");
}

inline void validate(const WeightGradientNorm& n) {
  validate(n.gradient);
  expect(n.parts != nullptr, "weight gradient norm: expected an array `parts`");
}

/// Returns the launch shape for the weight gradient g. groups: number of groups of examples.
/// patch_width: number of columns of a tile if the kernels of patch_gradient.cuh are used.
inline LaunchShape launch_shape(const WeightGradient& g, unsigned groups, int patch_width) {
  if (g.patch.lines == 0)
    return {.grid = gradient_grid(g.rows, g.columns, 0, groups),
            .block = {tile_threads(g.columns)},
            .shared_bytes = 0};
  return {.grid = gradient_grid(g.rows, g.columns, patch_width, groups),
          .block = {kPatchThreads},
          .shared_bytes = patch_bytes(g.patch, patch_width)};
}

inline LaunchShape launch_shape(const WeightGradientNorm& n) {
  return launch_shape(n.gradient, static_cast<unsigned>(n.gradient.batch.capacity),
                      patch_columns(n.gradient.columns));
}

inline void validate(const WeightGradientSum& s) {
  validate(s.gradient);
  expect(s.sum != nullptr && s.factors != nullptr && s.scale != nullptr,
         "weight gradient sum: expected a sum, factors and a grid");
  expect(s.gradient.patch.lines == 0 || s.transform.mean == nullptr,
         "weight gradient sum: expected no transform with patches");
  const int capacity = s.gradient.batch.capacity;
  expect(s.stripes > 0 && s.stripes <= capacity &&
             divide_up(capacity, s.stripes) <= unsigned{kMaxExamplesAtOnce},
         "weight gradient sum: expected a block for each stripe, of not too many examples");
}

inline LaunchShape launch_shape(const WeightGradientSum& s) {
  return launch_shape(s.gradient, static_cast<unsigned>(s.stripes), kPatchSumColumns);
}

inline void validate(const WeightGradientRows& r) {
  validate(r.gradient);
  expect(r.gradients != nullptr &&
             r.stride >= (std::int64_t{r.gradient.rows} + 1) * r.gradient.columns,
         "weight gradients: expected a stride of at least (rows + 1) x columns");
}

inline LaunchShape launch_shape(const WeightGradientRows& r) {
  return launch_shape(r.gradient, static_cast<unsigned>(r.gradient.batch.capacity),
                      kPatchSumColumns);
}

/// Returns the number of blocks among which the examples of WeightGradientSum are divided, for each
/// tile: as many as the device runs at once, but enough that no block has more than
/// kMaxExamplesAtOnce examples. tiles: number of tiles of the gradient. capacity: number of
/// examples. blocks_at_once: number of the kernel's blocks that a multiprocessor holds.
inline std::int32_t gradient_stripes(int tiles, int capacity, int blocks_at_once,
                                     const DeviceLimits& limits) {
  const auto fewest = static_cast<int>(divide_up(capacity, kMaxExamplesAtOnce));
  return std::clamp(limits.multiprocessors * blocks_at_once / tiles, fewest, capacity);
}

}  // namespace cudp

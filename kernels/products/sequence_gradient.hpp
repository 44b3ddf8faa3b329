#pragma once
// Gradients of weights that all positions of a text share (recurrent layers, dense layers on
// tokens): sums over the text's own positions. For CUDA.
#include <algorithm>
#include <cstdint>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/products/tiled_product.hpp"

namespace cudp {

/// Gradient of one weight matrix for each example e, G(i, j) = sum_t x(i, t + x_shift) dy(j, t),
/// and of its bias, sum_t dy(j, t). Sums are over the text's positions t < length. x is the input
/// (0 outside the text), dy the gradient of the output. In memory, x(i, t) of example e is at
/// offset e x_example + t x_place + i, and dy(j, t) at e dy_example + t dy_place + j.
struct SequencePart {
  const float* x = nullptr;
  const float* dy = nullptr;
  std::int32_t x_example = 0;
  std::int32_t x_place = 0;
  std::int32_t x_shift = 0;
  std::int32_t dy_example = 0;
  std::int32_t dy_place = 0;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t weight = 0;  ///< G(i, j) belongs to parameter weight + j rows + i of the layer
  /// Element j of the bias is parameter bias + j of the layer; -1: there is no bias.
  std::int32_t bias = -1;
  bool x_in_fours = false;      ///< whether x can be read in aligned groups of four; set by add()
  bool dy_in_fours = false;     ///< whether dy can be read in aligned groups of four; set by add()
  std::int32_t first_tile = 0;  ///< index of this matrix's first tile among those of the layer
};

/// Largest number of weight matrices (parts) of a layer: a GRU has three in each of two directions.
inline constexpr int kMaxSequenceParts = 6;

/// Size of the tile of a gradient that a block computes: 64 x 64, 32 x 64 or 64 x 32. A thread
/// computes 32 of its numbers.
struct SequenceTileShape {
  std::int32_t rows = kTileRows;
  std::int32_t columns = 64;
};
/// Returns the size of the tiles into which a layer's weight gradients are divided: the one that
/// leaves the fewest numbers unused, or the largest one with tensor cores. rows, columns: size of
/// the layer's largest weight matrix. precision: float32, or TF32 by tensor cores.
inline SequenceTileShape sequence_tile(int rows, int columns, Precision precision) {
  if (precision == Precision::tf32) return {};
  if (rows <= 32) return {.rows = 32};
  if (columns <= 32) return {.columns = 32};
  return {};
}
inline std::int32_t tiles_of(const SequenceTileShape& tile, int rows, int columns) {
  return static_cast<std::int32_t>(divide_up(rows, tile.rows) * divide_up(columns, tile.columns));
}

/// The gradients of all weight matrices of one layer, divided into tiles, of which a block computes
/// one. Numbers of a tile beyond its matrix's last row or column are zero.
struct SequenceGradient {
  Batch batch;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  std::int32_t longest;        ///< largest number of positions that a text may have
  SequenceTileShape tile;      ///< tile size of the kernel that is launched
  SequencePart part[kMaxSequenceParts];
  /// Derivative of each example's loss with respect to its logits, [capacity, outputs]. Kernels
  /// with fp16 multiply an example's dy by a power of two that depends on the largest of these
  /// derivatives. Other kernels do not read the array.
  const float* logit_gradients = nullptr;
  std::int32_t outputs = 0;
  std::int32_t parts = 0;
  std::int32_t tiles = 0;

  /// Adds the weight matrix p to those whose gradients are computed. Throws if there are
  /// kMaxSequenceParts already.
  void add(SequencePart p) {
    expect(parts < kMaxSequenceParts, "sequence gradient: expected fewer parts");
    const auto in_fours = [](const float* at, std::int32_t example, std::int32_t place, int n) {
      return reinterpret_cast<std::uintptr_t>(at) % 16 == 0 && (example | place | n) % 4 == 0;
    };
    p.x_in_fours = in_fours(p.x, p.x_example, p.x_place, p.rows);
    p.dy_in_fours = in_fours(p.dy, p.dy_example, p.dy_place, p.columns);
    p.first_tile = tiles;
    tiles += tiles_of(tile, p.rows, p.columns);
    part[parts++] = p;
  }
};

/// Computes the squared norm of each tile of each example's gradient: parts[tile, e], [tiles,
/// capacity].
struct SequenceGradientNorm {
  SequenceGradient gradient;
  float* parts;
  /// Transform of each number G of the gradient before it is squared, (G - mean) * inverse
  /// (coordinate-wise clipping). Null pointers: none.
  Transform transform = {};
};

/// Adds weighted gradients: sum += sum over examples e of factors[e] G_e, with G_e the gradient of
/// example e. An example with factor 0 is skipped, and its numbers are not read. The same code
/// computes G_e here and in SequenceGradientNorm. So the G_e that is added equals, bit for bit, the
/// one whose norm was computed (see WeightGradientSum).
///
/// Each tile has `stripes` blocks, and each of these blocks adds up every stripes-th example. Sums
/// are exact, so they do not depend on the number of stripes.
struct SequenceGradientSum {
  SequenceGradient gradient;
  const float* factors;  ///< factor of example e at e * factor_stride
  std::int32_t factor_stride;
  std::int32_t stripes;  ///< number of blocks per tile, as sequence_stripes() returns it
  FixedPoint* sum;
  const SumScale* scale;  ///< each added number is rounded to a multiple of scale->grid
  /// Transform of each number G of the gradient before it is added, (G - mean) * inverse
  /// (coordinate-wise clipping). Null pointers: none.
  Transform transform = {};
};

/// Writes the gradient of each example e, without a clip factor, to row e of `gradients`.
struct SequenceGradientRows {
  SequenceGradient gradient;
  float* gradients;  ///< [capacity, stride], written
  std::int64_t stride;
};

inline void validate(const SequenceGradient& g) {
  validate(g.batch);
  expect(g.length != nullptr && g.longest > 0 && g.parts > 0 && g.tiles > 0,
         "sequence gradient: expected lengths and parts");
  expect(g.batch.capacity <= 65535, "sequence gradient: expected a micro-batch of at most 65535");
  for (int i = 0; i < g.parts; ++i) {
    const SequencePart& p = g.part[i];
    expect(p.x != nullptr && p.dy != nullptr && p.rows > 0 && p.columns > 0 &&
               p.x_place >= p.rows && p.dy_place >= p.columns,
           "sequence gradient: expected pointers, rows and columns > 0");
  }
}
inline void validate(const SequenceGradientNorm& n) {
  validate(n.gradient);
  expect(n.parts != nullptr, "sequence gradient norm: expected an array `parts`");
}
inline void validate(const SequenceGradientSum& s) {
  validate(s.gradient);
  expect(s.sum != nullptr && s.factors != nullptr && s.scale != nullptr && s.stripes > 0 &&
             s.stripes <= s.gradient.batch.capacity,
         "sequence gradient sum: expected a sum, factors, a grid and a block for each stripe");
}
inline void validate(const SequenceGradientRows& r) {
  validate(r.gradient);
  expect(r.gradients != nullptr && r.stride > 0,
         "sequence gradients: expected an array `gradients` and a stride > 0");
}

/// Returns the number of blocks among which the examples of SequenceGradientSum are divided, for
/// each tile: as many as the device runs at once. blocks_at_once: number of the kernel's blocks
/// that a multiprocessor holds.
inline std::int32_t sequence_stripes(const SequenceGradient& g, int blocks_at_once,
                                     const DeviceLimits& limits) {
  return std::clamp(limits.multiprocessors * blocks_at_once / g.tiles, 1, g.batch.capacity);
}

inline LaunchShape sequence_shape(const SequenceGradient& g, unsigned groups) {
  return {.grid = {static_cast<unsigned>(g.tiles), 1, groups},
          .block = {static_cast<unsigned>(g.tile.rows * g.tile.columns / 32)},
          .shared_bytes = 0};
}
inline LaunchShape launch_shape(const SequenceGradientNorm& n) {
  return sequence_shape(n.gradient, static_cast<unsigned>(n.gradient.batch.capacity));
}
inline LaunchShape launch_shape(const SequenceGradientSum& s) {
  return sequence_shape(s.gradient, static_cast<unsigned>(s.stripes));
}
inline LaunchShape launch_shape(const SequenceGradientRows& r) {
  return sequence_shape(r.gradient, static_cast<unsigned>(r.gradient.batch.capacity));
}

}  // namespace cudp

#pragma once
// Products of all positions of texts with a layer's weights, by tensor cores in fp16. CUDA.
#include <cstdint>

#include "kernels/products/tiled_product.hpp"

namespace cudp::device {

/// Matrix product like Product, of which a row is a position of a text: rows_per_example positions
/// of each text. Positions past a text's end are neither read nor written. 16 summands at a time
/// are added to each number, in order, so that an example's result depends on nothing else.
///
/// Forward, a and b are neighbours in memory along the summed dimension. Both are sums of two fp16
/// numbers (22 bits), and a number is the sum of three products, so that a function behind the
/// layer sees the sums of float32. Backward, a is the gradient of the layer's output; b has
/// neighbours in neighbouring columns. Both are fp16 numbers (11 bits); a is multiplied by the
/// text's power of two (loss_exponent) before. A row with a number beyond the range of fp16 is not
/// finite.
struct TextProduct {
  Product product;
  const std::int32_t* length = nullptr;  ///< [capacity], number of words of each text
  /// [capacity, outputs], derivative of each text's loss by its logits; read backward only.
  const float* logit_gradients = nullptr;
  std::int32_t outputs = 0;
  /// Whether four neighbours of a can be read at once: groups of four are neighbours in memory,
  /// complete, and at a multiple of 16 bytes. The same for b.
  bool a_in_fours = false;
  bool b_in_fours = false;
};

inline void validate(const TextProduct& p) {
  validate(p.product);
  expect(p.product.a.line.period == 0 && p.product.out_row.period == 0 &&
             p.product.y_row.period == 0 && p.product.y_column.period == 0,
         "text product: expected positions that are rows at equal distances");
  expect(p.length != nullptr && p.outputs > 0 && p.logit_gradients != nullptr,
         "text product: expected lengths and gradients of the logits");
}

inline LaunchShape launch_shape(const TextProduct& p) {
  const Product& all = p.product;
  // Blocks of the same rows follow each other, so that these are read from the cache.
  return {.grid = {divide_up(all.columns, kTileRows) *
                   divide_up(all.batch.capacity * all.rows_per_example, kTileRows)},
          .block = {128},
          .shared_bytes = 0};
}

}  // namespace cudp::device

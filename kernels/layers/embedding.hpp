#pragma once
// Embedding of words as rows of a table, and the gradient of those rows. CUDA.
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/sum_scale.hpp"

namespace cudp::device {

/// The texts of a data set in device memory. A word is stored as its index in the vocabulary. Each
/// text has space for T words.
struct Texts {
  /// [data set, T], word at each position; null if the examples are not texts.
  const std::uint16_t* tokens = nullptr;
  const std::uint16_t* lengths = nullptr;  ///< [data set], number of words of each text
  /// [data set, T]: positions of each text sorted by word; positions of equal words are ascending.
  /// Null if no word vectors are trained.
  const std::uint16_t* order = nullptr;
  const float* vectors = nullptr;  ///< [words, columns], fixed word vectors, or null
};

/// Forward pass of an embedding for a micro-batch: y(t, .) = vector of the text's t-th word, for t
/// < its length. Also copies the texts' lengths and labels.
struct Embed {
  Batch batch;
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on; null: 0, 1, ...
  Texts texts;
  const std::uint8_t* labels;  ///< [data set], label of each text
  std::int32_t places;         ///< T, number of positions
  AnyDivisor columns;
  /// Words with an index below this have a row of `weight`, others a row of texts.vectors.
  std::int32_t rows;
  const float* weight;       ///< [rows, columns], trained word vectors, or null
  float* y;                  ///< [capacity, T, columns], written: a vector per position
  std::int32_t* own_length;  ///< [capacity], written: each text's length
  std::uint8_t* own_label;   ///< [capacity], written: each text's label
};

/// Gradient of the trained word vectors (`weight` of Embed) for each example. The gradient of a
/// word's vector is the sum of dy(t, .) over the positions t of the word, in the order of the text.
/// It is used in exactly one of three ways: its squared norm is written to parts; factors[e] times
/// it is added to sum, each number rounded independently (an example e with factor 0 is skipped,
/// because it may contain NaN); or it is stored in gradients. The numbers that are squared and the
/// numbers that are added are equal, bit for bit, because the same code computes both.
struct EmbeddingGradient {
  Batch batch;
  const std::uint32_t* examples;
  Texts texts;
  std::int32_t places;
  std::int32_t columns;
  std::int32_t rows;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  const float* dy;             ///< [capacity, T, columns], gradient of the embedding's output
  float* parts = nullptr;      ///< [capacity], written: squared norm of each example's gradient

  FixedPoint* sum = nullptr;  ///< [rows, columns], sum of the clipped gradients, added to
  const float* factors = nullptr;
  std::int32_t factor_stride = 0;
  /// Each added number is rounded to a multiple of scale->grid.
  const SumScale* scale = nullptr;

  float* gradients = nullptr;  ///< [capacity, stride], written: each example's gradient
  std::int64_t stride = 0;     ///< >= rows columns
};

inline void validate(const Embed& a) {
  validate(a.batch);
  expect(a.texts.tokens && a.texts.lengths && a.labels && a.y && a.own_length && a.own_label &&
             a.places > 0 && a.columns.n > 0,
         "embedding: expected pointers and sizes > 0");
  expect(a.rows >= 0 && (a.rows == 0) == (a.weight == nullptr),
         "embedding: expected rows > 0 with a weight, or neither");
}
inline LaunchShape launch_shape(const Embed& a) {
  return pixel_shape(a.batch, a.places * a.columns.n);
}

inline void validate(const EmbeddingGradient& a) {
  validate(a.batch);
  expect(a.texts.tokens && a.texts.order && a.length && a.dy && a.places > 0 && a.columns > 0 &&
             a.rows > 0,
         "embedding gradient: expected texts with `order`, pointers and sizes > 0");
  expect((a.parts != nullptr) + (a.sum != nullptr) + (a.gradients != nullptr) == 1,
         "embedding gradient: expected exactly one of parts, sum and gradients");
  expect(a.sum == nullptr || (a.factors && a.scale), "embedding gradient: expected factors");
  expect(a.gradients == nullptr || a.stride >= std::int64_t{a.rows} * a.columns,
         "embedding gradient: expected a stride of at least rows x columns");
}
/// Launch shape with one block per example.
inline LaunchShape launch_shape(const EmbeddingGradient& a) {
  return {.grid = {static_cast<unsigned>(a.batch.capacity)}, .block = {256}, .shared_bytes = 0};
}

}  // namespace cudp::device

#pragma once
// Embedding of words as rows of a table, and the gradient of those rows, for CUDA.
#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/contribution/sum_scale.hpp"

namespace cudp::device {

/// The texts of a data set in device memory. A word is stored as its index in the vocabulary. Each
/// text has space for T words.
struct Texts {
  /// Word at each position of each text, [data set, T], as an index in the vocabulary; null if the
  /// examples are not texts.
  const std::uint16_t* tokens = nullptr;
  const std::uint16_t* lengths = nullptr;  ///< [data set], number of words of each text
  /// Positions of each text, sorted by word, [data set, T]; positions of equal words are in
  /// ascending order. Null if no word vectors are trained.
  const std::uint16_t* order = nullptr;
  const float* vectors = nullptr;  ///< [words, columns], fixed word vectors, or null
};

/// Forward pass of an embedding for a micro-batch: writes y(t, .) = vector of the word at position
/// t of each text, for every t below the text's length. Also copies the length and the label of
/// each text.
struct Embed {
  Batch batch;
  const std::uint32_t* examples;  ///< indices in the data set, from batch.first on; null: 0, 1, ...
  Texts texts;
  const std::uint8_t* labels;  ///< [data set], label of each text
  std::int32_t places;         ///< T, number of positions
  AnyDivisor columns;
  /// A word with an index below this number has its vector in `weight`; the vectors of other words
  /// are in texts.vectors.
  std::int32_t rows;
  const float* weight;       ///< [rows, columns], trained word vectors, or null
  float* y;                  ///< [capacity, T, columns], written: a vector for each of T positions
  std::int32_t* own_length;  ///< [capacity], written: each text's length
  std::uint8_t* own_label;   ///< [capacity], written: each text's label
};

/// Kernel for the gradients of trained word vectors, for each example separately. The gradient of a
/// word's vector is the sum of dy(t, .) over the positions t of that word in the text, in ascending
/// order.
///
/// A launch does one of three things, depending on which pointer is set:
///   parts      writes the squared norm of each example's gradient;
///   sum        adds factors[e] times the gradient of each example e, each number rounded
///              independently. Examples with factor 0 are skipped, because their gradients may
///              contain NaN;
///   gradients  writes each example's gradient.
/// The same code computes the gradient for all three. So the gradient that is added is, bit for
/// bit, the one whose norm was computed.
struct EmbeddingGradient {
  Batch batch;
  const std::uint32_t* examples;
  Texts texts;
  std::int32_t places;
  std::int32_t columns;
  std::int32_t rows;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  const float* dy;  ///< [capacity, T, columns], gradient of the embedding's output at T positions
  float* parts = nullptr;  ///< [capacity], written: squared norm of each example's gradient

  FixedPoint* sum = nullptr;  ///< [rows, columns], sum of the clipped gradients, added to
  const float* factors = nullptr;
  std::int32_t factor_stride = 0;
  /// The grid of the sum, in device memory: each number is rounded to a multiple of scale->grid
  /// before it is added to `sum`.
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
/// Returns a launch shape with one block per example.
inline LaunchShape launch_shape(const EmbeddingGradient& a) {
  return {.grid = {static_cast<unsigned>(a.batch.capacity)}, .block = {256}, .shared_bytes = 0};
}

}  // namespace cudp::device

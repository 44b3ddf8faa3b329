#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/contribution/contribution.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Largest number of examples per call of a linear model's kernel. A sum of that many integers up
/// to kMaxUnits fits into 32 bits.
inline constexpr int kMaxLinearExamples = 256;

/// Private statistics over a batch: sums of loss and gradient norm over examples with finite
/// gradients, how many of them were clipped, and how many examples were not finite. norm has the
/// same unit as loss.
struct LinearFacts {
  std::int64_t loss = 0;  ///< multiples of kTallyUnit
  std::int64_t norm = 0;
  std::int64_t clipped = 0;
  std::int64_t non_finite = 0;
};

/// Up to kMaxLinearExamples examples of a step of a linear model with one output, for any format of
/// rows. For every example e < count, with its row x and score z = w x + b, the kernel computes
///   d = derivative of the loss at z,
///   f = clip factor for a gradient of norm |(x, 1)| |d|, times the label's weight,
/// and adds to sums of integers, which count multiples of `grid`, the spacing to which gradients
/// are rounded:
///   units[j] += round(x(j) d f / grid) for each feature j,
///   *bias_unit += round(d f / grid).
/// Rounding is that of a dense layer (AddOuter, CodedProduct): an example adds the same integers if
/// z is the same. An example that is not finite adds nothing.
struct LinearExamples {
  const std::uint32_t* examples;   ///< [count], index of each example's row and label
  int count;                       ///< 0..kMaxLinearExamples
  const std::uint8_t* labels;      ///< labels of all rows, 0 or 1; not read if targets are set
  const float* targets = nullptr;  ///< targets of all rows if the loss has a target, else null
  float bias;
  Loss loss;                             ///< a loss of one output
  float huber = 1.0f;                    ///< h of the Huber loss
  const float* class_weights = nullptr;  ///< [2], each in 0..1, or null: no weights
  ClipSettings clip;                     ///< per_layer means flat: there is one layer
  float inverse_grid;
  std::int32_t* bias_unit;
  LinearFacts* facts = nullptr;  ///< sums that the call adds to; may be null
};

/// Step of a linear model over examples in the compact form of CodedRows.
struct CodedLinear {
  LinearExamples of;
  CodedRows rows;
  /// [features + 1]; the last is 0, for codes that stand for no feature.
  const float* weights;
  const float* number_weights;  ///< [numbers], the weight of each number's feature
  std::int32_t* units;  ///< [features + 1], sums for codes; the last is for codes of no feature
  std::int32_t* number_units;  ///< [numbers, rounded up to a multiple of 16], sums for numbers
};

/// Step of a linear model over examples with rows of floats, or of bytes with x = scale * byte +
/// shift.
struct DenseLinear {
  LinearExamples of;
  const float* floats;        ///< features [rows, features]; null: bytes
  const std::uint8_t* bytes;  ///< features [rows, features]; null: floats
  float scale = 1.0f;
  float shift = 0.0f;
  int features;
  const float* weights;  ///< [features, rounded up to a multiple of 16]; the extra ones are finite
  /// [features, rounded up to a multiple of 16], sums; the extra ones are not changed.
  std::int32_t* units;
};

}  // namespace cudp

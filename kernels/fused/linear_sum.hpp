#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/contribution/contribution.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Largest number of examples per call of a linear model's kernel. Each example adds an integer of
/// magnitude up to kMaxUnits = 2^22 to a 32-bit sum, which must not overflow.
inline constexpr int kMaxLinearExamples = 256;

/// Statistics of a batch, which are private: sums of loss and gradient norm over examples with
/// finite gradients, the number of examples whose gradient was clipped, and the number of examples
/// whose gradient is not finite. `loss` and `norm` are both multiples of kTallyUnit.
struct LinearFacts {
  std::int64_t loss = 0;  ///< multiples of kTallyUnit
  std::int64_t norm = 0;
  std::int64_t clipped = 0;
  std::int64_t non_finite = 0;
};

/// Examples that a kernel for a linear model with one output adds in one call, at most
/// kMaxLinearExamples. For every example e < count, with its row x and score z = w x + b (w the
/// weights, b the bias), the kernel computes
///   d = derivative of the loss at z,
///   f = factor that clips a gradient of norm |(x, 1)| |d|, times the class weight.
/// It adds
///   units[j] += round(x(j) * d * f / grid) for each feature j,
///   *bias_unit += round(d * f / grid).
/// These sums of integers count multiples of `grid`, the power of two to whose multiples gradients
/// are rounded. The kernels for a general dense layer (AddOuter, AddCodedOuter) round in the same
/// way, so with the same z an example adds the same integers. An example whose gradient is not
/// finite adds nothing.
struct LinearExamples {
  const std::uint32_t* examples;   ///< [count], index of each example's row and label
  int count;                       ///< 0..kMaxLinearExamples
  const std::uint8_t* labels;      ///< labels of all rows, 0 or 1; not read if targets are set
  const float* targets = nullptr;  ///< targets of all rows if the loss has a target, else null
  float bias;
  Loss loss;                             ///< a loss of one output
  float huber = 1.0f;                    ///< h of the Huber loss
  const float* class_weights = nullptr;  ///< [2], each in 0..1, or null: no weights
  ClipSettings clip;                     ///< per_layer equals flat, as there is one layer
  float inverse_grid;
  std::int32_t* bias_unit;
  LinearFacts* facts = nullptr;  ///< sums that the call adds to; may be null
};

/// Arguments of a step of a linear model over examples whose rows are in the compact form of
/// CodedRows: numeric features as floats, one-hot features as codes, the indices of the features
/// that are 1.
struct CodedLinear {
  LinearExamples of;
  CodedRows rows;
  /// Weights of the features, followed by one 0, [features + 1]. The 0 is for the code `features`,
  /// which means that no feature of a one-hot group is 1.
  const float* weights;
  const float* number_weights;  ///< [numbers], the weight of each number's feature
  std::int32_t* units;  ///< [features + 1], sums for codes; the last is for codes of no feature
  std::int32_t* number_units;  ///< [numbers, rounded up to a multiple of 16], sums for numbers
};

/// Arguments of a step of a linear model over examples with rows of floats, or with rows of bytes
/// that stand for x = scale * byte + shift.
struct DenseLinear {
  LinearExamples of;
  const float* floats;        ///< features [rows, features]; null: bytes
  const std::uint8_t* bytes;  ///< features [rows, features]; null: floats
  float scale = 1.0f;
  float shift = 0.0f;
  int features;
  const float* weights;  ///< [features, rounded up to a multiple of 16]; the extra ones are finite
  /// Sums to which the kernel adds, one per feature; the array's length is rounded up to a multiple
  /// of 16, and the extra elements are not changed.
  std::int32_t* units;
};

}  // namespace cudp

#pragma once
#include <cstdint>

#include "kernels/common/coded_rows.hpp"
#include "kernels/contribution/contribution.hpp"
#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Numbers of units that 32 bits hold, each below kMaxUnits: so many examples a call.
inline constexpr int kMaxLinearExamples = 256;

/// Private sums over examples whose gradient is finite, as Diagnostics counts them, and the number
/// of the others.
struct LinearFacts {
  std::int64_t loss = 0;  ///< in units of kTallyUnit, as the norm
  std::int64_t norm = 0;
  std::int64_t clipped = 0;
  std::int64_t non_finite = 0;
};

/// Some examples of a step of a linear model with one output, whatever their rows are. For every
/// example e < count, x its row and z = w x + b,
///   d = the loss's derivative by z,  f = the clip factor of |(x, 1)| |d| times the label's weight,
///   units[j] += round(x(j) d f / grid) for each feature j,  *bias_unit += round(d f / grid),
/// with the roundings of a dense layer (AddOuter, CodedProduct): an example adds the same units
/// wherever z is the same. One that is not finite adds nothing.
struct LinearExamples {
  const std::uint32_t* examples;   ///< [count], numbers of rows
  int count;                       ///< 0..kMaxLinearExamples
  const std::uint8_t* labels;      ///< of all rows, 0 or 1; not read where there are targets
  const float* targets = nullptr;  ///< of all rows, where the loss has a target; else null
  float bias;
  Loss loss;                             ///< of one output
  float huber = 1.0f;                    ///< h of Loss::huber
  const float* class_weights = nullptr;  ///< [2], each in 0..1, or null: no weights
  ClipSettings clip;                     ///< per_layer is as flat: there is one layer
  float inverse_grid;
  std::int32_t* bias_unit;
  LinearFacts* facts = nullptr;  ///< added to; null: not asked for
};

/// The sum over examples on coded rows.
struct CodedLinear {
  LinearExamples of;
  CodedRows rows;
  const float* weights;         ///< [features + 1]; the last, of no feature, is 0
  const float* number_weights;  ///< [numbers], the weight of each number
  std::int32_t* units;          ///< [features + 1], codes' sums; the last is no feature's
  std::int32_t* number_units;   ///< [numbers, up to a multiple of 16]
};

/// The sum over examples on rows of floats, or of bytes of which x = scale * byte + shift.
struct DenseLinear {
  LinearExamples of;
  const float* floats;        ///< [rows, features]; null: bytes
  const std::uint8_t* bytes;  ///< [rows, features]; null: floats
  float scale = 1.0f;
  float shift = 0.0f;
  int features;
  const float* weights;  ///< [features, up to a multiple of 16], the last ones anything finite
  std::int32_t* units;   ///< [features, up to a multiple of 16]; nothing is added to the last ones
};

}  // namespace cudp

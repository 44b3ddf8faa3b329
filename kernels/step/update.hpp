#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/step/packed_image.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// One optimizer step with the mean gradient g = released[j] * inverse_batch of each parameter
/// theta. lr is the learning rate, m and v are the parameter's moments, momentum, beta1 and beta2
/// their coefficients (OptimizerSettings).
///   sgd: theta -= lr g.
///   momentum: m = momentum m + g, theta -= lr m.
///   nesterov: m as for momentum, theta -= lr (g + momentum m).
///   adam: m and v are moving averages of g and g^2 with decay rates beta1 and beta2; m^ and v^ are
///   m and v after bias correction; theta -= lr m^ / (sqrt(v^) + epsilon).
///   adamw: theta -= lr weight_decay theta, then as adam.
/// All except adamw first add weight_decay theta to g. Then, if an average is kept, average =
/// ema_decay average + (1 - ema_decay) theta.
struct UpdateArgs {
  const float* released;  ///< [d], noisy sum of the batch's gradients
  float* parameters;      ///< [d], read and written
  float* moment1;         ///< [d]; null for sgd
  float* moment2;         ///< [d]; null unless adam or adamw
  float* average;         ///< [d]; null if not kept
  std::int64_t begin;     ///< first parameter to update
  std::int64_t end;       ///< one past the last, <= d
  OptimizerSettings optimizer;
  StepScalars scalars;
  // For coordinate-wise clipping (coordinates_math.hpp): the sum is of transformed gradients, g is
  // scale released / b + m, and m and s are updated after the step. Otherwise mean, deviation and
  // scale are null.
  float* mean = nullptr;  ///< [d], AdaCliP's mean m of each gradient coordinate; null for others
  float* deviation = nullptr;  ///< [d], AdaCliP's standard deviation s of each gradient coordinate
  const CoordinateScale* scale = nullptr;
  CoordinateSettings coordinates = {};
  PackedImage packed = {};  ///< packed copy of the parameters, updated too, if there is one
  /// Factor on the learning rate of each of the d parameters, [d]; null: all are 1. CUDA only.
  const float* rates = nullptr;
};

/// Throws std::invalid_argument, with the name of the member, if a member is missing or out of
/// range.
void validate(const UpdateArgs& args);

}  // namespace cudp

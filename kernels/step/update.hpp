#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates_math.hpp"
#include "kernels/step/packed_image.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// One optimizer step with a released gradient g = released[j] * inverse_batch. sgd: theta -= lr g.
/// momentum: m = momentum m + g, theta -= lr m. nesterov: the same m, theta -= lr (g + momentum m).
/// adam: m, v moments with bias correction, theta -= lr m^ / (sqrt(v^) + epsilon). Then average =
/// ema_decay average + (1 - ema_decay) theta, if kept.
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
  // If the sum is of transformed gradients (coordinates_math.hpp), g is scale released / b + m, and
  // m and s are updated after the step. Otherwise all three pointers are null.
  float* mean = nullptr;       ///< [d], m
  float* deviation = nullptr;  ///< [d], s
  const CoordinateScale* scale = nullptr;
  CoordinateSettings coordinates = {};
  PackedImage packed = {};  ///< packed copy of the parameters, updated too, if there is one
  /// Factor of each parameter's learning rate, [d]; null: all are 1. CUDA only.
  const float* rates = nullptr;
};

/// Throws std::invalid_argument naming the member that is missing or out of range.
void validate(const UpdateArgs& args);

}  // namespace cudp

#pragma once
#include <cstdint>

#include "kernels/contribution/coordinates.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

enum class OptimizerKind { sgd, momentum, nesterov, adam, adamw };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;  ///< momentum and nesterov
  float beta1 = 0.9f;     ///< adam and adamw
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  /// Added to the released gradient as decay * theta; decoupled in adamw.
  float weight_decay = 0.0f;
};

/// The numbers of one step that are known before it runs. All of them are public.
struct StepScalars {
  float learning_rate;
  float noise_std;      ///< on the sum of clipped gradients, per coordinate
  float inverse_batch;  ///< 1 / expected batch size
  float bias1;          ///< 1 / (1 - beta1^t) and 1 / (1 - beta2^t) for adam and adamw, else 1
  float bias2;
  /// This step's weight of the old average, after warm-up; unused without average.
  float ema_decay;
};

/// The release of a sum of clipped gradients: released[j] = grid (S_j + K_j), S_j = sum[where[j]],
/// K_j rounded normal number j of `noise` with s = noise_std / grid (random/rounded_normal.hpp),
/// all integers modulo 2^64. It is the continuous Gaussian mechanism's output S + noise_std Z,
/// rounded to the grid.
struct ReleaseSum {
  const std::int64_t* sum;    ///< in units of the grid, in the engine's own order
  const std::int32_t* where;  ///< [d], position of parameter j in sum; null: the same order
  double grid;                ///< a power of two
  float noise_std;            ///< 0 for none; else in 2^16 to 2^40 units
  RandomStream noise;
  std::int64_t begin;  ///< first parameter, a multiple of 256
  std::int64_t end;    ///< one past the last
  float* released;     ///< [d], rounded to float
};

/// One optimizer step on a released gradient g = released[j] * inverse_batch.
/// sgd: theta -= lr g. momentum: m = momentum m + g, theta -= lr m. nesterov: the same, theta -= lr
/// (g + momentum m). adam: m, v moments with bias correction, theta -= lr m^ / (sqrt(v^) +
/// epsilon). Then average = ema_decay average + (1 - ema_decay) theta, if kept.
struct UpdateArgs {
  const float* released;  ///< [d], see ReleaseSum
  float* parameters;      ///< [d], read and written
  float* moment1;         ///< [d]; null for sgd
  float* moment2;         ///< [d]; null unless adam or adamw
  float* average;         ///< [d]; null if not kept
  std::int64_t begin;     ///< first parameter to update
  std::int64_t end;       ///< one past the last, <= d
  OptimizerSettings optimizer;
  StepScalars scalars;
  // Where the sum is of transformed gradients (coordinates.hpp), g is scale released / b + m
  // instead, and updates m and s after the step. Otherwise null.
  float* mean = nullptr;       ///< [d], m
  float* deviation = nullptr;  ///< [d], s
  const CoordinateScale* scale = nullptr;
  CoordinateSettings coordinates = {};
};

/// Throws std::invalid_argument unless noise_std is 0 or 2^16 to 2^40 units.
void check_noise(double grid, float noise_std);
/// Throw std::invalid_argument naming the member that is missing or out of range.
void validate(const ReleaseSum& args);
void validate(const UpdateArgs& args);

}  // namespace cudp

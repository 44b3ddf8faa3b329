#pragma once
// A step as a value: who is drawn, what each example adds to the sum, how large the step is, and
// what the optimizer makes of the released gradient. Engines read it; a method makes it, with its
// paper's formula above each field.
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// Every example is drawn independently with probability threshold / 2^32, threshold in 0..2^32.
/// An empty batch is legal.
struct Poisson {
  std::uint64_t threshold = 0;
  bool operator==(const Poisson&) const = default;
};

/// Every example is drawn independently with a probability of its own, by the norm last seen
/// (contribution/importance.hpp). All candidates' norms are kept.
struct Candidates {
  ImportanceRule rule = {};
  bool operator==(const Candidates&) const = default;
};

using Draw = std::variant<Poisson, Candidates>;

/// Step sizes that fall with the gradients released so far (step_size.hpp).
struct StepSizeSettings {
  double weight = 1.0;       ///< beta_t = max(weight / (1 + t % period), 1); >= 0
  std::uint64_t period = 1;  ///< steps, > 0
  double min_growth = 1e-5;  ///< nu, > 0
  bool operator==(const StepSizeSettings&) const = default;
};

enum class OptimizerKind { sgd, momentum, nesterov, adam, adamw };

/// Whether an optimizer keeps TrainState::moment1: a momentum buffer or a first moment.
CUDP_HD constexpr bool has_first_moment(OptimizerKind kind) { return kind != OptimizerKind::sgd; }
/// Whether it keeps TrainState::moment2, and so corrects the bias of both.
CUDP_HD constexpr bool has_second_moment(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
}

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;  ///< momentum and nesterov
  float beta1 = 0.9f;     ///< adam and adamw
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  /// Added to the released gradient as decay * theta; decoupled in adamw.
  float weight_decay = 0.0f;
  bool keep_average = false;  ///< an EMA of the weights, TrainState::average
  bool operator==(const OptimizerSettings&) const = default;
};

struct StepRecipe {
  Draw draw = Poisson{};
  Contribution contribution = ClippedGradient{};
  std::optional<StepSizeSettings> step_size = std::nullopt;  ///< empty: as StepScalars has it
  OptimizerSettings optimizer = {};
  bool operator==(const StepRecipe&) const = default;
};
static_assert(std::is_trivially_copyable_v<StepRecipe>, "a rank or a device is sent it as bytes");

/// Whether both keep the same state: they draw and sum alike, and their optimizers have the same
/// moments.
bool keeps_the_same(const StepRecipe& a, const StepRecipe& b);

/// The numbers of one step that are known before it runs. All of them are public.
struct StepScalars {
  float learning_rate;  ///< with StepRecipe::step_size divided by b
  float noise_std;      ///< on the sum, per coordinate
  float inverse_batch;  ///< 1 / expected batch size
  float bias1;          ///< 1 / (1 - beta1^t) and 1 / (1 - beta2^t) for adam and adamw, else 1
  float bias2;
  /// This step's weight of the old average, after warm-up; unused without average.
  float ema_decay;
  /// C, finite and > 0; unused but for clipped gradients. The sum's grid follows it.
  float clip_norm;
};

/// Throws std::invalid_argument unless draw and contribution go together and all numbers are in
/// range.
void validate(const StepRecipe& recipe);
/// Checks a step's numbers; noise_std is 0 or 2^16 to 2^40 units of the grid.
void validate(const StepRecipe& recipe, const StepScalars& scalars);

}  // namespace cudp

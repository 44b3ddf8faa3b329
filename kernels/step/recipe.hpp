#pragma once
// How a training step works, as plain data: how examples are drawn, what each adds to the sum, the
// step size, and how the optimizer uses the released gradient. A training method creates it, and
// the engines execute it.
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"

namespace cudp {

/// Poisson sampling: every example is drawn independently with probability threshold / 2^32,
/// threshold in 0..2^32. The batch may be empty.
struct Poisson {
  std::uint64_t threshold = 0;
  bool operator==(const Poisson&) const = default;
};

/// Importance sampling (DPIS): every example is drawn independently, with a probability that
/// follows from the norm of its gradient when that was last computed. A drawn example is a
/// candidate: a second stage accepts or rejects it. The current norms of all drawn examples are
/// stored.
struct Candidates {
  ImportanceRule rule = {};
  bool operator==(const Candidates&) const = default;
};

/// Random allocation: in each epoch of `steps` steps every example is drawn in exactly one step.
/// All steps are equally likely, and the choice is independent of other examples and of other
/// epochs. Epoch number e consists of the steps with numbers from e * steps to e * steps + steps -
/// 1.
struct Allocation {
  std::uint64_t steps = 1;  ///< steps of an epoch, 1..2^24; public
  bool operator==(const Allocation&) const = default;
};

using Draw = std::variant<Poisson, Candidates, Allocation>;

/// Returns the probability with which a step draws an example. Returns 0 for importance sampling,
/// where the probability differs between examples. draw: how steps draw their batches.
inline double rate_of(const Draw& draw) {
  if (const auto* const poisson = std::get_if<Poisson>(&draw))
    return static_cast<double>(poisson->threshold) * 0x1p-32;
  const auto* const allocation = std::get_if<Allocation>(&draw);
  return allocation != nullptr ? 1.0 / static_cast<double>(allocation->steps) : 0.0;
}

/// Settings of an adaptive step size (AdaGrad-norm): the learning rate of step t is divided by b_t,
/// with b_t^2 = b_{t-1}^2 + max(beta_t |g_t|^2, nu). g_t is the mean gradient that step t releases,
/// beta_t its weight (`weight`, `period`) and nu the smallest growth (`min_growth`).
struct StepSizeSettings {
  /// weight of a step's squared norm: beta_t = max(weight / (1 + t % period), 1) at step t; >= 0
  double weight = 1.0;
  std::uint64_t period = 1;  ///< period of beta_t [steps], > 0
  double min_growth = 1e-5;  ///< nu, smallest growth of b_t^2 per step, > 0
  bool operator==(const StepSizeSettings&) const = default;
};

enum class OptimizerKind { sgd, momentum, nesterov, adam, adamw };

/// Returns whether an optimizer of this kind keeps a momentum buffer or a first moment
/// (TrainState::moment1).
CUDP_HD constexpr bool has_first_moment(OptimizerKind kind) { return kind != OptimizerKind::sgd; }
/// Returns whether an optimizer of this kind keeps a second moment (TrainState::moment2). Such
/// optimizers also correct the bias of both moments.
CUDP_HD constexpr bool has_second_moment(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
}

/// Kind and constants of the optimizer that updates the parameters from the released gradient
/// (UpdateArgs has the formulas).
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;  ///< coefficient of momentum and nesterov
  float beta1 = 0.9f;     ///< decay rate of the first moment, for adam and adamw
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  /// Weight decay: weight_decay * theta, with theta the parameter, is added to the released
  /// gradient; in adamw the parameter is decayed directly instead (decoupled weight decay).
  float weight_decay = 0.0f;
  bool keep_average = false;  ///< keep a moving average of the parameters (TrainState::average)
  bool operator==(const OptimizerSettings&) const = default;
};

/// Settings that consecutive steps of a run share: how a batch is drawn, what an example adds to
/// the sum, and how the released sum updates the parameters. The numbers that differ from step to
/// step are in StepScalars.
struct StepRecipe {
  Draw draw = Poisson{};
  Contribution contribution = ClippedGradient{};
  /// Settings of the adaptive step size; if empty, StepScalars::learning_rate is used as it is.
  std::optional<StepSizeSettings> step_size = std::nullopt;
  OptimizerSettings optimizer = {};
  bool operator==(const StepRecipe&) const = default;
};
static_assert(std::is_trivially_copyable_v<StepRecipe>, "a rank or a device is sent it as bytes");

/// Returns whether a run can switch from recipe a to recipe b and keep its state. That requires the
/// same kind of draw, the same kind of contribution, and optimizers that keep the same moments.
bool keeps_the_same(const StepRecipe& a, const StepRecipe& b);

/// Numbers of a single step, such as the learning rate, that are known before the step runs. All of
/// them are public.
struct StepScalars {
  /// learning rate; divided by b_t (StepSizeSettings) if StepRecipe::step_size is set
  float learning_rate;
  float noise_std;      ///< standard deviation of the noise on each coordinate of the sum
  float inverse_batch;  ///< 1 / expected batch size
  float bias1;          ///< 1 / (1 - beta1^t) and 1 / (1 - beta2^t) for adam and adamw, else 1
  float bias2;
  /// Weight of the old value in the moving average of the parameters at this step. Not used if no
  /// average is kept.
  float ema_decay;
  /// Clipping norm C, finite and > 0. The grid, the power of two to whose multiples gradients are
  /// rounded, follows from it. Used only if the contribution is a ClippedGradient.
  float clip_norm;
};

/// Throws std::invalid_argument if the recipe's draw and contribution do not fit each other, or a
/// number is out of range.
void validate(const StepRecipe& recipe);
/// Throws std::invalid_argument if one of `scalars`, the scalars of a step, is out of range for
/// `recipe`. noise_std must be 0, or 2^16 to 2^40 times the grid, the power of two to whose
/// multiples the sum is rounded.
void validate(const StepRecipe& recipe, const StepScalars& scalars);

}  // namespace cudp

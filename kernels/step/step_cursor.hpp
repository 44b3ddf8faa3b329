#pragma once
#include "kernels/common/host_device.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/step/clip_rule.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// Numbers of a step that the host lists before a run: all that differs between steps of one
/// recipe.
struct ListedStep {
  StepScalars scalars;
  SumScale scale;
  // Used if the clipping norm is adaptive (clip_rule.hpp). begin_step() then writes the two
  // members above for every step but the first, from the previous step's noisy_count.
  std::int64_t count_noise = 0;  ///< multiples of ClipRule::grid
  std::int64_t noisy_count = 0;  ///< written by finish_kernel
};

/// Position of a run, in device memory, so that one recorded step can be replayed for all steps.
/// The host writes it before a run's first step and reads it after the last. In between, the
/// kernels of the steps write it. No kernel both reads and writes a member that other blocks of it
/// use.
///
/// A step that cannot be finished stops the run. begin_step() starts no step while
/// `pending`, `crowded` or `failed` is not 0, and every later launch finds `active` 0, or an empty
/// batch, and does nothing.
struct StepCursor {
  std::uint64_t first = 0;    ///< number of the run's first step
  std::uint32_t end = 0;      ///< number of steps of the run
  std::uint32_t index = 0;    ///< number of steps started
  std::uint32_t failed = 0;   ///< kBatchFailed, kTailFailed, kNotDrawn, or 0
  std::uint32_t pending = 0;  ///< pairs of the current step's noise that the host must compute
  std::uint32_t crowded = 0;  ///< size of a batch that exceeds the launches' capacity; not started
  std::uint32_t active = 0;   ///< the current launches belong to a step that is taken
  std::uint32_t follows = 0;  ///< whether the clipping norm is adaptive, by `clip`
  // Members for steps whose update is a separate launch (step_size.hpp):
  std::uint32_t due = 0;   ///< the current step's update is outstanding
  std::uint32_t tail = 0;  ///< the update may run: everything is released, and its norm is known
  float used_rate = 0.0f;  ///< learning rate of the last update
  double step_size_sum = 0.0;  ///< b^2 before the update
  std::uint64_t step = 0;      ///< number of the current step
  StepScalars scalars = {};    ///< scalars of the current step
  SumScale scale = {};
  ImportanceRule candidates = {};  ///< rule of all steps of the run, if candidates are drawn
  ClipRule clip = {};        ///< rule of all steps of the run, if the clipping norm is adaptive
  std::uint64_t halves = 0;  ///< halves_of the tally before the current step
};

/// Value of StepCursor::failed: a batch was larger than its capacity.
inline constexpr std::uint32_t kBatchFailed = 1;
/// Value of StepCursor::failed: a step was started before the previous one's update. It indicates a
/// bug.
inline constexpr std::uint32_t kTailFailed = 2;

/// Value of StepCursor::failed: the batch of a step is not among those drawn ahead. It indicates a
/// bug.
inline constexpr std::uint32_t kNotDrawn = 3;

/// Returns whether a recorded step must do nothing. Called before begin_step() advances the cursor.
CUDP_HD bool halts(const StepCursor& c) {
  return c.pending != 0 || c.crowded != 0 || c.failed != 0 || c.index >= c.end;
}

}  // namespace cudp

#pragma once
#include "kernels/common/host_device.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/step/clip_rule.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// Values of one step that may differ between the steps of a run. Before the run the host writes a
/// list of them to device memory, one entry per step.
struct ListedStep {
  StepScalars scalars;
  SumScale scale;
  // count_noise and noisy_count are used if the clipping norm is adaptive (clip_rule.hpp).
  // begin_step() then overwrites `scalars` and `scale` of every step but the first, from the
  // previous step's noisy_count.
  /// Noise that is added to the step's count of unclipped gradients, as a multiple of
  /// ClipRule::grid.
  std::int64_t count_noise = 0;
  /// The step's count of unclipped gradients plus count_noise, as a multiple of ClipRule::grid.
  /// Written by the device when the step is finished.
  std::int64_t noisy_count = 0;
};

/// Progress of a run of steps, in device memory. Kernels read all numbers that differ between steps
/// from it, so one step can be recorded as a CUDA graph and replayed for all steps. The host writes
/// the progress before a run's first step and reads it after the last one; in between, only kernels
/// write it. No kernel writes a member that another of its blocks reads, with one exception: the
/// last block of a launch starts the next step after all other blocks are done (start_next_step()).
///
/// A step that cannot be finished stops the run: no further step is started while `pending`,
/// `oversized_batch` or `failed` is not 0. All launches that follow find that `active` is 0, or
/// that the batch is empty, and do nothing.
struct StepCursor {
  std::uint64_t first = 0;   ///< number of the run's first step
  std::uint32_t end = 0;     ///< number of steps of the run
  std::uint32_t index = 0;   ///< number of steps started
  std::uint32_t failed = 0;  ///< 0, or the error: kBatchFailed, kUpdateMissing or kNotDrawn
  /// Number of pairs of noise numbers of the current step that the host must compute, because
  /// double precision is too coarse to round them.
  std::uint32_t pending = 0;
  /// Size of a batch that is larger than the recorded launches can process, so its step was not
  /// started; 0 if there is none.
  std::uint32_t oversized_batch = 0;
  /// 1 while a step is executed; 0 if the launches that run now must do nothing.
  std::uint32_t active = 0;
  /// Number of blocks of the current launch that have finished. The last one starts the next step
  /// (start_next_step()). Used only by launches that do so.
  std::uint32_t blocks_done = 0;
  std::uint32_t adapts_clip_norm = 0;  ///< 1 if the clipping norm is adaptive, by the rule `clip`
  // Members for steps whose update is a separate launch, which runs after the norm of the released
  // gradient is known (step_size.hpp).
  std::uint32_t awaits_update = 0;  ///< 1 while the current step's update is outstanding
  /// 1 if the update of the parameters may run: the whole gradient is released, and its norm is
  /// known. Otherwise 0.
  std::uint32_t may_update = 0;
  float used_rate = 0.0f;  ///< learning rate of the last update
  /// b^2 before the update, with b the number by which the adaptive step size (StepSizeSettings)
  /// divides the learning rate
  double step_size_sum = 0.0;
  std::uint64_t step = 0;          ///< number of the current step
  StepScalars scalars = {};        ///< scalars of the current step
  SumScale scale = {};             ///< clipping norm and grid of the current step
  ImportanceRule candidates = {};  ///< rule of importance sampling, if the run uses it
  ClipRule clip = {};              ///< rule of the clipping norm, if it is adaptive
  std::uint64_t halves = 0;        ///< halves_of() of all steps before the current one
};

/// Error in StepCursor::failed: a batch was larger than the list in device memory for its examples.
inline constexpr std::uint32_t kBatchFailed = 1;
/// Error in StepCursor::failed: a step was started before the previous step had updated the
/// parameters. Only a bug can cause it.
inline constexpr std::uint32_t kUpdateMissing = 2;

/// Error in StepCursor::failed: the batch of a step is not among those that were drawn ahead. Only
/// a bug can cause it.
inline constexpr std::uint32_t kNotDrawn = 3;

/// Returns whether the launches of the next step must do nothing: the run is stopped, or all its
/// steps have been started. Call before begin_step() advances the cursor. c: the run's progress.
CUDP_HD bool halts(const StepCursor& c) {
  return c.pending != 0 || c.oversized_batch != 0 || c.failed != 0 || c.index >= c.end;
}

}  // namespace cudp

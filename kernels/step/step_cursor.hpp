#pragma once
#include "kernels/common/host_device.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/contribution/sum_scale.hpp"
#include "kernels/step/clip_rule.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// What the host says of a step before a run: all that differs between steps of one recipe.
struct ListedStep {
  StepScalars scalars;
  SumScale scale;
  // Where the clipping norm moves (clip_rule.hpp). `place` writes the two above of every step but
  // the first, by what the step before it has left here.
  std::int64_t count_noise = 0;  ///< in units of ClipRule::grid
  std::int64_t noisy_count = 0;  ///< written by `finish`
};

/// The position of a run, on the device, so that one recorded step can be replayed for all of them.
/// The host writes it before a run's first step and reads it after the last; in between the kernels
/// of the steps do, and no kernel both reads and writes a member that other blocks of it use.
///
/// A step that cannot be finished stops the run: `place` begins no step while `pending`, `crowded`
/// or `failed` is not 0, and every later launch finds `active` 0, or an empty batch, and does
/// nothing.
struct StepCursor {
  std::uint64_t first = 0;    ///< number of the run's first step
  std::uint32_t end = 0;      ///< steps of the run
  std::uint32_t index = 0;    ///< steps begun
  std::uint32_t failed = 0;   ///< why the run cannot go on: kBatchFailed, kTailFailed, or 0
  std::uint32_t pending = 0;  ///< pairs of the present step's noise that the host has to make
  std::uint32_t crowded =
      0;  ///< examples of a batch that was not begun: the launches have less room
  std::uint32_t active = 0;   ///< the present launches are of a step, and not of one left out
  std::uint32_t follows = 0;  ///< whether the clipping norm moves, by `clip`
  // Of steps whose update is a launch of its own (step_size.hpp):
  std::uint32_t due = 0;       ///< the present step's update has not been made
  std::uint32_t tail = 0;      ///< it may be made: everything is released, and its norm known
  float used_rate = 0.0f;      ///< learning rate of the last update
  double step_size_sum = 0.0;  ///< b^2 before it
  std::uint64_t step = 0;      ///< number of the present step
  StepScalars scalars = {};    ///< of the present step, and the next
  SumScale scale = {};
  ImportanceRule candidates = {};  ///< of all steps of the run, where candidates are drawn
  ClipRule clip = {};              ///< of all steps of the run, where the clipping norm moves
  std::uint64_t halves = 0;        ///< halves_of what was counted before the present step
};

/// StepCursor::failed: a batch was larger than its capacity.
inline constexpr std::uint32_t kBatchFailed = 1;
/// A step was begun before the last one's update. No run gets there.
inline constexpr std::uint32_t kTailFailed = 2;

/// Whether a recorded step is to do nothing. Read before `place` moves the cursor.
CUDP_HD bool halts(const StepCursor& c) {
  return c.pending != 0 || c.crowded != 0 || c.failed != 0 || c.index >= c.end;
}

}  // namespace cudp

#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/step/recipe.hpp"

namespace cudp {

/// The position of a run, on the device, so that one recorded step can be replayed for all of them.
struct StepCursor {
  std::uint64_t first;   ///< number of the run's first step
  std::uint32_t index;   ///< steps begun
  std::uint32_t failed;  ///< some batch was larger than its capacity
  std::uint64_t step;    ///< number of the present step
  StepScalars scalars;   ///< of the present step
};

/// Moves on to the next step: its number, and its scalars out of list [steps of the run].
struct BeginStep {
  StepCursor* cursor;
  const StepScalars* list;
};

/// Notes that more examples were drawn than the recorded step has room for; the run fails at its
/// end.
struct WatchBatch {
  StepCursor* cursor;
  const std::uint32_t* count;
  std::uint32_t capacity;
};

inline void validate(const BeginStep& a) { expect(a.cursor && a.list, "step: expected pointers"); }
inline void validate(const WatchBatch& a) {
  expect(a.cursor && a.count, "watch: expected pointers");
}
inline LaunchShape launch_shape(const BeginStep&) {
  return {.grid = {}, .block = {}, .shared_bytes = 0};
}
inline LaunchShape launch_shape(const WatchBatch&) {
  return {.grid = {}, .block = {}, .shared_bytes = 0};
}

}  // namespace cudp

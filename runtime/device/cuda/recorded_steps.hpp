#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/ranked_sum.hpp"
#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Records a step as a CUDA graph and replays it for every step of a run. Keeps references to the
/// constructor arguments.
class RecordedSteps {
 public:
  RecordedSteps(EngineParts& parts, StepSum& sum)
      : p_(parts),
        sum_(sum),
        ranked_(parts.gpu, parts.settings, parts.end, parts.tally, parts.state.size()) {}

  /// Discards the recorded CUDA graphs. Call after another training set has been loaded.
  void reset();

  /// Allocates memory for micro-batches of `examples` examples.
  void reserve(std::int64_t examples);

  /// Runs steps.size() steps. cursor: has the values that are the same for all steps, and the
  /// number of the first step. steps: numbers of each step, such as learning rate and noise. If the
  /// clipping norm is adaptive, receives those that the device computed, and the noisy counts.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Returns the statistics of training since the last call, and clears them.
  Diagnostics take_diagnostics();

 private:
  struct Recorded {
    StepRecipe recipe;      ///< without the numbers that recorded steps read from device memory
    std::int64_t capacity;  ///< largest batch that the recording can process
    /// One, or one for each buffer of streamed rows.
    std::vector<Gpu::Recording> recordings;
  };
  /// Recordings of a step if there are several ranks: one if the devices add up the ranks' sums,
  /// otherwise one before the host does so and one after. The first is there for each buffer of
  /// streamed rows.
  struct Joined {
    StepRecipe recipe;
    std::vector<Gpu::Recording> first;
    std::optional<Gpu::Recording> second;
  };

  bool is_alone() const { return p_.settings.ranks->alone(); }
  /// Returns the capacity with which a step is recorded [examples]. A larger capacity costs little,
  /// because blocks without examples return at once.
  std::int64_t capacity_for(const StepRecipe& recipe) const;
  void launch_step(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows);
  /// Records work(rows) for all rows, or for each buffer of streamed rows.
  std::vector<Gpu::Recording> record_for_rows(const StepRecipe& recipe,
                                              const std::function<void(const StepRows&)>& work);
  /// Replays recordings of steps first, first + 1, ..., as many of them as are drawn at a time, at
  /// most `steps`. Returns their number.
  std::size_t replay_streamed(const StepRecipe& recipe, std::uint64_t first, std::size_t steps);
  /// Allocates memory for drawing the batches of several steps at once, if they do not depend on
  /// earlier steps.
  void prepare_ahead(const StepRecipe& recipe);
  /// Records the launches of a step as a CUDA graph, unless there is a recording of the same recipe
  /// that can process batches as large as those seen so far.
  void record(const StepRecipe& recipe);
  void record_joined(const StepRecipe& recipe);
  void run_alone(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);
  /// Runs steps whose sums are added up over ranks, by the devices or by the host. Waits for each
  /// step: noise that only the host can round must be complete before the next sum.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps);

  EngineParts& p_;
  StepSum& sum_;
  std::int64_t capacity_ = 0;  // smallest capacity that the batches seen so far require [examples]
  std::optional<DrawnAhead>
      ahead_;  // batches of several steps, drawn at once; recorded_ reads them
  std::optional<Recorded> recorded_;
  std::optional<Joined> joined_;
  RankedSum ranked_;  // used with several ranks
};

}  // namespace cudp::cuda::inline CUDP_SIMT

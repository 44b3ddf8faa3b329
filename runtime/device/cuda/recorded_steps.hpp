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

/// Records (captures) a training step as a CUDA graph and replays it for every step of a run. Keeps
/// references to the constructor's arguments.
class RecordedSteps {
 public:
  RecordedSteps(EngineParts& parts, StepSum& sum)
      : p_(parts),
        sum_(sum),
        ranked_(parts.gpu, parts.settings, parts.end, parts.tally, parts.state.size()) {}

  /// Discards the recorded CUDA graphs. Call after another training set has been loaded.
  void reset();

  /// Allocates memory for steps of `examples` examples, and discards the recorded CUDA graph if
  /// memory has moved.
  void reserve(std::int64_t examples);

  /// Runs steps.size() steps. cursor: the number of the first step, and the values that are the
  /// same for all. steps: the scalars of each step, such as learning rate and noise. If the
  /// clipping norm is adaptive, the device's clipping norms and noisy counts of unclipped gradients
  /// are written to it.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Returns the statistics of training since the last call, and clears them.
  Diagnostics take_diagnostics();

 private:
  struct Recorded {
    StepRecipe recipe;      ///< without the numbers that a CUDA graph reads from device memory
    std::int64_t capacity;  ///< largest batch that the CUDA graph can process [examples]
    /// CUDA graphs of the step: one, or one for each buffer of streamed rows.
    std::vector<Gpu::Recording> recordings;
  };
  /// CUDA graphs of a step if there are several ranks. If the devices add up the ranks' sums,
  /// `first` is the whole step. Otherwise `first` ends before the host adds them, and `second` is
  /// the rest. `first` has one graph, or one for each buffer of streamed rows.
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
  /// Records the launches of work(rows) as one CUDA graph, or, if rows are streamed from the host,
  /// as one for each buffer of rows.
  std::vector<Gpu::Recording> record_for_rows(const StepRecipe& recipe,
                                              const std::function<void(const StepRows&)>& work);
  /// Replays the CUDA graph for steps first, first + 1, ... whose rows fit one buffer, at most
  /// `steps` of them. Returns their number.
  std::size_t replay_streamed(const StepRecipe& recipe, std::uint64_t first, std::size_t steps);
  /// Allocates `ahead_`, memory in which the batches of several steps are drawn at once. Leaves it
  /// empty for importance sampling, where a batch depends on earlier steps, and for streamed rows.
  void prepare_ahead(const StepRecipe& recipe);
  /// Records the launches of a step as a CUDA graph, unless there is one of the same recipe whose
  /// capacity suffices for the batches seen so far.
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

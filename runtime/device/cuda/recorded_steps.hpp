#pragma once
#include <cstdint>
#include <optional>
#include <span>

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

  /// Drops the recordings. Call after another training set has been loaded.
  void reset();

  /// Allocates memory for micro-batches of this many examples.
  void reserve(std::int64_t examples);

  /// Runs steps. cursor: the values that are the same for all steps, and the number of the first
  /// step. If the clipping norm is adaptive, `steps` receives the scalars and noisy counts that the
  /// device computed.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Returns the statistics of training since the last call, and clears them.
  Diagnostics take_diagnostics();

 private:
  struct Recorded {
    StepRecipe recipe;  ///< recipe, without the numbers that recorded steps read from device memory
    std::int64_t capacity;  ///< largest batch that the recording can process
    Gpu::Recording recording;
  };
  /// Recordings of a step of several ranks: one if the devices add up the sums, otherwise one
  /// before the sum over ranks and one after it.
  struct Joined {
    StepRecipe recipe;
    Gpu::Recording first;
    std::optional<Gpu::Recording> second;
  };

  bool is_alone() const { return p_.settings.ranks->alone(); }
  /// Returns the capacity that a recorded step needs, in examples. A larger capacity costs little,
  /// because blocks without examples return at once.
  std::int64_t capacity_for(const StepRecipe& recipe) const;
  void launch_step(const StepRecipe& recipe, std::int64_t capacity);
  /// Allocates memory for batches drawn ahead, if the recipe's do not depend on earlier steps.
  void prepare_ahead(const StepRecipe& recipe);
  /// Records a step unless it is recorded already with enough capacity.
  void record(const StepRecipe& recipe);
  void record_joined(const StepRecipe& recipe);
  void run_alone(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);
  /// Runs steps whose sums are added up over ranks, by the devices or by the host (Joined). Waits
  /// for each step, because a step with an undecided pair of normals must be completed before the
  /// next sum over ranks begins.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps);

  EngineParts& p_;
  StepSum& sum_;
  std::int64_t capacity_ = 0;        // smallest capacity that the batches seen so far require
  std::optional<DrawnAhead> ahead_;  // recorded_ reads it
  std::optional<Recorded> recorded_;
  std::optional<Joined> joined_;
  RankedSum ranked_;  // used with several ranks
};

}  // namespace cudp::cuda::inline CUDP_SIMT

#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/ranked_sum.hpp"
#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Steps that are recorded once and replayed. Keeps references to the constructor arguments.
class RecordedSteps {
 public:
  RecordedSteps(EngineParts& parts, StepSum& sum)
      : p_(parts),
        sum_(sum),
        ranked_(parts.gpu, parts.settings, parts.end, parts.tally, parts.state.size()) {}

  /// Drops the recordings. Call after another training set has been loaded.
  void start_anew();

  /// Allocates memory for micro-batches of this many examples.
  void reserve(std::int64_t examples);

  /// Runs steps. cursor: the values that are equal for all steps, and the number of the first step.
  /// If the clipping norm moves, `steps` receives what the device has made of them.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Returns the statistics of training and clears them.
  Diagnostics take_diagnostics();

 private:
  struct Recorded {
    StepRecipe recipe;  ///< recipe without the numbers in device memory
    std::int64_t room;  ///< largest number of examples of a batch
    Gpu::Recording recording;
  };
  /// A step of several ranks. It has two recordings, or one if the devices add up the sums.
  struct Joined {
    StepRecipe recipe;
    Gpu::Recording first;
    std::optional<Gpu::Recording> second;
  };

  bool is_alone() const { return p_.settings.ranks->alone(); }
  /// Capacity of a recorded step, in examples. Blocks without examples return at once.
  std::int64_t room_of(const StepRecipe& recipe) const;
  void launch_step(const StepRecipe& recipe, std::int64_t room);
  /// Allocates memory for batches drawn ahead, if the recipe's do not depend on earlier steps.
  void prepare_ahead(const StepRecipe& recipe);
  /// Records a step if it is not recorded yet.
  void record(const StepRecipe& recipe);
  void record_joined(const StepRecipe& recipe);
  void run_alone(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);
  /// Runs steps whose sums the ranks add up. With one recording the devices add up; with two the
  /// host does, between them. Either way it waits for each step: if a pair of normals is undecided,
  /// the next sum over ranks must not be made from the rest of this one.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps);

  EngineParts& p_;
  StepSum& sum_;
  std::int64_t room_ = 0;            // capacity that a batch has been found to need
  std::optional<DrawnAhead> ahead_;  // recorded_ reads it
  std::optional<Recorded> recorded_;
  std::optional<Joined> joined_;
  RankedSum ranked_;  // used with several ranks
};

}  // namespace cudp::cuda::inline CUDP_SIMT

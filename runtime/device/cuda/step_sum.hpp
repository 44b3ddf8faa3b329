#pragma once
#include <cstdint>
#include <functional>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// First half of a step: draws the batch and sums the contributions of its examples. Keeps a
/// reference to `parts`, the engine's parts.
class StepSum {
 public:
  explicit StepSum(EngineParts& parts) : p_(parts) {}

  SampleArgs sample_args(const Draw& draw) const;
  /// Begins the next step: writes its batch to `drawn`, ascending, and its numbers to the cursor.
  /// room: capacity of the next launches, in examples.
  void draw(const StepRecipe& recipe, std::int64_t room);
  /// The same, with a batch of `ahead`.
  void begin(const StepRecipe& recipe, std::int64_t room, const DrawnAhead& ahead);
  /// Adds up what the batch's examples contribute, in grid steps. The returned part has not been
  /// added yet. max_drawn: largest number of examples drawn.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn);
  /// Launches a step up to its sum and its tally, which are complete afterwards. Its capacity
  /// suffices for any batch, except with a probability below 1e-30.
  void launch(const StepRecipe& recipe);

 private:
  SampleSpace space_of(const StepRecipe& recipe, std::int64_t room) const;
  /// choose: launches the kernel that gives each example of a micro-batch its factor.
  Unfinished add_by_layers(std::int64_t max_drawn, const CoordinatesView* coordinates,
                           const std::function<void()>& choose);

  EngineParts& p_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

#pragma once
#include <cstdint>
#include <functional>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// A step up to its sum: the draw, and what the batch's examples add. Keeps a reference to the
/// parts.
class StepSum {
 public:
  explicit StepSum(EngineParts& parts) : p_(parts) {}

  SampleArgs sample_args(const Draw& draw) const;
  /// Begins the next step: its batch to `drawn`, ascending, its numbers to the cursor. room:
  /// examples that the next launches have room for.
  void draw(const StepRecipe& recipe, std::int64_t room);
  /// The sum of what the batch's examples add, in units of the grid, but for what is returned.
  /// max_drawn: examples that it has room for.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn);
  /// Launches all of a step up to its sum and its tally, which are complete then. There is memory
  /// for any batch, but for a probability below 1e-30.
  void launch(const StepRecipe& recipe);

 private:
  /// choose: launches what gives each example of a micro-batch its factor.
  Unfinished add_by_layers(std::int64_t max_drawn, const CoordinatesView* coordinates,
                           const std::function<void()>& choose);

  EngineParts& p_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

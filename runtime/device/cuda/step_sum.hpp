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
  /// Launches the start of the next step: writes its batch (indices of rows, in the order of
  /// examples) to EngineParts::drawn, and its numbers (learning rate, noise, ...) to the run's
  /// StepCursor. The batch is drawn now, or copied from rows.batches. capacity: that of the step's
  /// launches [examples].
  void begin(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows);
  /// Launches the sum of the contributions of the batch's examples, in multiples of its grid. The
  /// returned partial results are not part of the sum yet; StepEnd::finish() adds them. max_drawn:
  /// largest number of examples drawn.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn, const DeviceData& data);
  /// Launches a step up to its complete sum and statistics, with a capacity that suffices for any
  /// batch, except with a probability below 1e-30.
  void launch(const StepRecipe& recipe, const StepRows& rows);

 private:
  SampleSpace space_of(const StepRecipe& recipe, std::int64_t capacity) const;
  /// Launches the sum layer by layer, micro-batch by micro-batch. coordinates: arrays of
  /// coordinate-wise clipping, or null. choose: launches the kernel that computes the factor of
  /// each example.
  Unfinished add_by_layers(std::int64_t max_drawn, const DeviceData& data,
                           const CoordinatesView* coordinates, const std::function<void()>& choose);

  EngineParts& p_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

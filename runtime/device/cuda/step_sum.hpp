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
  /// examples) to EngineParts::drawn, and its scalars (learning rate, noise, ...) to the run's
  /// StepCursor. The batch is drawn now, or copied from rows.batches if that is set. capacity:
  /// largest batch that the step's launches can process [examples].
  void begin(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows);
  /// Launches the sum of the contributions of the batch's examples, into StepEnd::sum(). The
  /// returned partial results are not part of it yet; StepEnd::finish() adds them. max_drawn:
  /// largest possible number of examples in the batch.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn, const DeviceData& data);
  /// Launches a step up to its complete sum and statistics, before noise. The capacity of the
  /// launches is below the batch size with a probability below 1e-30.
  void launch(const StepRecipe& recipe, const StepRows& rows);

 private:
  SampleSpace space_of(const StepRecipe& recipe, std::int64_t capacity) const;
  /// Launches the sum with one kernel after another per layer, for networks without a fused kernel.
  /// coordinates: arrays of coordinate-wise clipping; null for other clipping. choose: launches the
  /// kernel that computes each example's clipping factor.
  Unfinished add_by_layers(std::int64_t max_drawn, const DeviceData& data,
                           const CoordinatesView* coordinates, const std::function<void()>& choose);

  EngineParts& p_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

#pragma once
#include <cstdint>
#include <functional>

#include "runtime/device/cuda/engine_parts.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// First half of a step: draws the batch and sums the contributions of its examples. Keeps a
/// reference to the parts of the engine.
class StepSum {
 public:
  explicit StepSum(EngineParts& parts) : p_(parts) {}

  SampleArgs sample_args(const Draw& draw) const;
  /// Call before step number `step` is launched or replayed, if it draws its batch on the device:
  /// AllocatedEpochs::prepare(). Returns how many steps, from `step` on, are prepared.
  std::size_t prepare_draw(const Draw& draw, std::uint64_t step);
  /// Launches the start of the next step: writes its batch (indices of rows, ascending) to
  /// EngineParts::drawn, and its scalars (learning rate, noise, ...) to the run's progress in
  /// device memory. The batch is drawn now, or, if rows.batches is set, copied from there.
  /// capacity: largest batch that the step's launches can process [examples].
  void begin(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows);
  /// Returns the arguments with which the last launch of a step also starts the next step, whose
  /// batch must be in rows.batches. Returns an empty struct if the last launch cannot start it: if
  /// each step draws its own batch, or if the update is a separate launch. capacity: largest batch
  /// that the step's launches can process [examples].
  NextStep next_step(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows) const;
  /// Launches the sum of the contributions of the batch's examples. The sum is complete only when
  /// the returned partial results are added to StepEnd::sum(), which StepEnd::finish() does.
  /// max_drawn: largest possible number of examples in the batch.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn, const DeviceData& data);
  /// Launches the part of a step before noise is added: draws the batch and computes its whole sum
  /// and the totals of losses, norms and counts. The probability that a batch is too large for the
  /// launches is below 1e-30.
  void launch(const StepRecipe& recipe, const StepRows& rows);

 private:
  SampleSpace space_of(const StepRecipe& recipe, std::int64_t capacity) const;
  /// Launches the sum for networks without a fused kernel, with separate kernels for each layer.
  /// coordinates: arrays of coordinate-wise clipping; null for other kinds of clipping. choose:
  /// launches the kernel that computes the factor by which each example's gradient is multiplied.
  /// max_drawn: largest possible number of examples in the batch.
  Unfinished add_by_layers(std::int64_t max_drawn, const DeviceData& data,
                           const CoordinatesView* coordinates, const std::function<void()>& choose);

  EngineParts& p_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

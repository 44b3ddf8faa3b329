#pragma once
// Second half of a step on the device: noise, release and update (kernels/step/finish.hpp). If
// double precision cannot decide how to round a pair of noise numbers, the host computes the pair.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/step/finish.hpp"
#include "kernels/step/step_size.hpp"
#include "kernels/step/tally.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/model_state.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Launches a kernel that adds the losses, gradient norms and counts of a micro-batch's examples to
/// the totals *batch.total.
void add_tally(Gpu& gpu, const TallyBatch& batch);

/// Launches a kernel of this project that adds up the stored gradient norms. For builds without the
/// CUB library.
void total_norms_by_kernel(Gpu& gpu, const NormTotal& a);

/// Second half of a step: adds noise to the sum of the batch's contributions, and updates the
/// parameters with the noisy sum. Owns the sum in device memory.
class StepEnd {
 public:
  /// Allocates the sum. state: the model's parameters and optimizer state on the device. cursor:
  /// device address of the progress of the run. list: device address of the list of the steps'
  /// scalars.
  StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list);

  /// Returns the device address of the current step's sum of contributions, [d]. Its elements are
  /// integers: multiples of the grid, the power of two to whose multiples every contribution is
  /// rounded. The sum is 0 at the beginning of a step, and kernels add to it.
  FixedPoint* sum() const { return sum_.get(); }
  std::vector<FixedPoint> download_sum() const { return sum_.download(state_.size()); }
  /// Number of 64-bit words that follow the sum in memory and are added up over ranks (processes)
  /// together with it: the step's totals of losses, norms and counts.
  static constexpr std::size_t kRankWords = sizeof(Tally) / sizeof(FixedPoint);
  FixedPoint* rank_words() const { return sum_.get() + state_.size(); }
  std::vector<FixedPoint> download_rank_words() const;
  void upload_sum(std::span<const FixedPoint> sum) { sum_.upload(sum); }
  void clear_sum() { sum_.clear(); }

  /// Returns a host copy of the noisy sum that the step released, [d]. The sum is stored only if
  /// has_separate_update(recipe), or if finish() was called with is_shown.
  std::vector<float> download_released() const { return released_.download(); }
  void upload_released(const std::vector<float>& values) { released_.upload(values); }

  /// Returns whether the parameters are updated by a separate launch after the sum has been
  /// released. This is necessary with an adaptive step size, because it depends on the norm of the
  /// whole released gradient.
  static bool has_separate_update(const StepRecipe& recipe) { return recipe.step_size.has_value(); }

  /// Launches the kernels that add noise to the current step's sum of contributions, which makes it
  /// safe to publish, and update the parameters with the noisy sum.
  ///
  /// noise: random stream; kernels replace its step number by the number of the current step.
  /// unfinished: partial results that must be added to the sum first. is_shown: whether the host
  /// reads the noisy sum; if so, the update is not launched, and the caller must call update().
  /// next: the step that the last kernel starts at its end; must be empty if is_shown or
  /// has_separate_update(recipe).
  void finish(const StepRecipe& recipe, const RandomStream& noise, const Unfinished& unfinished,
              bool is_shown, const NextStep& next = {});

  /// Launches the optimizer's update of the parameters with the released sum.
  void update(const StepRecipe& recipe);

  /// Completes a step that stopped because double precision was too coarse to round some of its
  /// noise numbers: computes these numbers on the host, and launches the rest of the step. at:
  /// progress of the run, read after the step. recipe, noise, is_shown: must be the arguments with
  /// which finish() was called.
  void complete(const StepCursor& at, const StepRecipe& recipe, const RandomStream& noise,
                bool is_shown);

 private:
  std::int64_t numbers() const { return static_cast<std::int64_t>(state_.size()); }

  FinishStep finish_args(const StepRecipe& recipe, const RandomStream& noise,
                         const Unfinished& unfinished, bool is_shown);

  ReleasedNorm released_norm() const;

  Gpu& gpu_;
  DeviceModelState& state_;
  StepCursor* cursor_;
  ListedStep* list_;
  Buffer<FixedPoint> sum_;           // [d + kRankWords]
  Buffer<std::uint32_t> undecided_;  // [words_of_pairs(d)], one bit per pair of noise numbers
  Buffer<DecidedPair> pairs_;        // pairs of noise numbers that the host has computed
  Buffer<float> released_;           // [d]
  Buffer<double> norm_parts_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

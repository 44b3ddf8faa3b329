#pragma once
// Second half of a step on the device: noise, release and update (kernels/step/finish.hpp). The
// host computes the pairs of normals that double precision cannot decide.
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

/// Launches the kernel that adds a batch's losses and norms to its total.
void add_tally(Gpu& gpu, const TallyBatch& batch);

/// Computes Gpu::total_norms() by this library's own kernel, for builds without CUB.
void total_norms_by_kernel(Gpu& gpu, const NormTotal& a);

class StepEnd {
 public:
  /// cursor, list: those of RunPosition.
  StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list);

  /// Returns the sum of the current step, [d], in grid steps. Kernels add contributions to it; it
  /// is 0 at the beginning of a step.
  FixedPoint* sum() const { return sum_.get(); }
  std::vector<FixedPoint> download_sum() const { return sum_.download(state_.size()); }
  /// Number of 64-bit words that follow the sum and are added up over ranks with it: a tally.
  static constexpr std::size_t kRankWords = sizeof(Tally) / sizeof(FixedPoint);
  FixedPoint* rank_words() const { return sum_.get() + state_.size(); }
  std::vector<FixedPoint> download_rank_words() const;
  void upload_sum(std::span<const FixedPoint> sum) { sum_.upload(sum); }
  void clear_sum() { sum_.clear(); }

  /// Returns the released values [d]. Requires a step whose update is a separate launch.
  std::vector<float> download_released() const { return released_.download(); }
  void upload_released(const std::vector<float>& values) { released_.upload(values); }

  /// Returns whether the update is a separate launch after the release, because it needs the norm
  /// of the whole released gradient.
  static bool has_tail(const StepRecipe& recipe) { return recipe.step_size.has_value(); }

  /// Launches noise, release and update of the current step. noise: random stream; the cursor gives
  /// its step. is_shown: launches no update, so that the host can read the released values and then
  /// call update().
  void finish(const StepRecipe& recipe, const RandomStream& noise, const Unfinished& left,
              bool is_shown);

  /// Launches the optimizer's update with the released values.
  void update(const StepRecipe& recipe);

  /// Computes on the host the pairs of normal numbers whose rounding a step left undecided, and
  /// launches the rest of the step. at: the cursor after that step. The other arguments are those
  /// of finish().
  void complete(const StepCursor& at, const StepRecipe& recipe, const RandomStream& noise,
                bool is_shown);

 private:
  std::int64_t numbers() const { return static_cast<std::int64_t>(state_.size()); }

  FinishStep finish_args(const StepRecipe& recipe, const RandomStream& noise,
                         const Unfinished& left, bool is_shown);

  ReleasedNorm released_norm() const;

  Gpu& gpu_;
  DeviceModelState& state_;
  StepCursor* cursor_;
  ListedStep* list_;
  Buffer<FixedPoint> sum_;           // [d + kRankWords]
  Buffer<std::uint32_t> undecided_;  // one bit per pair
  Buffer<DecidedPair> pairs_;        // pairs that the host has computed
  Buffer<float> released_;           // [d]
  Buffer<double> norm_parts_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

#pragma once
// Second half of a step on the device: noise, release and update (kernels/step/finish.hpp). Where
// double precision is too coarse to round a pair of noise numbers, the host computes it.
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

/// Launches the kernel that adds a micro-batch's losses, norms and counts to the totals
/// *batch.total.
void add_tally(Gpu& gpu, const TallyBatch& batch);

/// Adds the stored gradient norms (NormTotal) up with a kernel of this project, for builds without
/// CUB.
void total_norms_by_kernel(Gpu& gpu, const NormTotal& a);

class StepEnd {
 public:
  /// cursor, list: progress of the run and the scalars of its steps, in device memory
  /// (RunPosition).
  StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list);

  /// Returns the device address of the current step's sum of contributions, [d]. It is stored as
  /// integers, in multiples of the grid to which every contribution is rounded (SumScale::grid).
  /// Kernels add to it; it is 0 at the beginning of a step.
  FixedPoint* sum() const { return sum_.get(); }
  std::vector<FixedPoint> download_sum() const { return sum_.download(state_.size()); }
  /// Number of 64-bit words after the sum that are added up over ranks together with it: they have
  /// the step's statistics (Tally).
  static constexpr std::size_t kRankWords = sizeof(Tally) / sizeof(FixedPoint);
  FixedPoint* rank_words() const { return sum_.get() + state_.size(); }
  std::vector<FixedPoint> download_rank_words() const;
  void upload_sum(std::span<const FixedPoint> sum) { sum_.upload(sum); }
  void clear_sum() { sum_.clear(); }

  /// Returns the released noisy sum of the step, [d]. It is stored only if
  /// has_separate_update(recipe), or if finish() was called with is_shown.
  std::vector<float> download_released() const { return released_.download(); }
  void upload_released(const std::vector<float>& values) { released_.upload(values); }

  /// Returns whether the update is a separate launch after the release, because it needs the norm
  /// of the whole released gradient (adaptive step size).
  static bool has_separate_update(const StepRecipe& recipe) { return recipe.step_size.has_value(); }

  /// Launches the kernels that add noise to the current step's sum, release it and update the
  /// parameters. noise: random stream, whose step number kernels take from StepCursor. unfinished:
  /// partial results to add first. is_shown: the update is left out, so that the host can read the
  /// released sum and then call update().
  void finish(const StepRecipe& recipe, const RandomStream& noise, const Unfinished& unfinished,
              bool is_shown);

  /// Launches the optimizer's update of the parameters with the released sum.
  void update(const StepRecipe& recipe);

  /// Computes on the host those noise numbers of a step that double precision was too coarse to
  /// round, and launches the rest of the step. at: progress of the run, read after the step. The
  /// other arguments are those of finish().
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

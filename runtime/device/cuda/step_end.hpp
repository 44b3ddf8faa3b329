#pragma once
// End of a step on the device: noise, release and update (kernels/step/finish.hpp). The host makes
// the pairs of normals that double cannot decide.
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

/// Computes Gpu::total_norms without a library.
void total_norms_by_kernel(Gpu& gpu, const NormTotal& a);

class StepEnd {
 public:
  /// cursor, list: those of RunPosition.
  StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list);

  /// [d], in grid steps. Contributions are added to it; it is 0 at the beginning of a step.
  FixedPoint* sum() const { return sum_.get(); }
  std::vector<FixedPoint> download_sum() const { return sum_.download(state_.size()); }
  /// Number of words after the sum that ranks add up with it: a tally.
  static constexpr std::size_t kRankWords = sizeof(Tally) / sizeof(FixedPoint);
  FixedPoint* rank_words() const { return sum_.get() + state_.size(); }
  std::vector<FixedPoint> download_rank_words() const;
  void upload_sum(std::span<const FixedPoint> sum) { sum_.upload(sum); }
  void clear_sum() { sum_.clear(); }

  /// Returns the released values, [d], of a step whose update is a separate launch.
  std::vector<float> download_released() const { return released_.download(); }
  void upload_released(const std::vector<float>& values) { released_.upload(values); }

  /// Whether the update waits for the whole release, because it needs its norm.
  static bool has_tail(const StepRecipe& recipe) { return recipe.step_size.has_value(); }

  /// Launches the end of the cursor's step. noise: the stream; its step is the cursor's. If
  /// is_shown, nothing is updated: the host reads the released values first, and then calls
  /// update().
  void finish(const StepRecipe& recipe, const RandomStream& noise, const Unfinished& left,
              bool is_shown);

  /// Launches the update with the released values.
  void update(const StepRecipe& recipe);

  /// Computes the pairs of normal numbers whose rounding a step left undecided, and launches the
  /// completion of the step. at: the cursor, as the step left it. The other arguments are those of
  /// finish().
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
  Buffer<DecidedPair> pairs_;        // pairs that the host has made
  Buffer<float> released_;           // [d]
  Buffer<double> norm_parts_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

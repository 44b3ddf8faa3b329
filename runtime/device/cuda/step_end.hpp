#pragma once
// The end of a step on the device: noise, release and update (kernels/step/finish.hpp), and on the
// host the pairs of normals that double cannot decide.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/step/finish.cuh"
#include "kernels/step/step_size.cuh"
#include "kernels/step/tally.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/model_state.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class StepEnd {
 public:
  /// cursor, list: of RunPosition.
  StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list)
      : gpu_(gpu),
        state_(state),
        cursor_(cursor),
        list_(list),
        sum_(gpu, state.size() + kRankWords),
        undecided_(gpu, static_cast<std::size_t>(words_of_pairs(numbers()))),
        released_(gpu, state.size()),
        norm_parts_(gpu, released_norm_shape(numbers()).grid.x) {
    sum_.clear();
    undecided_.clear();
    released_.clear();
  }

  /// [d], in units of the grid: to add to. 0 at the beginning of a step.
  FixedPoint* sum() const { return sum_.get(); }
  std::vector<FixedPoint> download_sum() const { return sum_.download(state_.size()); }
  /// Words after the sum that ranks add up with it: a tally.
  static constexpr std::size_t kRankWords = sizeof(Tally) / sizeof(FixedPoint);
  FixedPoint* rank_words() const { return sum_.get() + state_.size(); }
  std::vector<FixedPoint> download_rank_words() const {
    return sum_.download(kRankWords, state_.size());
  }
  void upload_sum(std::span<const FixedPoint> sum) { sum_.upload(sum); }
  void clear_sum() { sum_.clear(); }

  /// What was released, [d]; of a step whose update is a launch of its own.
  std::vector<float> download_released() const { return released_.download(); }
  void upload_released(const std::vector<float>& values) { released_.upload(values); }

  /// Whether the update waits for the whole release: for its norm.
  static bool has_tail(const StepRecipe& recipe) { return recipe.step_size.has_value(); }

  /// Launches what ends the cursor's step; noise: the stream, whose step is the cursor's. With
  /// is_shown nothing is updated: the host looks at what is released first, and calls update().
  void finish(const StepRecipe& recipe, const RandomStream& noise, const Unfinished& left,
              bool is_shown) {
    launch(gpu_, "finish", finish_kernel_of(recipe.optimizer.kind),
           finish_args(recipe, noise, left, is_shown));
    if (has_tail(recipe) && !is_shown) update(recipe);
  }

  /// Launches the update by what was released.
  void update(const StepRecipe& recipe) {
    AdaptStepSize size{};
    if (recipe.step_size) {
      launch(gpu_, "released norm", released_norm_kernel, released_norm());
      size = {.settings = *recipe.step_size,
              .parts = norm_parts_.get(),
              .count = static_cast<int>(norm_parts_.size()),
              .sum = state_.step_size_sum(),
              .cursor = cursor_};
      validate(size);
    }
    UpdateArgs args = state_.update_args(recipe);
    args.released = released_.get();
    gpu_.launch("update", update_kernel_of(recipe.optimizer.kind), strided_shape(args.end, 64),
                args, &cursor_->scalars, size);
  }

  /// Makes the pairs that a step has left undecided, and launches what completes it. at: the
  /// cursor, as the step left it. The other arguments are finish()'s.
  void complete(const StepCursor& at, const StepRecipe& recipe, const RandomStream& noise,
                bool is_shown) {
    const std::vector<DecidedPair> made = decided_pairs(undecided_.download(), at, noise);
    ensure(made.size() == at.pending, "a step has left other pairs undecided than it counted");
    pairs_ = {gpu_, made.size()};
    pairs_.upload(made);
    launch(gpu_, "finish pairs", finish_pairs_kernel_of(recipe.optimizer.kind),
           FinishPairs{.step = finish_args(recipe, noise, {}, is_shown),
                       .pairs = pairs_.get(),
                       .count = static_cast<std::uint32_t>(made.size())});
    if (has_tail(recipe) && !is_shown) update(recipe);
  }

 private:
  std::int64_t numbers() const { return static_cast<std::int64_t>(state_.size()); }

  FinishStep finish_args(const StepRecipe& recipe, const RandomStream& noise,
                         const Unfinished& left, bool is_shown) {
    return {.cursor = cursor_,
            .sum = sum_.get(),
            .left = left,
            .noise = noise,
            .n = numbers(),
            .undecided = undecided_.get(),
            .released = has_tail(recipe) || is_shown ? released_.get() : nullptr,
            .update = state_.update_args(recipe),
            .by_pairs = numbers() < kPairwise,
            .list = list_};
  }

  ReleasedNorm released_norm() const {
    return {.released = released_.get(),
            .n = numbers(),
            .sum = state_.step_size_sum(),
            .cursor = cursor_,
            .parts = norm_parts_.get()};
  }

  Gpu& gpu_;
  DeviceModelState& state_;
  StepCursor* cursor_;
  ListedStep* list_;
  Buffer<FixedPoint> sum_;           // [d + kRankWords]
  Buffer<std::uint32_t> undecided_;  // a bit a pair
  Buffer<DecidedPair> pairs_;        // what the host has made
  Buffer<float> released_;           // [d]
  Buffer<double> norm_parts_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

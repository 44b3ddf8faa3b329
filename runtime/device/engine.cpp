#include "runtime/device/engine.hpp"

#include <algorithm>
#include <bit>

#include "kernels/contribution/norm_total.hpp"
#include "runtime/base/error.hpp"

namespace cudp {

bool fits(const Network& network, const Dataset& data) {
  const WordVectors* const v = data.vectors.get();
  return data.shape == network.input && data.words == network.text.words &&
         (v != nullptr ? v->columns == network.text.columns && v->rows == data.words
                       : network.text.columns == 0);
}

void check_class_weights(const Network& network, const EngineSettings& settings) {
  const std::vector<float>& all = settings.class_weights;
  ensure(all.empty() || (all.size() == static_cast<std::size_t>(network.classes) &&
                         std::ranges::all_of(all, [](float w) { return w >= 0 && w <= 1; })),
         "class weights must be one of 0 to 1 for each class");
}

float check_followed(const FollowedSteps& steps, const ClipRule& rule, float clip,
                     std::span<const StepScalars> given) {
  ensure(steps.scalars.size() == given.size() && steps.noisy_counts.size() == given.size(),
         "the engine did not make the requested steps");
  const auto same = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  for (std::size_t i = 0; i < given.size(); ++i) {
    const StepScalars want = scalars_at(rule, clip, given[i]);
    const StepScalars& had = steps.scalars[i];
    if (!(same(had.clip_norm, want.clip_norm) && same(had.noise_std, want.noise_std) &&
          same(had.inverse_batch, want.inverse_batch) &&
          same(had.learning_rate, want.learning_rate)))
      throw Error(
          "the device's clipping norm is not the one that the counts give: the run cannot be used");
    clip = next_clip(rule, clip, steps.noisy_counts[i]);
  }
  return clip;
}

std::uint64_t Engine::norm_total(double max_norm, double grid) {
  std::uint64_t sum = 0;
  for (const float norm : norms()) sum += norm_units(norm, max_norm, grid);
  return sum;
}

/// Runs scalars.size() steps with an adaptive clipping norm, from number `first` on, one at a time
/// with run(). After each step the host computes the noisy count of unclipped gradients and, from
/// it, the clipping norm of the next step. rule: how the clipping norm is adapted. clip: clipping
/// norm of the first step. scalars: scalars of each step before the adaptation. count_noise: for
/// each step, the noise on its count.
FollowedSteps Engine::run_following(const StepRecipe& recipe, std::uint64_t first,
                                    std::span<const StepScalars> scalars, const ClipRule& rule,
                                    float clip, std::span<const std::int64_t> count_noise) {
  validate(rule);
  ensure(scalars.size() == count_noise.size(), "expected noise for every step's count");
  FollowedSteps followed;
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    const StepScalars now = scalars_at(rule, clip, scalars[i]);
    run(recipe, first + i, {&now, 1});
    const Diagnostics batch = diagnostics();
    followed.scalars.push_back(now);
    followed.noisy_counts.push_back(noisy_count_of(
        rule, halves_of(batch.examples, batch.clipped, batch.non_finite), count_noise[i]));
    followed.diagnostics += batch;
    clip = next_clip(rule, clip, followed.noisy_counts.back());
  }
  return followed;
}

}  // namespace cudp

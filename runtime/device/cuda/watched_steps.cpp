#include "runtime/device/cuda/watched_steps.hpp"

#include <cstdint>
#include <vector>

#include "runtime/device/cuda/batch_capacity.hpp"
#include "runtime/device/observed.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns the step's sum as multiples of its grid.
std::vector<std::int64_t> sums(const EngineParts& p) {
  std::vector<std::int64_t> all;
  all.reserve(p.state.size());
  for (const FixedPoint units : p.end.download_sum())
    all.push_back(static_cast<std::int64_t>(units));
  return all;
}

/// Runs one step with the same launches as a recorded one. Unlike there, the sum is complete before
/// noise is added, and the released values are in memory before the update. A batch that is too
/// large fails before anything is released.
void take_step(EngineParts& p, StepSum& sum, const StepRecipe& recipe, std::uint64_t number,
               const ListedStep& step) {
  ReleaseObserver* const release_observer = p.settings.release_observer;
  SecretObserver* const observes = observer(release_observer);
  const ReleasedValue value = released_sum(number, step.scale.grid, step.scalars.noise_std);
  const RandomStream noise = p.stream(Stream::noise);
  const std::int64_t capacity = batch_capacity(recipe.draw, p.train.size());

  sum.draw(recipe, capacity);
  (void)p.position.wait();
  if (observes != nullptr)
    show_batch(release_observer, number, recipe.draw, p.drawn.download(p.sample.count()));

  const Unfinished unfinished = sum.add_up(recipe, capacity);
  if (unfinished.sums.slabs != nullptr) p.fused->add(unfinished.sums, p.end.sum());
  if (observes != nullptr) observes->before_noise(value, sums(p));

  p.end.finish(recipe, noise, {.sums = {}, .tally = unfinished.tally}, true);
  if (const StepCursor at = p.position.wait(); at.pending != 0)
    p.end.complete(at, recipe, noise, true);
  std::vector<float> values = p.end.download_released();
  show_released(release_observer, value, std::span(values));
  p.end.upload_released(values);

  p.end.update(recipe);
  if (observes == nullptr) return;
  const StepCursor at = p.position.wait();
  StepScalars used = at.scalars;
  if (recipe.step_size) used.learning_rate = at.used_rate;
  observes->on_record(update_record(number, recipe, used, p.train_state()));
}

}  // namespace

void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps) {
  p.position.start(cursor, steps);
  for (std::size_t i = 0; i < steps.size(); ++i)
    take_step(p, sum, recipe, cursor.first + i, steps[i]);
  (void)p.position.wait();
}

}  // namespace cudp::cuda::inline CUDP_SIMT

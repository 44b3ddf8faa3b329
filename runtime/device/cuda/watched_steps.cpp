#include "runtime/device/cuda/watched_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "models/freeze.hpp"
#include "runtime/device/cuda/batch_capacity.hpp"
#include "runtime/device/observed.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns the step's sum of contributions, [d], as integer multiples of the grid, the power of two
/// to whose multiples contributions are rounded. p: the engine's parts.
std::vector<std::int64_t> sums(const EngineParts& p) {
  std::vector<std::int64_t> all;
  all.reserve(p.state.size());
  for (const FixedPoint units : p.end.download_sum())
    all.push_back(static_cast<std::int64_t>(units));
  return all;
}

/// Returns the settings with which the gradients of canaries (examples with a chosen gradient, for
/// audits) are added in step `number`. scale: grid of the sum and clipping norm of the step.
CanaryUse canary_use(const EngineParts& p, const StepRecipe& recipe, std::uint64_t number,
                     const SumScale& scale) {
  CanaryUse use{.inverse_grid = scale.inverse_grid};
  if (const auto* const clipped = std::get_if<ClippedGradient>(&recipe.contribution))
    use.clip = clipped->at(scale.clip_norm);
  if (const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution))
    use.clip = transformed->at(scale.clip_norm);
  if (const auto* const candidates = std::get_if<Candidates>(&recipe.draw)) {
    use.rule = candidates->rule;
    use.stream = p.stream(Stream::acceptance);
    use.stream.step = number;
  }
  return use;
}

/// Adds the contributions of the drawn canaries to the step's sum on the device, which the device
/// has computed without canaries. Returns the sum of all other examples, [d]. number: number of the
/// step. scale: grid of the sum and clipping norm of the step. drawn: indices of the drawn
/// examples.
std::vector<float> add_canaries(EngineParts& p, const StepRecipe& recipe, std::uint64_t number,
                                const SumScale& scale, std::span<const std::uint32_t> drawn) {
  std::vector<std::int64_t> units = sums(p);
  std::vector<float> ordinary(units.size());
  std::ranges::transform(units, ordinary.begin(), [&](std::int64_t n) {
    return static_cast<float>(scale.grid * static_cast<double>(n));
  });
  CanaryUse use = canary_use(p, recipe, number, scale);
  std::vector<float> norms = p.norms.download();
  use.norms = norms.data();
  const std::vector<float> inverse = p.state.coordinates().inverse().download();
  if (!inverse.empty()) use.inverse = inverse.data();
  const std::vector<CanaryFacts> facts =
      p.canaries.add(drawn.subspan(p.canaries.ordinary(drawn)), use, units.data());
  p.norms.upload(norms);
  p.end.upload_sum(std::vector<FixedPoint>(units.begin(), units.end()));
  if (!p.settings.diagnostics) return ordinary;
  Tally tally = p.tally.download().front();
  for (const CanaryFacts& f : facts) {
    tally.examples += 1;
    tally.clipped += f.clipped ? 1 : 0;
    tally.norm += tally_units(std::sqrt(static_cast<double>(f.squared_norm)));
  }
  p.tally.upload({&tally, 1});
  return ordinary;
}

/// Runs one step so that a release observer can read its released values. The launches are the same
/// as in a recorded step, with two differences: the sum is complete before noise is added, and the
/// released values are written to memory before the update. Throws Error before anything is
/// released if the batch is too large. number: number of the step. step: scalars of the step.
void take_step(EngineParts& p, StepSum& sum, const StepRecipe& recipe, std::uint64_t number,
               const ListedStep& step) {
  ReleaseObserver* const release_observer = p.settings.release_observer;
  SecretObserver* const observes = observer(release_observer);
  const ReleasedValue value = released_sum(number, step.scale.grid, step.scalars.noise_std);
  const RandomStream noise = p.stream(Stream::noise);
  const std::int64_t capacity = batch_capacity(recipe.draw, p.train.size());

  const bool has_canaries = p.settings.audit != nullptr;
  std::optional<RowStream::Part> part;
  StepRows rows{.data = p.train.data()};
  if (p.streamed) {
    part = p.streamed->stage(recipe.draw, number, 1);
    rows = p.streamed->rows(part->buffer);
  } else {
    (void)sum.prepare_draw(recipe.draw, number);
  }
  sum.begin(recipe, capacity, rows);
  (void)p.position.wait();
  std::vector<std::uint32_t> drawn;
  if (part)
    drawn.assign(part->examples.begin(), part->examples.end());
  else if (observes != nullptr || has_canaries)
    drawn = p.drawn.download(p.sample.count());
  if (observes != nullptr)
    show_batch(release_observer, number, recipe.draw, p.numbering->numbers_of(drawn));
  if (has_canaries) p.sample.set_count(p.canaries.ordinary(drawn));

  const Unfinished unfinished = sum.add_up(recipe, capacity, rows.data);
  if (part) p.streamed->launched(*part);
  if (unfinished.sums.slabs != nullptr) p.fused->add(unfinished.sums, p.end.sum());
  std::vector<float> ordinary;
  if (has_canaries) ordinary = add_canaries(p, recipe, number, step.scale, drawn);
  if (observes != nullptr) observes->before_noise(value, sums(p));

  p.end.finish(recipe, noise, {.sums = {}, .tally = unfinished.tally}, true);
  if (const StepCursor at = p.position.wait(); at.pending != 0)
    p.end.complete(at, recipe, noise, true);
  std::vector<float> values = p.end.download_released();
  if (has_canaries && p.settings.audit->released)
    p.settings.audit->released(
        {.step = number,
         .sum = values,
         .ordinary = ordinary,
         .max_norm = layer_norm_bound(
             recipe.contribution, static_cast<double>(step.scalars.clip_norm), p.network.groups),
         .noise_std = static_cast<double>(step.scalars.noise_std)});
  show_released(release_observer, value, std::span(values));
  p.end.upload_released(values);

  p.end.update(recipe);
  if (observes == nullptr) return;
  const StepCursor at = p.position.wait();
  StepScalars used = at.scalars;
  if (recipe.step_size) used.learning_rate = at.used_rate;
  transcript::Update record = update_record(number, recipe, used, p.train_state());
  record.lr_scale = own_rates(p.network);
  observes->on_record(record);
}

}  // namespace

void run_watched(EngineParts& p, StepSum& sum, const StepRecipe& recipe, const StepCursor& cursor,
                 std::span<const ListedStep> steps) {
  if (p.streamed)
    p.streamed->reserve(static_cast<std::size_t>(batch_capacity(recipe.draw, p.train.size())));
  p.position.start(cursor, steps);
  for (std::size_t i = 0; i < steps.size(); ++i)
    take_step(p, sum, recipe, cursor.first + i, steps[i]);
  (void)p.position.wait();
}

}  // namespace cudp::cuda::inline CUDP_SIMT

#include "runtime/device/cuda/step_sum.hpp"

#include <algorithm>
#include <variant>

#include "runtime/device/cuda/batch_capacity.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

SampleArgs StepSum::sample_args(const Draw& draw) const {
  const auto* const poisson = std::get_if<Poisson>(&draw);
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const auto* const allocation = std::get_if<Allocation>(&draw);
  return {.stream = p_.stream(allocation != nullptr ? Stream::allocation : Stream::sampling),
          .threshold = poisson != nullptr ? poisson->threshold : 0,
          .begin = static_cast<std::int64_t>(p_.numbering->begin()),
          .end = static_cast<std::int64_t>(p_.numbering->end()),
          .drawn = p_.drawn.get(),
          .norms = candidates != nullptr ? p_.norms.get() : nullptr,
          .rule = candidates != nullptr ? candidates->rule : ImportanceRule{},
          .first = static_cast<std::int64_t>(p_.numbering->begin()),
          .epoch_steps = allocation != nullptr ? static_cast<std::uint32_t>(allocation->steps) : 0,
          .allocated = p_.allocated.stored(),
          .index = p_.index.size() > 0 ? p_.index.get() : nullptr};
}

std::size_t StepSum::prepare_draw(const Draw& draw, std::uint64_t step) {
  return p_.allocated.prepare(sample_args(draw), step);
}

SampleSpace StepSum::space_of(const StepRecipe& recipe, std::int64_t capacity) const {
  SampleSpace space = p_.sample.space();
  space.cursor = p_.position.cursor();
  space.list = p_.position.list();
  space.capacity = static_cast<std::uint32_t>(batch_capacity(recipe.draw, p_.train.size()));
  space.launch_capacity = static_cast<std::uint32_t>(capacity);
  space.counted = p_.tally.get();
  space.has_separate_update = StepEnd::has_separate_update(recipe);
  return space;
}

void StepSum::begin(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows) {
  const SampleSpace space = space_of(recipe, capacity);
  if (rows.batches)
    begin_drawn_step(p_.gpu, {.batches = *rows.batches, .space = space, .drawn = p_.drawn.get()});
  else
    draw_examples(p_.gpu, sample_args(recipe.draw), space);
}

NextStep StepSum::next_step(const StepRecipe& recipe, std::int64_t capacity,
                            const StepRows& rows) const {
  if (!rows.batches || StepEnd::has_separate_update(recipe)) return {};
  return {.batches = *rows.batches, .space = space_of(recipe, capacity), .drawn = p_.drawn.get()};
}

void StepSum::launch(const StepRecipe& recipe, const StepRows& rows) {
  const std::int64_t capacity = batch_capacity(recipe.draw, p_.train.size());
  begin(recipe, capacity, rows);
  const Unfinished unfinished = add_up(recipe, capacity, rows.data);
  if (unfinished.sums.slabs != nullptr) p_.fused->add(unfinished.sums, p_.end.sum());
  if (unfinished.tally.total != nullptr) add_tally(p_.gpu, unfinished.tally);
}

Unfinished StepSum::add_up(const StepRecipe& recipe, std::int64_t max_drawn,
                           const DeviceData& data) {
  const Contribution& contribution = recipe.contribution;
  if (p_.train.size() == 0) {
    // A rank without examples adds nothing. But its update needs the scale of coordinate-wise
    // clipping, which refresh() computes from the state at the beginning of the step.
    if (std::holds_alternative<TransformedGradient>(contribution))
      (void)p_.state.coordinates().refresh(p_.position.cursor());
    return {};
  }
  const SumScale* const scale = p_.position.scale();
  const FusedNetwork::Drawn drawn{
      .count = p_.sample.space().count,
      .examples = p_.drawn.get(),
      .max_examples = max_drawn,
      .expected = expected_draw(recipe.draw, p_.train.size(), max_drawn),
      .data = data,
      .parameters = p_.state.parameters(),
      .scale = scale};
  if (const auto* const clipped = std::get_if<ClippedGradient>(&contribution)) {
    if (p_.fused) return p_.fused->sum_clipped(drawn, *clipped, p_.end.sum(), p_.tally.get());
    return add_by_layers(max_drawn, data, nullptr, [&] { p_.passes.clip(*clipped, scale); });
  }
  if (std::holds_alternative<TransformedGradient>(contribution)) {
    if (p_.fused && p_.fused->sums_transformed()) {
      const CoordinatesView view = p_.state.coordinates().refresh(p_.position.cursor());
      return p_.fused->sum_transformed(drawn, {.mean = view.centre, .inverse = view.inverse},
                                       p_.end.sum(), p_.tally.get());
    }
    const CoordinatesView view =
        p_.state.coordinates().refresh(p_.passes.layout(), p_.position.cursor());
    return add_by_layers(max_drawn, data, &view, [&] { p_.passes.clip({}, scale); });
  }
  const FusedAcceptance accept{.rule = p_.position.candidates(),
                               .stream = p_.stream(Stream::acceptance),
                               .step = &p_.position.cursor()->step,
                               .first = p_.train.first()};
  if (p_.fused)
    return p_.fused->sum_accepted(drawn, accept, p_.norms.get(), p_.end.sum(), p_.tally.get());
  return add_by_layers(max_drawn, data, nullptr, [&] {
    p_.passes.accept(accept.rule, accept.stream, accept.first, accept.step, p_.norms.get());
  });
}

Unfinished StepSum::add_by_layers(std::int64_t max_drawn, const DeviceData& data,
                                  const CoordinatesView* coordinates,
                                  const std::function<void()>& choose) {
  const auto at_once = static_cast<std::int64_t>(p_.passes.capacity());
  const Weighted weighted = std::holds_alternative<ClippedGradient>(p_.settings.recipe.contribution)
                                ? Weighted::factors
                                : Weighted::loss;
  Unfinished unfinished{};
  for (std::int64_t first = 0; first < max_drawn; first += at_once) {
    const Batch batch{.count = p_.sample.space().count,
                      .first = static_cast<std::int32_t>(first),
                      .capacity = static_cast<std::int32_t>(std::min(at_once, max_drawn - first))};
    p_.passes.forward(batch, data, p_.drawn.get(), p_.state.parameters());
    p_.passes.backward(weighted, coordinates);
    choose();
    p_.passes.add(p_.end.sum(), p_.position.scale());
    if (!p_.settings.diagnostics) continue;
    // The statistics of the last micro-batch are returned. Those of the others are added to the
    // totals now, because the next passes overwrite them.
    if (first + at_once < max_drawn)
      add_tally(p_.gpu, p_.passes.tally(p_.tally.get()));
    else
      unfinished.tally = p_.passes.tally(p_.tally.get());
  }
  return unfinished;
}

}  // namespace cudp::cuda::inline CUDP_SIMT

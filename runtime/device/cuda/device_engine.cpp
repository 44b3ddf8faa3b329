#include "runtime/device/cuda/device_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cuda/watched_steps.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

SumScale scale_of(const StepRecipe& recipe, float clip_norm) {
  const double grid = bound_of(recipe.contribution, static_cast<double>(clip_norm)).grid;
  return sum_scale(clip_norm, grid);
}

/// Divides `steps`, a list of consecutive steps, into submissions of at most position.max_steps()
/// steps. For each submission, sets cursor.first to the number of its first step and calls body()
/// with its steps.
template <class Body>
void for_each_submission(const RunPosition& position, StepCursor& cursor,
                         std::span<ListedStep> steps, const Body& body) {
  const std::uint64_t first = cursor.first;
  for (std::size_t at = 0; at < steps.size(); at += position.max_steps()) {
    cursor.first = first + at;
    body(steps.subspan(at, std::min(position.max_steps(), steps.size() - at)));
  }
}

/// Returns whether rounded_normals() can draw the noise of a step at every clipping norm that the
/// rule may choose. The noise's standard deviation is noise_multiplier * sensitivity times the
/// clipping norm, and a clipping norm is 2^20 to 2^21 grid steps (kMinUnits to 2 kMinUnits). If the
/// result is false, the host must update the clipping norm itself, and check the noise of each
/// step.
bool has_noise_in_range(const ClipRule& rule) {
  const double s = rule.noise_multiplier * rule.sensitivity;
  return s * kMinUnits >= kMinRoundedNormalS &&
         2.0 * s * kMinUnits * (1.0 + 0x1p-20) <= kLargestRoundedNormalS;
}

}  // namespace

DeviceEngine::DeviceEngine(Gpu gpu, const Network& network, const EngineSettings& settings,
                           std::int64_t large_dense, bool may_be_fused)
    : p_(std::move(gpu), network, settings, large_dense, may_be_fused),
      sum_(p_),
      recorded_(p_, sum_),
      norms_(p_),
      evaluation_(p_) {}

void DeviceEngine::load(const Dataset& train) {
  p_.load(train);
  is_loaded_ = true;
  norms_.reset();
  recorded_.reset();
}

std::vector<ListedStep> DeviceEngine::listed(const StepRecipe& recipe,
                                             std::span<const StepScalars> scalars) {
  validate(recipe);
  UpdateArgs checked = p_.state.update_args(recipe);
  checked.released =
      p_.state.parameters();  // any non-null address, for the validation; no step has run
  std::vector<ListedStep> steps;
  steps.reserve(scalars.size());
  for (const StepScalars& s : scalars) {
    checked.scalars = s;
    validate(checked);
    validate(recipe, s);
    steps.push_back({s, scale_of(recipe, s.clip_norm)});
  }
  return steps;
}

void DeviceEngine::run(const StepRecipe& recipe, std::uint64_t first,
                       std::span<const StepScalars> scalars) {
  ensure(is_loaded_, "no training set is loaded");
  ensure(keeps_the_same(recipe, p_.settings.recipe), "the memory was laid out for another recipe");
  std::vector<ListedStep> steps = listed(recipe, scalars);
  StepCursor cursor{.first = first};
  if (const auto* const candidates = std::get_if<Candidates>(&recipe.draw))
    cursor.candidates = candidates->rule;
  for_each_submission(p_.position, cursor, steps, [&](std::span<ListedStep> part) {
    if (p_.settings.release_observer != nullptr || p_.settings.audit != nullptr)
      run_watched(p_, sum_, recipe, cursor, part);
    else
      recorded_.run(recipe, cursor, part);
  });
}

FollowedSteps DeviceEngine::run_following(const StepRecipe& recipe, std::uint64_t first,
                                          std::span<const StepScalars> scalars,
                                          const ClipRule& rule, float clip,
                                          std::span<const std::int64_t> count_noise) {
  validate(rule);
  ensure(std::holds_alternative<ClippedGradient>(recipe.contribution) && p_.settings.diagnostics &&
             p_.settings.release_observer == nullptr && scalars.size() == count_noise.size(),
         "a clipping norm cannot be followed here");
  if (!has_noise_in_range(rule) || !p_.settings.ranks->alone() || p_.settings.audit != nullptr)
    return Engine::run_following(recipe, first, scalars, rule, clip, count_noise);
  std::vector<StepScalars> at_start;
  for (const StepScalars& s : scalars) at_start.push_back(scalars_at(rule, clip, s));
  std::vector<ListedStep> steps = listed(recipe, at_start);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].scalars = scalars[i];  // the device adapts them to the clipping norm
    steps[i].count_noise = count_noise[i];
  }
  FollowedSteps followed;
  StepCursor cursor{.first = first, .adapts_clip_norm = 1, .clip = rule};
  for_each_submission(p_.position, cursor, steps, [&](std::span<ListedStep> part) {
    part[0].scalars = scalars_at(rule, clip, part[0].scalars);
    part[0].scale = scale_of(recipe, clip);
    recorded_.run(recipe, cursor, part);
    for (const ListedStep& step : part) {
      const SumScale scale = scale_of(recipe, step.scalars.clip_norm);
      ensure(step.scale.clip_norm == scale.clip_norm && step.scale.grid == scale.grid &&
                 step.scale.inverse_grid == scale.inverse_grid,
             "the device has added on another grid than that of the clipping norm");
      followed.scalars.push_back(step.scalars);
      followed.noisy_counts.push_back(step.noisy_count);
    }
    clip = next_clip(rule, part.back().scalars.clip_norm, part.back().noisy_count);
  });
  return followed;
}

void DeviceEngine::measure_norms() {
  ensure(is_loaded_, "norms are not kept");
  norms_.measure();
}
std::uint64_t DeviceEngine::norm_total(double max_norm, double grid) {
  ensure(is_loaded_, "norms are not kept");
  return norms_.total(max_norm, grid);
}

std::vector<float> DeviceEngine::logits(const Dataset& examples) {
  ensure(fits(p_.network, examples), "the test set does not fit the model");
  // An engine without a training set only evaluates. It processes as many examples at once as
  // memory allows, so that few launches are needed.
  if (!p_.fused && (p_.train.size() == 0 || p_.passes.capacity() == 0))
    recorded_.reserve(p_.train.size() == 0 ? static_cast<std::int64_t>(examples.size()) : 0);
  return evaluation_.logits(examples);
}

PerExample DeviceEngine::per_example(std::span<const std::uint32_t> examples, bool gradients) {
  ensure(p_.train.size() > 0, "no training set is loaded");
  const std::size_t d = p_.network.parameter_count;
  const auto groups = static_cast<std::size_t>(p_.network.groups);
  const auto capacity = static_cast<std::size_t>(p_.passes.capacity());
  Buffer<float> single(p_.gpu, gradients ? std::min(capacity, examples.size()) * d : 0);
  Buffer<std::uint32_t> listed(p_.gpu, std::min(capacity, examples.size()));
  Buffer<std::uint32_t> count(p_.gpu, 1);
  Buffer<SumScale> unit_scale(p_.gpu, 1);  // used for norms only
  const SumScale unit = sum_scale(1.0f, 1.0);
  unit_scale.upload({&unit, 1});
  PerExample out;
  const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (std::size_t at = 0; at < examples.size(); at += capacity) {
    const std::size_t n = std::min(capacity, examples.size() - at);
    for (const std::uint32_t e : examples.subspan(at, n))
      ensure(e < p_.train.size(), "no such training example");
    const RowsOfSome some = rows_of(examples.subspan(at, n));
    listed.upload(some.indices);
    const auto live = static_cast<std::uint32_t>(n);
    count.upload({&live, 1});
    const Batch batch{.count = count.get(), .first = 0, .capacity = static_cast<std::int32_t>(n)};
    p_.passes.forward(batch, some.data, listed.get(), p_.state.parameters());
    p_.passes.backward(Weighted::factors);
    p_.passes.clip({}, unit_scale.get());
    append(out.losses, p_.passes.losses().download(n));
    append(out.squared_norms, p_.passes.squared_norms().download(n * groups));
    if (!gradients) continue;
    p_.passes.store_gradients(single.get());
    append(out.gradients, single.download(n * d));
  }
  return out;
}

DeviceEngine::RowsOfSome DeviceEngine::rows_of(std::span<const std::uint32_t> examples) {
  RowsOfSome some;
  some.indices.assign(examples.begin(), examples.end());
  some.data = p_.train.data();
  if (!p_.streamed) return some;
  const Dataset& train = p_.streamed->train();
  const std::vector<std::size_t> which(examples.begin(), examples.end());
  FetchedExamples fetched;
  const Dataset copies =
      train.rows != nullptr ? fetched.fetch(train, examples) : select_examples(train, which);
  some.copies = p_.on_device(copies);
  some.data = some.copies.data();
  std::iota(some.indices.begin(), some.indices.end(), std::uint32_t{0});
  return some;
}

std::vector<std::uint32_t> DeviceEngine::sampled(std::uint64_t step) {
  ensure(p_.train.size() > 0, "no training set is loaded");
  ensure(!p_.keeps_norms(), "candidates are drawn by norms, which change");
  SampleArgs args = sum_.sample_args(p_.settings.recipe.draw);
  args.stream.step = step;
  (void)p_.allocated.prepare(args, step);
  draw_examples(p_.gpu, args, p_.sample.space());
  return p_.drawn.download(p_.sample.count());
}

}  // namespace cudp::cuda::inline CUDP_SIMT

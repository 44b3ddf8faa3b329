#include "runtime/device/cuda/recorded_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/batch_capacity.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns a copy of a recipe without the numbers that recorded steps read from device memory, to
/// tell whether a recording can be reused.
StepRecipe without_numbers(StepRecipe recipe) {
  if (auto* const candidates = std::get_if<Candidates>(&recipe.draw)) candidates->rule = {};
  return recipe;
}

}  // namespace

void RecordedSteps::reset() {
  recorded_.reset();  // the recording has addresses of the old buffers
  joined_.reset();
  capacity_ = 0;
  if (!is_alone()) ranked_.choose();
  const Draw& draw = p_.settings.recipe.draw;
  reserve(public_capacity(draw, p_.settings.expected_batch)
              .value_or(first_capacity(draw, p_.train.size(), 0.0)));
}

void RecordedSteps::reserve(std::int64_t examples) {
  if (!p_.passes.reserve(examples)) return;
  recorded_.reset();  // the recording has addresses of the old buffers
}

void RecordedSteps::run(const StepRecipe& recipe, const StepCursor& cursor,
                        std::span<ListedStep> steps) {
  if (is_alone())
    run_alone(recipe, cursor, steps);
  else
    run_joined(recipe, cursor, steps);
}

Diagnostics RecordedSteps::take_diagnostics() {
  return is_alone() ? take_tally(p_.tally) : ranked_.take_diagnostics();
}

std::int64_t RecordedSteps::capacity_for(const StepRecipe& recipe) const {
  return std::max(capacity_,
                  first_capacity(recipe.draw, p_.train.size(), p_.settings.expected_batch));
}

void RecordedSteps::launch_step(const StepRecipe& recipe, std::int64_t capacity) {
  if (ahead_)
    sum_.begin(recipe, capacity, *ahead_);
  else
    sum_.draw(recipe, capacity);
  const Unfinished unfinished = sum_.add_up(recipe, capacity);
  p_.end.finish(recipe, p_.stream(Stream::noise), unfinished, false);
}

void RecordedSteps::prepare_ahead(const StepRecipe& recipe) {
  ahead_.reset();
  if (std::holds_alternative<Candidates>(recipe.draw) || p_.train.size() == 0) return;
  const std::size_t examples = p_.numbering->count();
  const auto list_size = static_cast<std::size_t>(batch_capacity(recipe.draw, p_.train.size()));
  const bool allocates = std::holds_alternative<Allocation>(recipe.draw);
  if (DrawnAhead::steps_of(p_.gpu, examples, list_size, allocates) < 2) return;
  ahead_.emplace(p_.gpu, examples, list_size, allocates);
}

void RecordedSteps::record(const StepRecipe& recipe) {
  const StepRecipe kind = without_numbers(recipe);
  if (recorded_ && recorded_->recipe != kind) recorded_.reset();
  const std::int64_t capacity = capacity_for(recipe);
  if (recorded_ && recorded_->capacity >= capacity) return;
  recorded_.reset();
  reserve(public_capacity(recipe.draw, p_.settings.expected_batch).value_or(capacity));
  prepare_ahead(recipe);
  recorded_.emplace(Recorded{
      kind, capacity, p_.gpu.record([this, recipe, capacity] { launch_step(recipe, capacity); })});
}

void RecordedSteps::record_joined(const StepRecipe& recipe) {
  const StepRecipe kind = without_numbers(recipe);
  if (joined_ && joined_->recipe == kind) return;
  joined_.reset();
  reserve(public_capacity(recipe.draw, p_.settings.expected_batch).value_or(capacity_for(recipe)));
  const auto finish = [this, recipe] {
    p_.end.finish(recipe, p_.stream(Stream::noise), {}, false);
  };
  if (ranked_.is_on_device())
    joined_.emplace(Joined{kind,
                           p_.gpu.record([this, recipe, finish] {
                             sum_.launch(recipe);
                             ranked_.launch();
                             finish();
                           }),
                           {}});
  else
    joined_.emplace(Joined{kind, p_.gpu.record([this, recipe] { sum_.launch(recipe); }),
                           p_.gpu.record(finish)});
}

void RecordedSteps::run_alone(const StepRecipe& recipe, const StepCursor& cursor,
                              std::span<ListedStep> steps) {
  record(recipe);
  p_.position.start(cursor, steps);
  std::size_t drawn_from = 0;  // the batches of steps drawn_from .. drawn_to - 1 are drawn ahead
  std::size_t drawn_to = 0;
  for (std::size_t done = 0;;) {
    for (; done < steps.size(); ++done) {
      if (ahead_ && (done < drawn_from || done >= drawn_to)) {
        drawn_from = done;
        const SampleArgs args = sum_.sample_args(recipe.draw);
        drawn_to = std::min(steps.size(), done + ahead_->steps_from(args, cursor.first + done));
        ahead_->draw(args, cursor.first + done, drawn_to - drawn_from);
      }
      p_.gpu.replay(recorded_->recording);
    }
    const StepCursor at =
        cursor.adapts_clip_norm != 0 ? p_.position.wait(steps) : p_.position.wait();
    done = at.index;  // the steps after this one were not executed
    if (at.pending != 0) {
      p_.end.complete(at, recipe, p_.stream(Stream::noise), false);
    } else if (at.oversized_batch != 0) {
      capacity_ = std::min(2 * std::int64_t{at.oversized_batch},
                           batch_capacity(recipe.draw, p_.train.size()));
      record(recipe);
      p_.position.raise_capacity(at);
    } else {
      ensure(done == steps.size(), "the device has left steps out");
      return;
    }
  }
}

void RecordedSteps::run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                               std::span<const ListedStep> steps) {
  record_joined(recipe);
  p_.position.start(cursor, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    p_.gpu.replay(joined_->first);
    StepCursor at = p_.position.wait();
    if (joined_->second) {
      ranked_.join();
      p_.gpu.replay(*joined_->second);
      at = p_.position.wait();
    } else {
      ranked_.read_tally();
    }
    if (at.pending != 0) p_.end.complete(at, recipe, p_.stream(Stream::noise), false);
  }
  (void)p_.position.wait();
}

}  // namespace cudp::cuda::inline CUDP_SIMT

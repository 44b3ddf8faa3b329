#include "runtime/device/cuda/recorded_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/batch_capacity.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns a copy of a recipe without the numbers that recorded steps read from device memory. Two
/// recipes can use the same recorded CUDA graph if these copies are equal.
StepRecipe without_numbers(StepRecipe recipe) {
  if (auto* const candidates = std::get_if<Candidates>(&recipe.draw)) candidates->rule = {};
  return recipe;
}

/// Number of buffers of streamed rows (rows copied from the host during training) whose steps are
/// launched before the host waits for the device. If the run stops at a step because the host must
/// compute one of its noise numbers, the rows of all later steps must be copied again.
constexpr std::size_t kPartsAtOnce = 16;

}  // namespace

void RecordedSteps::reset() {
  recorded_.reset();  // the recording has addresses of the old buffers
  joined_.reset();
  ahead_.reset();
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

void RecordedSteps::launch_step(const StepRecipe& recipe, std::int64_t capacity,
                                const StepRows& rows) {
  const NextStep next = sum_.next_step(recipe, capacity, rows);
  if (next.drawn == nullptr) sum_.begin(recipe, capacity, rows);
  const Unfinished unfinished = sum_.add_up(recipe, capacity, rows.data);
  p_.end.finish(recipe, p_.stream(Stream::noise), unfinished, false, next);
}

void RecordedSteps::prepare_ahead(const StepRecipe& recipe) {
  ahead_.reset();
  if (std::holds_alternative<Candidates>(recipe.draw) || p_.train.size() == 0 || p_.streamed)
    return;
  const std::size_t examples = p_.numbering->count();
  const auto list_size = static_cast<std::size_t>(batch_capacity(recipe.draw, p_.train.size()));
  if (DrawnAhead::steps_of(p_.gpu, examples, list_size) < 2) return;
  ahead_.emplace(p_.gpu, examples, list_size);
}

bool RecordedSteps::draw_ahead(const Draw& draw, std::uint64_t step, std::size_t wanted) {
  if (ahead_ && ahead_->has(step)) return false;
  const std::size_t prepared = sum_.prepare_draw(draw, step);
  if (ahead_) ahead_->draw(sum_.sample_args(draw), step, wanted, prepared);
  return true;
}

std::vector<Gpu::Recording> RecordedSteps::record_for_rows(
    const StepRecipe& recipe, const std::function<void(const StepRows&)>& work) {
  std::vector<StepRows> places;
  if (p_.streamed) {
    p_.streamed->reserve(static_cast<std::size_t>(batch_capacity(recipe.draw, p_.train.size())));
    for (std::size_t b = 0; b < RowStream::kBuffers; ++b) places.push_back(p_.streamed->rows(b));
  } else {
    places.push_back({.data = p_.train.data()});
    if (ahead_) places[0].batches = ahead_->batches();
  }
  std::vector<Gpu::Recording> recordings;
  recordings.reserve(places.size());
  for (const StepRows& rows : places)
    recordings.push_back(p_.gpu.record([work, rows] { work(rows); }));
  return recordings;
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
      kind,
      capacity,
      record_for_rows(recipe, [this, recipe, capacity](
                                  const StepRows& rows) { launch_step(recipe, capacity, rows); }),
      {}});
  if ((!ahead_ && !p_.streamed) || StepEnd::has_separate_update(recipe)) return;
  recorded_->starts = record_for_rows(recipe, [this, recipe, capacity](const StepRows& rows) {
    sum_.begin(recipe, capacity, rows);
  });
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
                           record_for_rows(recipe,
                                           [this, recipe, finish](const StepRows& rows) {
                                             sum_.launch(recipe, rows);
                                             ranked_.launch();
                                             finish();
                                           }),
                           {}});
  else
    joined_.emplace(
        Joined{kind,
               record_for_rows(recipe,
                               [this, recipe](const StepRows& rows) { sum_.launch(recipe, rows); }),
               p_.gpu.record(finish)});
}

void RecordedSteps::run_alone(const StepRecipe& recipe, const StepCursor& cursor,
                              std::span<ListedStep> steps) {
  record(recipe);
  p_.position.start(cursor, steps);
  std::size_t parts = kPartsAtOnce;  // number of parts of streamed rows submitted at once
  for (std::size_t done = 0;;) {
    bool is_started = false;  // whether the step before has started step `done`
    for (std::size_t i = 0; p_.streamed && i < parts && done < steps.size(); ++i)
      done += replay_streamed(recipe, cursor.first + done, steps.size() - done);
    for (; !p_.streamed && done < steps.size(); ++done) {
      if (draw_ahead(recipe.draw, cursor.first + done, steps.size() - done)) is_started = false;
      if (!is_started) replay_start(0);
      is_started = true;
      p_.gpu.replay(recorded_->recordings[0]);
    }
    const StepCursor at =
        cursor.adapts_clip_norm != 0 ? p_.position.wait(steps) : p_.position.wait();
    const std::size_t submitted = done;
    done = at.index;  // the steps after this one were not executed
    if (at.pending != 0) {
      parts = std::max<std::size_t>(1, parts / 2);
      p_.end.complete(at, recipe, p_.stream(Stream::noise), false);
    } else if (at.oversized_batch != 0) {
      capacity_ = std::min(2 * std::int64_t{at.oversized_batch},
                           batch_capacity(recipe.draw, p_.train.size()));
      record(recipe);
      p_.position.raise_capacity(at);
    } else {
      ensure(done == submitted, "the device has left steps out");
      if (done == steps.size()) return;
    }
  }
}

void RecordedSteps::replay_start(std::size_t buffer) {
  if (!recorded_->starts.empty()) p_.gpu.replay(recorded_->starts[buffer]);
}

std::size_t RecordedSteps::replay_streamed(const StepRecipe& recipe, std::uint64_t first,
                                           std::size_t steps) {
  const RowStream::Part part = p_.streamed->stage(recipe.draw, first, steps);
  replay_start(part.buffer);
  for (std::size_t i = 0; i < part.steps; ++i) p_.gpu.replay(recorded_->recordings[part.buffer]);
  p_.streamed->launched(part);
  return part.steps;
}

void RecordedSteps::run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                               std::span<const ListedStep> steps) {
  record_joined(recipe);
  p_.position.start(cursor, steps);
  std::optional<RowStream::Part> part;
  std::size_t staged = 0;  // number of steps whose rows have been staged
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (p_.streamed && i == staged) {
      part = p_.streamed->stage(recipe.draw, cursor.first + i, steps.size() - i);
      staged += part->steps;
    }
    if (!part) (void)sum_.prepare_draw(recipe.draw, cursor.first + i);
    p_.gpu.replay(joined_->first[part ? part->buffer : 0]);
    if (part && i + 1 == staged) p_.streamed->launched(*part);
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

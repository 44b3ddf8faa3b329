#pragma once
// The CUDA engine, over any Gpu (see layer_wise.hpp). Whatever training changes stays on the
// device; a step is recorded once (a CUDA graph) and replayed, and the host waits once a run: more
// often only where double cannot decide a pair of normals, which the host then makes
// (step_end.hpp). Where there is a witness (runtime/gate/witness.hpp) it is launched step by step,
// and the host takes what leaves in between.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/batch_room.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/evaluation.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "runtime/device/cuda/model_state.hpp"
#include "runtime/device/cuda/ranked_sum.hpp"
#include "runtime/device/cuda/run_position.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/cuda/step_end.hpp"
#include "runtime/device/cuda/training_set.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/observed.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Gpu gpu, const Network& network, const EngineSettings& settings,
               std::int64_t large_dense = kLargeDense, bool may_be_fused = true)
      : gpu_(std::move(gpu)),
        network_(network),
        settings_(settings),
        passes_(
            gpu_, network_, settings.micro_batch,
            {.precision = may_be_fused ? device_precision(network_, gpu_.limits(),
                                                          settings.precision, transforms(settings))
                                       : settings.precision,
             .large_dense = large_dense,
             .limits = gpu_.limits(),
             .transforms = transforms(settings),
             .evaluates_by_library = settings.evaluate_with == EvaluateWith::cudnn},
            settings.say),
        state_(gpu_, network, settings.recipe),
        position_(gpu_, network.parameter_count),
        end_(gpu_, state_, position_.cursor(), position_.list()),
        unit_scale_(gpu_, 1),
        live_count_(gpu_, 1),
        all_count_(gpu_, 1),
        norm_total_(gpu_, 1),
        train_tally_(gpu_, 1),
        ranked_(gpu_, settings_, end_, train_tally_, state_.size()) {
    train_tally_.clear();
    const SumScale unit = sum_scale(1.0f, 1.0);
    unit_scale_.upload({&unit, 1});
    const DeviceLimits limits = gpu_.limits();
    const auto kernel = fused_kernel_for(network_, limits);
    const auto transformed = DeviceModelState::transforms(settings.recipe)
                                 ? fused_kernel_for(network_, limits, true)
                                 : std::nullopt;
    if (kernel && may_be_fused && settings.evaluate_with == EvaluateWith::ours)
      fused_.emplace(gpu_, network_, *kernel, transformed, settings.micro_batch,
                     settings.diagnostics);
  }

  /// Whether clipped sums are made by a fused kernel; else layer by layer.
  bool is_fused() const { return fused_.has_value(); }

  void load(const Dataset& train) override {
    ensure(settings_.class_weights.empty() && !has_target(network_.spec.loss),
           "CUDA trains with no class weights and no targets");
    if (!fits(train) || train.classes != network_.classes)
      throw InputError("the training set's shape or classes do not fit the model");
    if (train.whole_size() >= std::size_t{1} << 31)
      throw InputError("expected fewer than 2^31 training examples");
    is_loaded_ = true;
    train_ = {gpu_, train, passes_.layout().storage.sorts_words};
    sample_ = {gpu_, train_.size()};
    drawn_ = {gpu_, train_.size()};
    norms_ = {gpu_, keeps_norms() ? train_.size() : 0};
    norms_.clear();
    const auto count = static_cast<std::uint32_t>(train_.size());
    all_count_.upload({&count, 1});
    recorded_.reset();  // it holds addresses of the buffers before
    recorded_sum_.reset();
    joined_.reset();
    room_ = 0;
    if (!settings_.ranks->alone()) ranked_.choose();
    reserve(public_room(settings_.recipe.draw, settings_.expected_batch)
                .value_or(first_room(settings_.recipe.draw, train_.size(), 0.0)));
  }

  void set_state(const TrainState& s) override {
    ensure(s.norms.empty() || s.norms.size() == norms_.size(),
           "the state does not fit the training set");
    state_.set(s);
    norms_.upload(s.norms);
  }
  TrainState state() override {
    TrainState s = state_.get();
    s.norms = norms_.download();
    return s;
  }

  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    ensure(is_loaded_, "no training set is loaded");
    ensure(keeps_the_same(recipe, settings_.recipe), "the memory was laid out for another recipe");
    std::vector<ListedStep> steps = listed(recipe, scalars);
    StepCursor cursor{.first = first};
    if (const auto* const candidates = std::get_if<Candidates>(&recipe.draw))
      cursor.candidates = candidates->rule;
    for_each_submission(cursor, steps, [&](std::span<ListedStep> part) {
      if (settings_.witness != nullptr)
        run_watched(recipe, cursor, part);
      else if (!settings_.ranks->alone())
        run_joined(recipe, cursor, part);
      else
        run_recorded(recipe, cursor, part);
    });
  }

  /// The device moves the clipping norm, so that the host waits no more than in run().
  FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                              std::span<const StepScalars> scalars, const ClipRule& rule,
                              float clip, std::span<const std::int64_t> count_noise) override {
    validate(rule);
    ensure(std::holds_alternative<ClippedGradient>(recipe.contribution) && settings_.diagnostics &&
               settings_.witness == nullptr && scalars.size() == count_noise.size(),
           "a clipping norm cannot be followed here");
    if (!has_noise_in_range(rule) || !settings_.ranks->alone())
      return Engine::run_following(recipe, first, scalars, rule, clip, count_noise);
    std::vector<StepScalars> at_start;
    for (const StepScalars& s : scalars) at_start.push_back(scalars_at(rule, clip, s));
    std::vector<ListedStep> steps = listed(recipe, at_start);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].scalars = scalars[i];  // the device makes the others of them
      steps[i].count_noise = count_noise[i];
    }
    FollowedSteps followed;
    StepCursor cursor{.first = first, .follows = 1, .clip = rule};
    for_each_submission(cursor, steps, [&](std::span<ListedStep> part) {
      part[0].scalars = scalars_at(rule, clip, part[0].scalars);
      part[0].scale = scale_of(recipe, clip);
      run_recorded(recipe, cursor, part);
      for (const ListedStep& step : part) {
        const SumScale scale = scale_of(recipe, step.scalars.clip_norm);
        ensure(step.scale.max_norm == scale.max_norm && step.scale.grid == scale.grid &&
                   step.scale.inverse_grid == scale.inverse_grid,
               "the device has added on another grid than that of the clipping norm");
        followed.scalars.push_back(step.scalars);
        followed.noisy_counts.push_back(step.noisy_count);
      }
      clip = next_clip(rule, part.back().scalars.clip_norm, part.back().noisy_count);
    });
    return followed;
  }

  /// For benchmarks: sums what the batch that was last drawn adds, so many times, and nothing else.
  void sum_again(const StepRecipe& recipe, float clip_norm, std::size_t times) {
    ensure(train_.size() > 0, "no training set is loaded");
    const std::int64_t room = room_of(recipe);
    if (!recorded_sum_ || recorded_sum_->recipe != recipe) {
      recorded_sum_.reset();
      recorded_sum_.emplace(Recorded{
          recipe, room, gpu_.record([this, recipe, room] { (void)add_up(recipe, room); })});
    }
    StepScalars scalars{};
    scalars.clip_norm = clip_norm;
    const ListedStep step{scalars, scale_of(recipe, clip_norm)};
    StepCursor cursor;
    cursor.scale = step.scale;
    gpu_.upload(position_.cursor(), &cursor, sizeof cursor);
    for (std::size_t i = 0; i < times; ++i) gpu_.replay(recorded_sum_->recording);
    end_.clear_sum();  // it is of no step
    (void)position_.wait();
  }

  void measure_norms() override {
    ensure(is_loaded_ && keeps_norms(), "norms are not kept");
    if (train_.size() == 0) return;
    if (fused_) {
      fused_->norms(all_count_.get(), train_.size(), train_.data(), state_.parameters(),
                    norms_.get());
      return;
    }
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    for (std::size_t first = 0; first < train_.size(); first += capacity) {
      const Batch batch{
          .count = all_count_.get(),
          .first = static_cast<std::int32_t>(first),
          .capacity = static_cast<std::int32_t>(std::min(capacity, train_.size() - first))};
      passes_.forward(batch, train_.data(), nullptr, state_.parameters());
      passes_.backward();
      passes_.norms(norms_.get());
    }
  }
  std::vector<float> norms() override { return norms_.download(); }
  /// No norm leaves the device, but their sum.
  std::uint64_t norm_total(double max_norm, double grid) override {
    ensure(is_loaded_ && keeps_norms(), "norms are not kept");
    if (train_.size() == 0) return 0;
    gpu_.total_norms({.norms = norms_.get(),
                      .n = static_cast<std::int64_t>(norms_.size()),
                      .max_norm = max_norm,
                      .grid = grid,
                      .total = norm_total_.get()});
    return norm_total_.download().front();
  }

  std::vector<float> logits(const Dataset& examples) override {
    ensure(fits(examples), "the test set does not fit the model");
    // Who does not train has all examples in flight that fit, in as few launches as can be.
    if (!fused_ && (train_.size() == 0 || passes_.capacity() == 0))
      reserve(train_.size() == 0 ? static_cast<std::int64_t>(examples.size()) : 0);
    return evaluation_.logits(
        gpu_, network_.outputs, examples,
        [&](const std::uint32_t* count, std::size_t n, const DeviceData& data, float* to) {
          if (fused_)
            fused_->forward(count, n, data, state_.parameters(), to);
          else
            passes_.logits(count, n, data, state_.parameters(), to);
        });
  }

  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override {
    ensure(train_.size() > 0, "no training set is loaded");
    const std::size_t d = network_.parameter_count;
    const auto groups = static_cast<std::size_t>(network_.groups);
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    Buffer<float> single(gpu_, gradients ? std::min(capacity, examples.size()) * d : 0);
    listed_ = {gpu_, std::min(capacity, examples.size())};
    PerExample out;
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (std::size_t at = 0; at < examples.size(); at += capacity) {
      const std::size_t n = std::min(capacity, examples.size() - at);
      for (const std::uint32_t e : examples.subspan(at, n))
        ensure(e < train_.size(), "no such training example");
      listed_.upload(examples.subspan(at, n));
      const Batch batch = listed_batch(n);
      passes_.forward(batch, train_.data(), listed_.get(), state_.parameters());
      passes_.backward();
      passes_.clip({}, unit_scale_.get());
      append(out.losses, passes_.losses().download(n));
      append(out.squared_norms, passes_.squared_norms().download(n * groups));
      if (!gradients) continue;
      passes_.store_gradients(single.get());
      append(out.gradients, single.download(n * d));
    }
    return out;
  }

  std::vector<std::uint32_t> sampled(std::uint64_t step) override {
    ensure(train_.size() > 0, "no training set is loaded");
    ensure(!keeps_norms(), "candidates are drawn by norms, which change");
    SampleArgs args = sample_args(settings_.recipe.draw);
    args.stream.step = step;
    draw_poisson(gpu_, args, sample_.space());
    return drawn_.download(sample_.count());
  }

  Diagnostics diagnostics() override {
    return settings_.ranks->alone() ? take_tally(train_tally_) : ranked_.take_seen();
  }

 private:
  /// A step of ranks: in two recordings, or in one where their devices add up.
  struct Joined {
    StepRecipe recipe;
    Gpu::Recording first;
    std::optional<Gpu::Recording> second;
  };
  struct Recorded {
    StepRecipe recipe;  ///< but for what lies in device memory
    std::int64_t room;  ///< examples of a batch at most
    Gpu::Recording recording;
  };

  bool fits(const Dataset& data) const {
    const WordVectors* const v = data.vectors.get();
    return data.shape == network_.input && data.words == network_.text.words &&
           (v != nullptr ? v->columns == network_.text.columns && v->rows == data.words
                         : network_.text.columns == 0);
  }
  static bool transforms(const EngineSettings& settings) {
    return DeviceModelState::transforms(settings.recipe);
  }
  bool keeps_norms() const { return std::holds_alternative<Candidates>(settings_.recipe.draw); }

  /// Makes room for micro-batches of so many examples.
  void reserve(std::int64_t examples) {
    if (!passes_.reserve(examples)) return;
    recorded_.reset();  // they hold addresses of the buffers before
    recorded_sum_.reset();
  }

  /// Examples that a batch of a recorded step has room for. Blocks without examples leave at once.
  std::int64_t room_of(const StepRecipe& recipe) const {
    return std::max(room_, first_room(recipe.draw, train_.size(), settings_.expected_batch));
  }

  /// A recipe but for the numbers that recorded steps find in device memory.
  static StepRecipe without_numbers(StepRecipe recipe) {
    if (auto* const candidates = std::get_if<Candidates>(&recipe.draw)) candidates->rule = {};
    return recipe;
  }

  /// The first n examples of a list that the host gives.
  Batch listed_batch(std::size_t n) {
    const auto count = static_cast<std::uint32_t>(n);
    live_count_.upload({&count, 1});
    return {.count = live_count_.get(), .first = 0, .capacity = static_cast<std::int32_t>(n)};
  }

  static SumScale scale_of(const StepRecipe& recipe, float clip_norm) {
    const double grid = bound_of(recipe.contribution, static_cast<double>(clip_norm)).grid;
    return sum_scale(clip_norm, grid);
  }

  /// What the device reads of each step. Throws where a number is out of range.
  std::vector<ListedStep> listed(const StepRecipe& recipe, std::span<const StepScalars> scalars) {
    validate(recipe);
    UpdateArgs checked = state_.update_args(recipe);
    checked.released = state_.parameters();  // of no step yet
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

  /// Calls body(part) with the steps of one submission after the other, cursor.first being the
  /// number of the first.
  template <class Body>
  void for_each_submission(StepCursor& cursor, std::span<ListedStep> steps, const Body& body) {
    const std::uint64_t first = cursor.first;
    for (std::size_t at = 0; at < steps.size(); at += position_.max_steps()) {
      cursor.first = first + at;
      body(steps.subspan(at, std::min(position_.max_steps(), steps.size() - at)));
    }
  }

  /// Whether the noise of every clipping norm is in the range of rounded normals: a norm is 2^20 to
  /// 2^21 units of its grid. The host checks each step's otherwise.
  static bool has_noise_in_range(const ClipRule& rule) {
    const double s = rule.noise_multiplier * rule.sensitivity;
    return s * kMinUnits >= kMinRoundedNormalS &&
           2.0 * s * kMinUnits * (1.0 + 0x1p-20) <= kLargestRoundedNormalS;
  }

  /// cursor: what is the same for all steps; the number of the first. Where the clipping norm
  /// moves, `steps` is what the device has made of them.
  void run_recorded(const StepRecipe& recipe, const StepCursor& cursor,
                    std::span<ListedStep> steps) {
    record(recipe);
    position_.start(cursor, steps);
    for (std::size_t done = 0;;) {
      for (; done < steps.size(); ++done) gpu_.replay(recorded_->recording);
      const StepCursor at = cursor.follows != 0 ? position_.wait(steps) : position_.wait();
      done = at.index;  // the steps behind it were left out
      if (at.pending != 0) {
        end_.complete(at, recipe, stream(Stream::noise), false);
      } else if (at.crowded != 0) {
        room_ = std::min(2 * std::int64_t{at.crowded}, batch_capacity(recipe.draw, train_.size()));
        record(recipe);
        position_.make_room(at);
      } else {
        ensure(done == steps.size(), "the device has left steps out");
        return;
      }
    }
  }

  /// Steps whose sums the ranks add up. In one recording the devices do; in two the host does, in
  /// between. Either way it waits for each step: where a pair of normals is undecided, the next
  /// sum over ranks must not be made from what is left of this one.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps) {
    record_joined(recipe);
    position_.start(cursor, steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      gpu_.replay(joined_->first);
      StepCursor at = position_.wait();
      if (joined_->second) {
        ranked_.join();
        gpu_.replay(*joined_->second);
        at = position_.wait();
      } else {
        ranked_.see();
      }
      if (at.pending != 0) end_.complete(at, recipe, stream(Stream::noise), false);
    }
    (void)position_.wait();
  }

  /// Launches all of a step up to its sum and its tally, which are complete then. There is memory
  /// for any batch, but for a probability below 1e-30.
  void launch_sum(const StepRecipe& recipe) {
    const std::int64_t room = batch_capacity(recipe.draw, train_.size());
    draw(recipe, room);
    const Unfinished left = add_up(recipe, room);
    if (left.sums.slabs != nullptr) fused_->add(left.sums, end_.sum());
    if (left.tally.total != nullptr) add_tally(gpu_, left.tally);
  }

  void record_joined(const StepRecipe& recipe) {
    const StepRecipe kind = without_numbers(recipe);
    if (joined_ && joined_->recipe == kind) return;
    joined_.reset();
    reserve(public_room(recipe.draw, settings_.expected_batch).value_or(room_of(recipe)));
    const auto finish = [this, recipe] { end_.finish(recipe, stream(Stream::noise), {}, false); };
    if (ranked_.is_on_device())
      joined_.emplace(Joined{kind,
                             gpu_.record([this, recipe, finish] {
                               launch_sum(recipe);
                               ranked_.launch();
                               finish();
                             }),
                             {}});
    else
      joined_.emplace(
          Joined{kind, gpu_.record([this, recipe] { launch_sum(recipe); }), gpu_.record(finish)});
  }

  void launch_step(const StepRecipe& recipe, std::int64_t room) {
    draw(recipe, room);
    const Unfinished left = add_up(recipe, room);
    end_.finish(recipe, stream(Stream::noise), left, false);
  }

  /// Records a step, unless that has been done.
  void record(const StepRecipe& recipe) {
    const StepRecipe kind = without_numbers(recipe);
    if (recorded_ && recorded_->recipe != kind) recorded_.reset();
    const std::int64_t room = room_of(recipe);
    if (recorded_ && recorded_->room >= room) return;
    recorded_.reset();
    reserve(public_room(recipe.draw, settings_.expected_batch).value_or(room));
    recorded_.emplace(
        Recorded{kind, room, gpu_.record([this, recipe, room] { launch_step(recipe, room); })});
  }

  void run_watched(const StepRecipe& recipe, const StepCursor& cursor,
                   std::span<const ListedStep> steps) {
    position_.start(cursor, steps);
    for (std::size_t i = 0; i < steps.size(); ++i)
      take_watched_step(recipe, cursor.first + i, steps[i]);
    (void)position_.wait();
  }

  /// The same launches, but that the sum is complete before there is noise, and what is released is
  /// in memory before the update. A batch that is too large fails before anything leaves.
  void take_watched_step(const StepRecipe& recipe, std::uint64_t number, const ListedStep& step) {
    Witness* const witness = settings_.witness;
    Observer* const observes = observer(witness);
    const Leaving leaving = released_sum(number, step.scale.grid, step.scalars.noise_std);
    const RandomStream noise = stream(Stream::noise);
    const std::int64_t room = batch_capacity(recipe.draw, train_.size());

    draw(recipe, room);
    (void)position_.wait();
    if (observes != nullptr)
      show_batch(witness, number, recipe.draw, drawn_.download(sample_.count()));

    const Unfinished left = add_up(recipe, room);
    if (left.sums.slabs != nullptr) fused_->add(left.sums, end_.sum());
    if (observes != nullptr) observes->adds_noise(leaving, sums());

    end_.finish(recipe, noise, {.sums = {}, .tally = left.tally}, true);
    if (const StepCursor at = position_.wait(); at.pending != 0)
      end_.complete(at, recipe, noise, true);
    std::vector<float> values = end_.download_released();
    show_witness(witness, leaving, std::span(values));
    end_.upload_released(values);

    end_.update(recipe);
    if (observes == nullptr) return;
    const StepCursor at = position_.wait();
    StepScalars used = at.scalars;
    if (recipe.step_size) used.learning_rate = at.used_rate;
    observes->sees(update_record(number, recipe, used, state()));
  }

  /// The sum, in units of the grid.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> all;
    all.reserve(state_.size());
    for (const FixedPoint units : end_.download_sum())
      all.push_back(static_cast<std::int64_t>(units));
    return all;
  }

  /// The step's number is in the cursor.
  RandomStream stream(Stream purpose) const {
    return {settings_.generator, settings_.key.key(), purpose, 0};
  }

  // The parts of a step.

  SampleArgs sample_args(const Draw& draw) const {
    const auto* const poisson = std::get_if<Poisson>(&draw);
    const auto* const candidates = std::get_if<Candidates>(&draw);
    return {.stream = stream(Stream::sampling),
            .threshold = poisson != nullptr ? poisson->threshold : 0,
            .begin = train_.first(),
            .end = train_.first() + static_cast<std::int64_t>(train_.size()),
            .drawn = drawn_.get(),
            .norms = candidates != nullptr ? norms_.get() : nullptr,
            .rule = candidates != nullptr ? candidates->rule : ImportanceRule{},
            .first = train_.first()};
  }

  /// Begins the next step: its batch to drawn_, ascending, its numbers to the cursor.
  void draw(const StepRecipe& recipe, std::int64_t room) {
    SampleSpace space = sample_.space();
    space.cursor = position_.cursor();
    space.list = position_.list();
    space.capacity = static_cast<std::uint32_t>(batch_capacity(recipe.draw, train_.size()));
    space.room = static_cast<std::uint32_t>(room);
    space.counted = train_tally_.get();
    space.has_tail = StepEnd::has_tail(recipe);
    draw_poisson(gpu_, sample_args(recipe.draw), space);
  }

  /// The sum of what the batch's examples add, in units of the grid, but for what is returned.
  /// max_drawn: examples that it has room for.
  Unfinished add_up(const StepRecipe& recipe, std::int64_t max_drawn) {
    const Contribution& contribution = recipe.contribution;
    if (train_.size() == 0) {
      // The update of this step goes by the coordinates of its beginning.
      if (std::holds_alternative<TransformedGradient>(contribution))
        (void)state_.coordinates().refresh(position_.cursor());
      return {};
    }
    const SumScale* const scale = position_.scale();
    const FusedNetwork::Drawn drawn{.count = sample_.space().count,
                                    .examples = drawn_.get(),
                                    .room = max_drawn,
                                    .data = train_.data(),
                                    .parameters = state_.parameters(),
                                    .scale = scale};
    if (const auto* const clipped = std::get_if<ClippedGradient>(&contribution)) {
      if (fused_) return fused_->sum_clipped(drawn, *clipped, end_.sum(), train_tally_.get());
      return add_by_layers(max_drawn, nullptr, [&] { passes_.clip(*clipped, scale); });
    }
    if (std::holds_alternative<TransformedGradient>(contribution)) {
      if (fused_ && fused_->sums_transformed()) {
        const CoordinatesView view = state_.coordinates().refresh(position_.cursor());
        return fused_->sum_transformed(drawn, {.mean = view.centre, .inverse = view.inverse},
                                       end_.sum(), train_tally_.get());
      }
      const CoordinatesView view =
          state_.coordinates().refresh(passes_.layout(), position_.cursor());
      return add_by_layers(max_drawn, &view, [&] { passes_.clip({}, scale); });
    }
    const FusedAcceptance accept{.rule = position_.candidates(),
                                 .stream = stream(Stream::acceptance),
                                 .step = &position_.cursor()->step,
                                 .first = train_.first()};
    if (fused_)
      return fused_->sum_accepted(drawn, accept, norms_.get(), end_.sum(), train_tally_.get());
    return add_by_layers(max_drawn, nullptr, [&] {
      passes_.accept(accept.rule, accept.stream, accept.first, accept.step, norms_.get());
    });
  }

  /// choose: launches what gives each example of a micro-batch its factor.
  template <class Choose>
  Unfinished add_by_layers(std::int64_t max_drawn, const CoordinatesView* coordinates,
                           const Choose& choose) {
    const auto at_once = static_cast<std::int64_t>(passes_.capacity());
    Unfinished left{};
    for (std::int64_t first = 0; first < max_drawn; first += at_once) {
      const Batch batch{
          .count = sample_.space().count,
          .first = static_cast<std::int32_t>(first),
          .capacity = static_cast<std::int32_t>(std::min(at_once, max_drawn - first))};
      passes_.forward(batch, train_.data(), drawn_.get(), state_.parameters());
      passes_.backward(coordinates);
      choose();
      passes_.add(end_.sum(), position_.scale());
      if (!settings_.diagnostics) continue;
      // The last one's is left: the next one's passes write over it.
      if (first + at_once < max_drawn)
        add_tally(gpu_, passes_.tally(train_tally_.get()));
      else
        left.tally = passes_.tally(train_tally_.get());
    }
    return left;
  }

  Gpu gpu_;
  Network network_;
  EngineSettings settings_;
  LayerWiseNetwork passes_;
  std::optional<FusedNetwork> fused_;
  DeviceModelState state_;
  RunPosition position_;
  StepEnd end_;
  Buffer<SumScale> unit_scale_;  // of norms alone
  DeviceTrainingSet train_;
  SampleScratch sample_;
  Buffer<float> norms_;          // [examples] or empty, as last seen
  Buffer<std::uint32_t> drawn_;  // [examples], the present batch
  Buffer<std::uint32_t> live_count_;
  Buffer<std::uint32_t> all_count_;  // [1], all examples
  Buffer<unsigned long long> norm_total_;
  Buffer<std::uint32_t> listed_;  // examples that the host names
  DeviceEvaluation evaluation_;
  Buffer<Tally> train_tally_;
  std::int64_t room_ = 0;  // that a batch was found to need
  std::optional<Recorded> recorded_;
  std::optional<Recorded> recorded_sum_;  // of sum_again
  std::optional<Joined> joined_;
  RankedSum ranked_;  // where there are several ranks
  bool is_loaded_ = false;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

#pragma once
// The CUDA engine, over any Gpu (see layer_wise.hpp). Whatever training changes stays on the
// device; a step is recorded once (a CUDA graph) and replayed, and the host waits for nothing
// before a run's end. Where there is a witness (runtime/gate/witness.hpp) it is launched step by
// step, and the host takes what leaves in between.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/common/fixed_point.cuh"
#include "kernels/step/release.cuh"
#include "kernels/step/step_cursor.cuh"
#include "kernels/step/step_size.cuh"
#include "kernels/step/update.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/coordinates.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/observed.hpp"

namespace cudp::cuda {

/// Most examples that a recorded step has room for: 12 standard deviations and some more above the
/// expected batch. A larger batch (probability below 1e-30) makes the run fail, it is never cut.
inline std::int64_t batch_capacity(std::uint64_t threshold, std::size_t examples) {
  const double n = static_cast<double>(examples);
  const double q = static_cast<double>(threshold) * 0x1p-32;
  const double most = n * q + 12.0 * std::sqrt(n * q * (1.0 - q)) + 32.0;
  return static_cast<std::int64_t>(std::min(n, std::ceil(most)));
}

template <class Gpu>
class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Gpu gpu, const Network& network, const EngineSettings& settings,
               std::int64_t large_dense = kLargeDense, bool may_be_fused = true)
      : gpu_(std::move(gpu)),
        network_(network),
        settings_(settings),
        // Accepted directions have norm 1.
        grid_(sum_grid(settings.importance ? 1.0 : settings.clip.max_norm)),
        passes_(gpu_, network_, settings.micro_batch,
                {.precision = may_be_fused
                                  ? device_precision(network_, gpu_.limits(), settings.precision)
                                  : settings.precision,
                 .large_dense = large_dense,
                 .limits = gpu_.limits(),
                 .transforms = settings.coordinates.on}),
        parameters_(gpu_, network.parameter_count),
        moment1_(gpu_, settings.optimizer.kind != OptimizerKind::sgd ? network.parameter_count : 0),
        moment2_(gpu_, has_second_moment() ? network.parameter_count : 0),
        average_(gpu_, settings.keep_average ? network.parameter_count : 0),
        coordinates_(gpu_, settings.coordinates.on ? network.parameter_count : 0, network.groups),
        fixed_sum_(gpu_, network.parameter_count),
        released_(gpu_, network.parameter_count),
        host_pairs_(gpu_, kHostPairs),
        host_pair_count_(gpu_, 1),
        scalars_(gpu_, kScalars),
        cursor_(gpu_, 1),
        norm_parts_(gpu_,
                    strided_shape(static_cast<std::int64_t>(network.parameter_count), 64).grid.x),
        step_size_sum_(gpu_, 1),
        drawn_count_(gpu_, 1),
        live_count_(gpu_, 1),
        listed_(gpu_, static_cast<std::size_t>(passes_.capacity())),
        train_tally_(gpu_, 1),
        test_tally_(gpu_, 1) {
    parameters_.clear();
    moment1_.clear();
    moment2_.clear();
    average_.clear();
    fixed_sum_.clear();
    released_.clear();
    host_pair_count_.clear();
    step_size_sum_.clear();
    train_tally_.clear();
    const auto kernel = fused_kernel_for(network_, gpu_.limits());
    if (kernel && may_be_fused)
      fused_.emplace(gpu_, network_, *kernel, settings.micro_batch, settings.diagnostics);
  }

  /// Whether clipped sums are made by a fused kernel; else layer by layer.
  bool is_fused() const { return fused_.has_value(); }

  void load(const Dataset& train) override {
    if (!(train.shape == network_.input) || train.classes != network_.classes)
      throw InputError("the training set's shape or classes do not fit the model");
    if (train.size() == 0 || train.size() >= std::size_t{1} << 31)
      throw InputError("expected 1 to 2^31 - 1 training examples");
    examples_ = train.size();
    bytes_ = filled<std::uint8_t>(train.bytes);
    floats_ = filled<float>(train.floats);
    labels_ = filled<std::uint8_t>(train.labels);
    data_ = {.bytes = bytes_.get(),
             .floats = floats_.get(),
             .labels = labels_.get(),
             .scale = train.scale,
             .shift = train.shift};
    const std::size_t tiles = sample_space_tiles(examples_);
    flags_ = {gpu_, tiles * 16};
    offsets_ = {gpu_, tiles};
    drawn_ = {gpu_, examples_};
    norms_ = {gpu_, settings_.importance ? examples_ : 0};
    norms_.clear();
    recorded_.reset();  // it holds addresses of the buffers before
  }

  void set_state(const TrainState& s) override {
    ensure(s.parameters.size() == parameters_.size() && s.moment1.size() == moment1_.size() &&
               s.moment2.size() == moment2_.size() && s.average.size() == average_.size() &&
               s.mean.size() == coordinates_.mean().size() &&
               s.deviation.size() == coordinates_.deviation().size() &&
               (s.norms.empty() || s.norms.size() == norms_.size()),
           "the state does not fit the network and optimizer");
    parameters_.upload(s.parameters);
    moment1_.upload(s.moment1);
    moment2_.upload(s.moment2);
    average_.upload(s.average);
    step_size_sum_.upload({&s.step_size_sum, 1});
    coordinates_.mean().upload(s.mean);
    coordinates_.deviation().upload(s.deviation);
    norms_.upload(s.norms);
  }

  TrainState state() override {
    return {.parameters = parameters_.download(),
            .moment1 = moment1_.download(),
            .moment2 = moment2_.download(),
            .average = average_.download(),
            .step_size_sum = step_size_sum_.download().front(),
            .mean = coordinates_.mean().download(),
            .deviation = coordinates_.deviation().download(),
            .norms = norms_.download()};
  }

  void run(std::uint64_t first, std::span<const StepScalars> scalars,
           const std::function<void(Engine&)>& step) override {
    ensure(examples_ > 0, "no training set is loaded");
    UpdateArgs checked = update_args();
    for (const StepScalars& s : scalars) {
      checked.scalars = s;
      validate(checked);
      check_noise(grid_, s.noise_std);
    }
    const bool is_watched = witness() != nullptr;
    const std::vector<Verb> verbs = verbs_of(step);
    if (!is_watched) record(verbs);
    for (std::size_t done = 0; done < scalars.size(); done += kScalars) {
      const auto part = scalars.subspan(done, std::min(kScalars, scalars.size() - done));
      const StepCursor start{first + done, 0, 0, 0, {}};
      scalars_.upload(part);
      make_host_pairs(first + done, part);
      cursor_.upload({&start, 1});
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (is_watched)
          take_watched_step(first + done + i, part[i], verbs);
        else
          gpu_.replay(recorded_->recording);
      }
      if (cursor_.download().front().failed != 0) throw Error(kBatchTooLarge);
    }
  }

  void measure_norms() override {
    ensure(examples_ > 0 && settings_.importance, "norms are not kept");
    const auto count = static_cast<std::uint32_t>(examples_);
    live_count_.upload({&count, 1});
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    for (std::size_t first = 0; first < examples_; first += capacity) {
      const Batch batch{
          .count = live_count_.get(),
          .first = static_cast<std::int32_t>(first),
          .capacity = static_cast<std::int32_t>(std::min(capacity, examples_ - first))};
      passes_.forward(batch, data_, nullptr, parameters_.get(), true);
      passes_.backward();
      passes_.norms(norms_.get());
    }
  }
  std::vector<float> norms() override { return norms_.download(); }
  void set_clip_norm(float max_norm) override {
    if (max_norm == settings_.clip.max_norm) return;
    settings_.clip.max_norm = max_norm;
    grid_ = sum_grid(max_norm);
    recorded_.reset();  // it holds the norm and the grid before
  }

  void set_importance(const ImportanceRule& rule) override {
    if (rule == rule_) return;
    rule_ = rule;
    recorded_.reset();  // it holds the rule before
  }

  void sample_candidates() override { note(&DeviceEngine::launch_candidates); }
  void sum_accepted_directions() override { note(&DeviceEngine::launch_accepted_sum); }
  void sample_batch() override { note(&DeviceEngine::launch_sample); }
  void sum_clipped_gradients() override { note(&DeviceEngine::launch_clipped_sum); }
  void sum_coordinate_clipped_gradients() override { note(&DeviceEngine::launch_transformed_sum); }
  void adapt_learning_rate() override { note(&DeviceEngine::launch_step_size); }
  void add_noise_and_update() override { note(&DeviceEngine::launch_update); }
  void add_noise_restore_and_update() override { note(&DeviceEngine::launch_restoring_update); }

  Accuracy evaluate(const Dataset& test, bool averaged) override {
    ensure(test.shape == network_.input, "the test set does not fit the model");
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    const auto features = static_cast<std::size_t>(test.shape.size());
    const std::size_t slab = std::min(capacity, test.size());
    Buffer<Gpu, std::uint8_t> bytes(gpu_, test.is_bytes() ? slab * features : 0);
    Buffer<Gpu, float> floats(gpu_, test.is_bytes() ? 0 : slab * features);
    Buffer<Gpu, std::uint8_t> labels(gpu_, slab);
    const DeviceData data{.bytes = bytes.get(),
                          .floats = floats.get(),
                          .labels = labels.get(),
                          .scale = test.scale,
                          .shift = test.shift};
    test_tally_.clear();
    for (std::size_t at = 0; at < test.size(); at += slab) {
      const std::size_t n = std::min(slab, test.size() - at);
      if (test.is_bytes())
        bytes.upload(std::span(test.bytes).subspan(at * features, n * features));
      else
        floats.upload(std::span(test.floats).subspan(at * features, n * features));
      labels.upload(std::span(test.labels).subspan(at, n));
      const Batch batch = listed_batch(n);
      passes_.forward(batch, data, nullptr,
                      averaged && settings_.keep_average ? average_.get() : parameters_.get(),
                      false);
      passes_.tally(false, test_tally_.get());
    }
    const Tally t = test_tally_.download().front();
    const double n = static_cast<double>(test.size());
    return {.correct = t.correct, .total = test.size(), .mean_loss = n > 0 ? t.loss / n : 0.0};
  }

  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override {
    ensure(examples_ > 0, "no training set is loaded");
    const std::size_t d = network_.parameter_count;
    const auto groups = static_cast<std::size_t>(network_.groups);
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    Buffer<Gpu, float> single(gpu_, gradients ? std::min(capacity, examples.size()) * d : 0);
    PerExample out;
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (std::size_t at = 0; at < examples.size(); at += capacity) {
      const std::size_t n = std::min(capacity, examples.size() - at);
      for (const std::uint32_t e : examples.subspan(at, n))
        ensure(e < examples_, "no such training example");
      listed_.upload(examples.subspan(at, n));
      const Batch batch = listed_batch(n);
      passes_.forward(batch, data_, listed_.get(), parameters_.get(), true);
      passes_.backward();
      passes_.clip(settings_.clip);
      append(out.losses, passes_.losses().download(n));
      append(out.squared_norms, passes_.squared_norms().download(n * groups));
      if (!gradients) continue;
      passes_.store_gradients(single.get());
      append(out.gradients, single.download(n * d));
    }
    return out;
  }

  std::vector<std::uint32_t> sampled(std::uint64_t step) override {
    ensure(examples_ > 0, "no training set is loaded");
    const StepCursor at{step, 0, 0, step, {}};
    cursor_.upload({&at, 1});
    draw(false);
    return drawn_.download(drawn_count_.download().front());
  }

  Diagnostics diagnostics() override {
    const Tally t = train_tally_.download().front();
    train_tally_.clear();
    return {.loss = t.loss,
            .norm = t.norm,
            .clipped = t.clipped,
            .examples = t.examples,
            .non_finite = t.non_finite};
  }

 private:
  /// Launches what one verb of a step stands for.
  using Verb = void (DeviceEngine::*)();
  struct Recorded {
    std::vector<Verb> step;
    typename Gpu::Recording recording;
    std::int64_t capacity;
  };
  static constexpr std::size_t kScalars = 4096;  // steps between two waits
  /// Of so many steps, some 2^-25 of the numbers.
  static constexpr std::size_t kHostPairs = std::size_t{1} << 16;

  bool has_second_moment() const {
    return settings_.optimizer.kind == OptimizerKind::adam ||
           settings_.optimizer.kind == OptimizerKind::adamw;
  }
  /// Of candidates: as many as there would be if every norm were as large as it can be. Blocks
  /// without examples leave at once.
  std::int64_t capacity(bool candidates = false) const {
    return batch_capacity(candidates ? candidate_threshold(rule_, static_cast<float>(rule_.clip))
                                     : settings_.sampling_threshold,
                          examples_);
  }

  template <class T>
  Buffer<Gpu, T> filled(const std::vector<T>& from) {
    Buffer<Gpu, T> b(gpu_, from.size());
    b.upload(from);
    return b;
  }
  /// The first n examples of a list that the host gives.
  Batch listed_batch(std::size_t n) {
    const auto count = static_cast<std::uint32_t>(n);
    live_count_.upload({&count, 1});
    return {.count = live_count_.get(), .first = 0, .capacity = static_cast<std::int32_t>(n)};
  }

  void note(Verb verb) {
    ensure(listing_ != nullptr, "a verb of a step was called outside run()");
    listing_->push_back(verb);
  }

  /// Asks `step` which verbs it is made of.
  std::vector<Verb> verbs_of(const std::function<void(Engine&)>& step) {
    std::vector<Verb> verbs;
    listing_ = &verbs;
    step(*this);
    listing_ = nullptr;
    return verbs;
  }

  void launch_step(const std::vector<Verb>& verbs) {
    is_released_ = false;
    launch(gpu_, "begin step", begin_step_kernel,
           BeginStep{.cursor = cursor_.get(), .list = scalars_.get()});
    for (const Verb launch_verb : verbs) (this->*launch_verb)();
  }

  /// Records a step, unless that has been done.
  void record(const std::vector<Verb>& verbs) {
    if (recorded_ && recorded_->step == verbs) return;
    recorded_.reset();
    auto recording = gpu_.record([this, verbs] { launch_step(verbs); });
    const bool candidates =
        std::ranges::find(verbs, &DeviceEngine::launch_candidates) != verbs.end();
    recorded_.emplace(Recorded{verbs, std::move(recording), capacity(candidates)});
  }

  /// The step that the host follows while it is launched.
  struct Watched {
    std::uint64_t step;
    StepScalars scalars;
  };

  void take_watched_step(std::uint64_t step, const StepScalars& scalars,
                         const std::vector<Verb>& verbs) {
    watched_ = {step, scalars};
    try {
      launch_step(verbs);
    } catch (...) {
      watched_.reset();
      throw;
    }
    watched_.reset();
  }

  /// A batch that is too large fails here, before anything leaves.
  void watch_drawn(std::uint64_t threshold) {
    if (!watched_) return;
    if (cursor_.download().front().failed != 0) throw Error(kBatchTooLarge);
    if (observer() != nullptr)
      show_batch(watched_->step, threshold, drawn_.download(drawn_count_.download().front()));
  }

  /// The sum, in units of the grid.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> all;
    all.reserve(fixed_sum_.size());
    for (const FixedPoint units : fixed_sum_.download())
      all.push_back(static_cast<std::int64_t>(units));
    return all;
  }

  /// The step's number is in the cursor.
  RandomStream stream(Stream purpose) const {
    return {settings_.generator, settings_.key.key(), purpose, 0};
  }

  // The verbs.

  void launch_sample() {
    draw(false);
    watch_drawn(settings_.sampling_threshold);
  }
  void launch_candidates() {
    draw(true);
    watch_drawn(kCandidates);
  }
  void launch_clipped_sum() {
    if (fused_)
      fused_->sum_clipped(drawn_count_.get(), capacity(), data_, drawn_.get(), parameters_.get(),
                          settings_.clip, fixed_sum_.get(), train_tally_.get());
    else
      add_clipped(nullptr, false);
  }
  void launch_accepted_sum() { add_clipped(nullptr, true); }
  void launch_transformed_sum() {
    const CoordinatesView view = coordinates_.refresh(passes_.layout());
    add_clipped(&view, false);
  }
  void launch_step_size() {
    release();
    launch(gpu_, "released norm", released_norm_kernel,
           ReleasedNorm{.released = released_.get(),
                        .n = static_cast<std::int64_t>(released_.size()),
                        .scalars = &cursor_.get()->scalars,
                        .parts = norm_parts_.get()});
    launch(gpu_, "step size", adapt_step_size_kernel,
           AdaptStepSize{.settings = settings_.step_size,
                         .parts = norm_parts_.get(),
                         .count = static_cast<int>(norm_parts_.size()),
                         .sum = step_size_sum_.get(),
                         .cursor = cursor_.get()});
  }
  void launch_update() { update({}); }
  void launch_restoring_update() { update(settings_.coordinates); }

  /// The batch of the present step to drawn_, ascending.
  void draw(bool candidates) {
    const SampleArgs args{.stream = stream(Stream::sampling),
                          .threshold = settings_.sampling_threshold,
                          .begin = 0,
                          .end = static_cast<std::int64_t>(examples_),
                          .drawn = drawn_.get(),
                          .norms = candidates ? norms_.get() : nullptr,
                          .rule = rule_};
    const SampleSpace space{.flags = flags_.get(),
                            .offsets = offsets_.get(),
                            .count = drawn_count_.get(),
                            .step = step_number()};
    draw_poisson(gpu_, args, space);
    launch(
        gpu_, "watch batch", watch_batch_kernel,
        WatchBatch{.cursor = cursor_.get(),
                   .count = drawn_count_.get(),
                   .capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                       static_cast<std::uint64_t>(capacity(candidates)), settings_.largest_sum))});
  }

  void add_clipped(const CoordinatesView* coordinates, bool candidates) {
    const auto at_once = static_cast<std::int64_t>(passes_.capacity());
    const std::int64_t most = capacity(candidates);
    for (std::int64_t first = 0; first < most; first += at_once) {
      const Batch batch{.count = drawn_count_.get(),
                        .first = static_cast<std::int32_t>(first),
                        .capacity = static_cast<std::int32_t>(std::min(at_once, most - first))};
      passes_.forward(batch, data_, drawn_.get(), parameters_.get(), true);
      passes_.backward(coordinates);
      if (candidates)
        passes_.accept(rule_, stream(Stream::acceptance), step_number(), norms_.get());
      else
        passes_.clip(settings_.clip);
      passes_.add_clipped(fixed_sum_.get(), static_cast<float>(1.0 / grid_));
      if (settings_.diagnostics) passes_.tally(true, train_tally_.get());
    }
  }

  /// Once a step.
  void release() {
    if (std::exchange(is_released_, true)) return;
    if (watched_)
      if (Observer* const o = observer()) o->adds_noise(leaving(), sums());
    launch(gpu_, "release", release_kernel,
           ReleaseFixed{.sum = fixed_sum_.get(),
                        .grid = grid_,
                        .noise = stream(Stream::noise),
                        .step = step_number(),
                        .scalars = &cursor_.get()->scalars,
                        .pairs = host_pairs_.get(),
                        .pair_count = host_pair_count_.get(),
                        .n = static_cast<std::int64_t>(released_.size()),
                        .released = released_.get()});
    if (!watched_) return;
    std::vector<float> values = released_.download();
    show_witness(leaving(), std::span(values));
    released_.upload(values);
  }

  Leaving leaving() const {
    return released_sum(watched_->step, grid_, watched_->scalars.noise_std);
  }

  /// Makes those rounded normals of steps first .. first + scalars.size() - 1 that double cannot
  /// decide on the host. scalars: as they are in scalars_.
  void make_host_pairs(std::uint64_t first, std::span<const StepScalars> scalars) {
    host_pair_count_.clear();
    const ListUndecided args{.noise = stream(Stream::noise),
                             .first = first,
                             .scalars = scalars_.get(),
                             .steps = static_cast<std::int64_t>(scalars.size()),
                             .n = static_cast<std::int64_t>(released_.size()),
                             .grid = grid_,
                             .list = host_pairs_.get(),
                             .count = host_pair_count_.get(),
                             .capacity = static_cast<std::uint32_t>(host_pairs_.size())};
    launch(gpu_, "undecided noise", list_undecided_kernel, args);
    const std::uint32_t count = host_pair_count_.download().front();
    if (count == 0) return;
    if (count > args.capacity) throw Error("the noise of a step cannot be decided on the device");
    std::vector<HostPair> pairs = host_pairs_.download();
    pairs.resize(count);
    for (HostPair& p : pairs) {
      RandomStream s = args.noise;
      s.step = p.step;
      const double std = static_cast<double>(scalars[p.step - first].noise_std);
      p.k = exact_rounded_pair(s, p.pair, p.words, std / grid_);
    }
    host_pairs_.upload(pairs);
  }

  /// Without the step's scalars, which the kernel finds in the cursor.
  UpdateArgs update_args() {
    UpdateArgs args{};
    args.released = released_.get();
    args.parameters = parameters_.get();
    args.moment1 = moment1_.get();
    args.moment2 = moment2_.get();
    args.average = average_.get();
    args.end = static_cast<std::int64_t>(parameters_.size());
    args.optimizer = settings_.optimizer;
    args.mean = coordinates_.mean().get();
    args.deviation = coordinates_.deviation().get();
    args.scale = coordinates_.scale();
    return args;
  }

  void update(const CoordinateSettings& coordinates) {
    release();
    UpdateArgs args = update_args();
    args.coordinates = coordinates;
    gpu_.launch("update", update_kernel_of(settings_.optimizer.kind), strided_shape(args.end, 64),
                args, &cursor_.get()->scalars);
    if (!watched_) return;
    if (Observer* const o = observer())
      o->sees(update_record(watched_->step, settings_, cursor_.download().front().scalars,
                            coordinates.on, state()));
  }

  const std::uint64_t* step_number() const { return &cursor_.get()->step; }

  Gpu gpu_;
  Network network_;
  EngineSettings settings_;
  double grid_;
  LayerWiseNetwork<Gpu> passes_;
  std::optional<FusedNetwork<Gpu>> fused_;
  Buffer<Gpu, float> parameters_;  // [d], and so the others down to released_, or empty
  Buffer<Gpu, float> moment1_;
  Buffer<Gpu, float> moment2_;
  Buffer<Gpu, float> average_;
  DeviceCoordinates<Gpu> coordinates_;
  Buffer<Gpu, FixedPoint> fixed_sum_;
  Buffer<Gpu, float> released_;
  Buffer<Gpu, HostPair> host_pairs_;
  Buffer<Gpu, std::uint32_t> host_pair_count_;
  bool is_released_ = false;  // in the step that is being recorded
  Buffer<Gpu, StepScalars> scalars_;
  Buffer<Gpu, StepCursor> cursor_;
  Buffer<Gpu, double> norm_parts_;
  Buffer<Gpu, double> step_size_sum_;
  std::size_t examples_ = 0;
  DeviceData data_;
  Buffer<Gpu, std::uint8_t> bytes_;
  Buffer<Gpu, float> floats_;
  Buffer<Gpu, std::uint8_t> labels_;
  Buffer<Gpu, std::uint16_t> flags_;  // sampling: see SampleSpace
  Buffer<Gpu, std::uint32_t> offsets_;
  Buffer<Gpu, float> norms_;  // [examples] or empty, as last seen
  ImportanceRule rule_;
  Buffer<Gpu, std::uint32_t> drawn_;  // [examples], the present batch
  Buffer<Gpu, std::uint32_t> drawn_count_;
  Buffer<Gpu, std::uint32_t> live_count_;
  Buffer<Gpu, std::uint32_t> listed_;  // [capacity], examples that the host names
  Buffer<Gpu, Tally> train_tally_;
  Buffer<Gpu, Tally> test_tally_;
  std::vector<Verb>* listing_ = nullptr;
  std::optional<Recorded> recorded_;
  std::optional<Watched> watched_;
};

}  // namespace cudp::cuda

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
#include "runtime/data/examples.hpp"
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
  const double max_drawn = n * q + 12.0 * std::sqrt(n * q * (1.0 - q)) + 32.0;
  return static_cast<std::int64_t>(std::min(n, std::ceil(max_drawn)));
}

template <class Gpu>
class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Gpu gpu, const Network& network, const EngineSettings& settings,
               std::int64_t large_dense = kLargeDense, bool may_be_fused = true)
      : gpu_(std::move(gpu)),
        network_(network),
        settings_(settings),
        passes_(gpu_, network_, settings.micro_batch,
                {.precision = may_be_fused
                                  ? device_precision(network_, gpu_.limits(), settings.precision)
                                  : settings.precision,
                 .large_dense = large_dense,
                 .limits = gpu_.limits(),
                 .transforms = transforms()}),
        parameters_(gpu_, network.parameter_count),
        moment1_(gpu_, has_first_moment(optimizer().kind) ? network.parameter_count : 0),
        moment2_(gpu_, has_second_moment(optimizer().kind) ? network.parameter_count : 0),
        average_(gpu_, optimizer().keep_average ? network.parameter_count : 0),
        coordinates_(gpu_, transforms() ? network.parameter_count : 0, network.groups),
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
        train_tally_(gpu_, 1) {
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
    ensure(settings_.class_weights.empty() && !has_target(network_.spec.loss),
           "CUDA trains with no class weights and no targets");
    if (!(train.shape == network_.input) || train.classes != network_.classes)
      throw InputError("the training set's shape or classes do not fit the model");
    if (train.size() == 0 || train.size() >= std::size_t{1} << 31)
      throw InputError("expected 1 to 2^31 - 1 training examples");
    examples_ = train.size();
    bytes_ = filled<std::uint8_t>(train.bytes);
    floats_ = train.is_coded() ? expanded(train) : filled<float>(train.floats);
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
    norms_ = {gpu_, keeps_norms() ? examples_ : 0};
    norms_.clear();
    recorded_.reset();  // it holds addresses of the buffers before
    recorded_sum_.reset();
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

  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    ensure(examples_ > 0, "no training set is loaded");
    ensure(keeps_the_same(recipe, settings_.recipe), "the memory was laid out for another recipe");
    validate(recipe);
    UpdateArgs checked = update_args(recipe);
    for (const StepScalars& s : scalars) {
      checked.scalars = s;
      validate(checked);
      validate(recipe, s);
    }
    // A recording has one clipping norm, and one grid.
    while (!scalars.empty()) {
      const float clip_norm = scalars.front().clip_norm;
      const auto other = std::ranges::find_if(
          scalars, [&](const StepScalars& s) { return s.clip_norm != clip_norm; });
      const auto alike = static_cast<std::size_t>(other - scalars.begin());
      run_alike({recipe, clip_norm}, first, scalars.first(alike));
      first += alike;
      scalars = scalars.subspan(alike);
    }
  }

  /// For benchmarks: sums what the batch that was last drawn adds, so many times, and nothing else.
  void sum_again(const StepRecipe& recipe, float clip_norm, std::size_t times) {
    ensure(examples_ > 0, "no training set is loaded");
    const Step step{recipe, clip_norm};
    if (!recorded_sum_ || recorded_sum_->step != step) {
      recorded_sum_.reset();
      recorded_sum_.emplace(Recorded{step, gpu_.record([this, step] { add_up(step); })});
    }
    for (std::size_t i = 0; i < times; ++i) gpu_.replay(recorded_sum_->recording);
    fixed_sum_.clear();             // it is of no step
    (void)drawn_count_.download();  // waits
  }

  void measure_norms() override {
    ensure(examples_ > 0 && keeps_norms(), "norms are not kept");
    const auto count = static_cast<std::uint32_t>(examples_);
    live_count_.upload({&count, 1});
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    for (std::size_t first = 0; first < examples_; first += capacity) {
      const Batch batch{
          .count = live_count_.get(),
          .first = static_cast<std::int32_t>(first),
          .capacity = static_cast<std::int32_t>(std::min(capacity, examples_ - first))};
      passes_.forward(batch, data_, nullptr, parameters_.get());
      passes_.backward();
      passes_.norms(norms_.get());
    }
  }
  std::vector<float> norms() override { return norms_.download(); }

  std::vector<float> logits(const Dataset& examples) override {
    ensure(examples.shape == network_.input, "the test set does not fit the model");
    const auto capacity = static_cast<std::size_t>(passes_.capacity());
    const auto features = static_cast<std::size_t>(examples.shape.size());
    const std::size_t slab = std::min(capacity, examples.size());
    Buffer<Gpu, std::uint8_t> bytes(gpu_, examples.is_bytes() ? slab * features : 0);
    Buffer<Gpu, float> floats(gpu_, examples.is_bytes() ? 0 : slab * features);
    std::vector<float> rows(floats.size());
    Buffer<Gpu, std::uint8_t> labels(gpu_, slab);
    const DeviceData data{.bytes = bytes.get(),
                          .floats = floats.get(),
                          .labels = labels.get(),
                          .scale = examples.scale,
                          .shift = examples.shift};
    std::vector<float> all;
    all.reserve(examples.size() * static_cast<std::size_t>(network_.outputs));
    for (std::size_t at = 0; at < examples.size(); at += slab) {
      const std::size_t n = std::min(slab, examples.size() - at);
      if (examples.is_bytes()) {
        bytes.upload(std::span(examples.bytes).subspan(at * features, n * features));
      } else {
        const auto part = std::span(rows).first(n * features);
        read_floats(examples, at, n, part);
        floats.upload(part);
      }
      labels.upload(std::span(examples.labels).subspan(at, n));
      passes_.forward(listed_batch(n), data, nullptr, parameters_.get());
      const std::vector<float> logits = passes_.logits(n);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
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
      passes_.forward(batch, data_, listed_.get(), parameters_.get());
      passes_.backward();
      passes_.clip({});
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
    ensure(!keeps_norms(), "candidates are drawn by norms, which change");
    const StepCursor at{step, 0, 0, step, {}};
    cursor_.upload({&at, 1});
    draw(settings_.recipe.draw);
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
  /// The step that a recording is of.
  struct Step {
    StepRecipe recipe;
    float clip_norm;
    bool operator==(const Step&) const = default;

    double grid() const {
      return bound_of(recipe.contribution, static_cast<double>(clip_norm)).grid;
    }
  };
  struct Recorded {
    Step step;
    typename Gpu::Recording recording;
  };
  static constexpr std::size_t kScalars = 4096;  // steps between two waits
  /// Room for the undecided pairs of so many steps, some 2^-25 of the numbers.
  static constexpr std::size_t kHostPairs = std::size_t{1} << 16;

  const OptimizerSettings& optimizer() const { return settings_.recipe.optimizer; }
  bool keeps_norms() const { return std::holds_alternative<Candidates>(settings_.recipe.draw); }
  bool transforms() const {
    return std::holds_alternative<TransformedGradient>(settings_.recipe.contribution);
  }
  /// Room for examples: of candidates as many as there would be if every norm were as large as it
  /// can be. Blocks without examples leave at once.
  std::int64_t capacity(const Draw& draw) const {
    if (const auto* const poisson = std::get_if<Poisson>(&draw))
      return batch_capacity(poisson->threshold, examples_);
    const ImportanceRule& rule = std::get<Candidates>(draw).rule;
    return batch_capacity(candidate_threshold(rule, static_cast<float>(rule.clip)), examples_);
  }

  template <class T>
  Buffer<Gpu, T> filled(const std::vector<T>& from) {
    Buffer<Gpu, T> b(gpu_, from.size());
    b.upload(from);
    return b;
  }
  /// Coded rows as dense floats, a part at a time on the host.
  Buffer<Gpu, float> expanded(const Dataset& train) {
    constexpr std::size_t kRows = 4096;
    const auto features = static_cast<std::size_t>(train.shape.size());
    Buffer<Gpu, float> b(gpu_, train.size() * features);
    std::vector<float> rows(std::min(kRows, train.size()) * features);
    for (std::size_t at = 0; at < train.size(); at += kRows) {
      const std::size_t n = std::min(kRows, train.size() - at);
      const auto part = std::span(rows).first(n * features);
      read_floats(train, at, n, part);
      b.upload(part, at * features);
    }
    return b;
  }
  /// The first n examples of a list that the host gives.
  Batch listed_batch(std::size_t n) {
    const auto count = static_cast<std::uint32_t>(n);
    live_count_.upload({&count, 1});
    return {.count = live_count_.get(), .first = 0, .capacity = static_cast<std::int32_t>(n)};
  }

  void run_alike(const Step& step, std::uint64_t first, std::span<const StepScalars> scalars) {
    const bool is_watched = settings_.witness != nullptr;
    if (!is_watched) record(step);
    for (std::size_t done = 0; done < scalars.size(); done += kScalars) {
      const auto part = scalars.subspan(done, std::min(kScalars, scalars.size() - done));
      const StepCursor start{first + done, 0, 0, 0, {}};
      scalars_.upload(part);
      make_host_pairs(first + done, part, step.grid());
      cursor_.upload({&start, 1});
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (is_watched)
          take_watched_step(first + done + i, part[i], step);
        else
          gpu_.replay(recorded_->recording);
      }
      if (cursor_.download().front().failed != 0) throw Error(kBatchTooLarge);
    }
  }

  void launch_step(const Step& step) {
    launch(gpu_, "begin step", begin_step_kernel,
           BeginStep{.cursor = cursor_.get(), .list = scalars_.get()});
    draw(step.recipe.draw);
    watch_drawn(step.recipe.draw);
    add_up(step);
    release(step.grid());
    if (step.recipe.step_size) adapt_learning_rate(*step.recipe.step_size);
    update(step.recipe);
  }

  /// Records a step, unless that has been done.
  void record(const Step& step) {
    if (recorded_ && recorded_->step == step) return;
    recorded_.reset();
    recorded_.emplace(Recorded{step, gpu_.record([this, step] { launch_step(step); })});
  }

  /// The step that the host follows while it is launched.
  struct Watched {
    std::uint64_t step;
    StepScalars scalars;
  };

  void take_watched_step(std::uint64_t number, const StepScalars& scalars, const Step& step) {
    watched_ = {number, scalars};
    try {
      launch_step(step);
    } catch (...) {
      watched_.reset();
      throw;
    }
    watched_.reset();
  }

  /// A batch that is too large fails here, before anything leaves.
  void watch_drawn(const Draw& draw) {
    if (!watched_) return;
    if (cursor_.download().front().failed != 0) throw Error(kBatchTooLarge);
    if (observer(settings_.witness) != nullptr)
      show_batch(settings_.witness, watched_->step, draw,
                 drawn_.download(drawn_count_.download().front()));
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

  // The parts of a step.

  /// The batch of the present step to drawn_, ascending.
  void draw(const Draw& draw) {
    const auto* const poisson = std::get_if<Poisson>(&draw);
    const auto* const candidates = std::get_if<Candidates>(&draw);
    const SampleArgs args{.stream = stream(Stream::sampling),
                          .threshold = poisson != nullptr ? poisson->threshold : 0,
                          .begin = 0,
                          .end = static_cast<std::int64_t>(examples_),
                          .drawn = drawn_.get(),
                          .norms = candidates != nullptr ? norms_.get() : nullptr,
                          .rule = candidates != nullptr ? candidates->rule : ImportanceRule{}};
    const SampleSpace space{.flags = flags_.get(),
                            .offsets = offsets_.get(),
                            .count = drawn_count_.get(),
                            .step = step_number()};
    draw_poisson(gpu_, args, space);
    launch(gpu_, "watch batch", watch_batch_kernel,
           WatchBatch{.cursor = cursor_.get(),
                      .count = drawn_count_.get(),
                      .capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                          static_cast<std::uint64_t>(capacity(draw)), settings_.largest_sum))});
  }

  /// fixed_sum_ += what the batch's examples add, in units of the grid.
  void add_up(const Step& step) {
    const auto inverse_grid = static_cast<float>(1.0 / step.grid());
    const Contribution& contribution = step.recipe.contribution;
    const std::int64_t max_drawn = capacity(step.recipe.draw);
    if (const auto* const clipped = std::get_if<ClippedGradient>(&contribution)) {
      const ClipSettings clip = clipped->at(step.clip_norm);
      if (fused_)
        fused_->sum_clipped(drawn_count_.get(), max_drawn, data_, drawn_.get(), parameters_.get(),
                            clip, inverse_grid, fixed_sum_.get(), train_tally_.get());
      else
        add_by_layers(max_drawn, nullptr, inverse_grid, [&] { passes_.clip(clip); });
    } else if (const auto* const transformed = std::get_if<TransformedGradient>(&contribution)) {
      const ClipSettings clip = transformed->at(step.clip_norm);
      const CoordinatesView view = coordinates_.refresh(passes_.layout());
      add_by_layers(max_drawn, &view, inverse_grid, [&] { passes_.clip(clip); });
    } else {
      const ImportanceRule& rule = std::get<Candidates>(step.recipe.draw).rule;
      add_by_layers(max_drawn, nullptr, inverse_grid, [&] {
        passes_.accept(rule, stream(Stream::acceptance), step_number(), norms_.get());
      });
    }
  }

  /// choose: launches what gives each example of a micro-batch its factor.
  template <class Choose>
  void add_by_layers(std::int64_t max_drawn, const CoordinatesView* coordinates, float inverse_grid,
                     const Choose& choose) {
    const auto at_once = static_cast<std::int64_t>(passes_.capacity());
    for (std::int64_t first = 0; first < max_drawn; first += at_once) {
      const Batch batch{
          .count = drawn_count_.get(),
          .first = static_cast<std::int32_t>(first),
          .capacity = static_cast<std::int32_t>(std::min(at_once, max_drawn - first))};
      passes_.forward(batch, data_, drawn_.get(), parameters_.get());
      passes_.backward(coordinates);
      choose();
      passes_.add(fixed_sum_.get(), inverse_grid);
      if (settings_.diagnostics) passes_.tally(train_tally_.get());
    }
  }

  void release(double grid) {
    if (watched_)
      if (Observer* const o = observer(settings_.witness)) o->adds_noise(leaving(grid), sums());
    launch(gpu_, "release", release_kernel,
           ReleaseFixed{.sum = fixed_sum_.get(),
                        .grid = grid,
                        .noise = stream(Stream::noise),
                        .step = step_number(),
                        .scalars = &cursor_.get()->scalars,
                        .pairs = host_pairs_.get(),
                        .pair_count = host_pair_count_.get(),
                        .n = static_cast<std::int64_t>(released_.size()),
                        .released = released_.get()});
    if (!watched_) return;
    std::vector<float> values = released_.download();
    show_witness(settings_.witness, leaving(grid), std::span(values));
    released_.upload(values);
  }

  Leaving leaving(double grid) const {
    return released_sum(watched_->step, grid, watched_->scalars.noise_std);
  }

  /// Makes those rounded normals of steps first .. first + scalars.size() - 1 that double cannot
  /// decide on the host. scalars: as they are in scalars_.
  void make_host_pairs(std::uint64_t first, std::span<const StepScalars> scalars, double grid) {
    host_pair_count_.clear();
    const ListUndecided args{.noise = stream(Stream::noise),
                             .first = first,
                             .scalars = scalars_.get(),
                             .steps = static_cast<std::int64_t>(scalars.size()),
                             .n = static_cast<std::int64_t>(released_.size()),
                             .grid = grid,
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
      p.k = exact_rounded_pair(s, p.pair, p.words, std / grid);
    }
    host_pairs_.upload(pairs);
  }

  /// Without the step's scalars, which the kernel finds in the cursor.
  UpdateArgs update_args(const StepRecipe& recipe) {
    UpdateArgs args{};
    args.released = released_.get();
    args.parameters = parameters_.get();
    args.moment1 = moment1_.get();
    args.moment2 = moment2_.get();
    args.average = average_.get();
    args.end = static_cast<std::int64_t>(parameters_.size());
    args.optimizer = recipe.optimizer;
    args.mean = coordinates_.mean().get();
    args.deviation = coordinates_.deviation().get();
    args.scale = coordinates_.scale();
    if (const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution))
      args.coordinates = transformed->coordinates;
    return args;
  }

  void adapt_learning_rate(const StepSizeSettings& settings) {
    launch(gpu_, "released norm", released_norm_kernel,
           ReleasedNorm{.released = released_.get(),
                        .n = static_cast<std::int64_t>(released_.size()),
                        .scalars = &cursor_.get()->scalars,
                        .parts = norm_parts_.get()});
    launch(gpu_, "step size", adapt_step_size_kernel,
           AdaptStepSize{.settings = settings,
                         .parts = norm_parts_.get(),
                         .count = static_cast<int>(norm_parts_.size()),
                         .sum = step_size_sum_.get(),
                         .cursor = cursor_.get()});
  }

  void update(const StepRecipe& recipe) {
    const UpdateArgs args = update_args(recipe);
    gpu_.launch("update", update_kernel_of(recipe.optimizer.kind), strided_shape(args.end, 64),
                args, &cursor_.get()->scalars);
    if (!watched_) return;
    if (Observer* const o = observer(settings_.witness))
      o->sees(update_record(watched_->step, recipe, cursor_.download().front().scalars, state()));
  }

  const std::uint64_t* step_number() const { return &cursor_.get()->step; }

  Gpu gpu_;
  Network network_;
  EngineSettings settings_;
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
  Buffer<Gpu, float> norms_;          // [examples] or empty, as last seen
  Buffer<Gpu, std::uint32_t> drawn_;  // [examples], the present batch
  Buffer<Gpu, std::uint32_t> drawn_count_;
  Buffer<Gpu, std::uint32_t> live_count_;
  Buffer<Gpu, std::uint32_t> listed_;  // [capacity], examples that the host names
  Buffer<Gpu, Tally> train_tally_;
  std::optional<Recorded> recorded_;
  std::optional<Recorded> recorded_sum_;  // of sum_again
  std::optional<Watched> watched_;
};

}  // namespace cudp::cuda

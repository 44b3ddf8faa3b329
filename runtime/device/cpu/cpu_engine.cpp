#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/step/step_size.hpp"
#include "models/freeze.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/device/batch_draws.hpp"
#include "runtime/device/canaries.hpp"
#include "runtime/device/cpu/coordinates.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/linear_sum.hpp"
#include "runtime/device/cpu/rows_ahead.hpp"
#include "runtime/device/cpu/worker.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/observed.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {
namespace cpu {
namespace {

/// Number of parameters that a thread takes at a time, a multiple of 256 (a tile of random words).
constexpr std::int64_t kParameterRange = std::int64_t{16} * 256;

std::int64_t ranges(std::int64_t n, std::int64_t range) { return (n + range - 1) / range; }

/// Engine on the CPU. A step has two parts. First each thread, with its Worker, processes some of
/// the batch's examples and adds their contributions as integers. Then the parameters are divided
/// into ranges; for each range, one thread adds up the sums of all threads, adds noise and updates
/// the parameters. No result depends on the number of threads.
class CpuEngine final : public Engine {
 public:
  CpuEngine(const Network& network, const EngineSettings& settings)
      : network_(network),
        settings_(settings),
        layout_(build_layout(network_)),
        k_(cpu_kernels(best_simd_level())),
        team_(settings.threads),
        canaries_(network_, settings.audit.get()),
        state_{.parameters = std::vector<float>(network_.parameter_count),
               .moment1 = {},
               .moment2 = {},
               .average = {},
               .mean = {},
               .deviation = {},
               .norms = {}},
        packed_(to_size(layout_.storage.packed)),
        transposed_(to_size(layout_.storage.transposed)),
        sum_(to_size(layout_.storage.packed) + Diagnostics::kWords),
        released_(network_.parameter_count) {
    for (int t = 0; t < team_.size(); ++t)
      workers_.push_back(std::make_unique<Worker>(layout_, k_, settings_.class_weights));
    if (LinearSum::fits(network_))
      linear_sum_.emplace(network_, layout_, k_, settings_.class_weights, team_.size());
    check_class_weights(network_, settings_);
    if (network_.frozen_values) pack_range(*network_.frozen_values, network_.parameter_count);
    make_rates();
    const OptimizerSettings& o = settings.recipe.optimizer;
    if (has_first_moment(o.kind)) state_.moment1.resize(network_.parameter_count);
    if (has_second_moment(o.kind)) state_.moment2.resize(network_.parameter_count);
    if (o.keep_average) state_.average.resize(network_.parameter_count);
    if (std::holds_alternative<TransformedGradient>(settings.recipe.contribution)) {
      state_.mean.resize(network_.parameter_count);
      state_.deviation.resize(network_.parameter_count);
      coordinates_.emplace(layout_);
    }
  }

  void load(const Dataset& train) override {
    if (!fits(network_, train) || train.classes != network_.classes)
      throw InputError("the training set's shape or classes do not fit the model");
    ensure(!has_target(network_.spec.loss) || train.targets.size() == train.size(),
           "every example must have a target");
    if (train.size() > std::size_t{1} << 31)
      throw InputError("expected at most 2^31 training examples");
    canaries_.load(train.size());
    train_ = &train;
    ahead_.reset();
    draws_.emplace(train, settings_.generator, settings_.key, team_);
    if (!keeps_norms() && settings_.audit == nullptr)
      ahead_ = RowsAhead::open(train, *draws_, settings_);
    batch_ = {};
    if (keeps_norms()) state_.norms.assign(train.size(), 0.0f);
  }

  bool read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use) override {
    return ahead_ != nullptr && ahead_->read_all_rows(step, draw, use);
  }

  void set_state(const TrainState& state) override {
    const auto same = [](const auto& a, const auto& b) { return a.size() == b.size(); };
    ensure(same(state.parameters, state_.parameters) && same(state.moment1, state_.moment1) &&
               same(state.moment2, state_.moment2) && same(state.average, state_.average) &&
               same(state.mean, state_.mean) && same(state.deviation, state_.deviation) &&
               (state.norms.empty() || same(state.norms, state_.norms)),
           "the state does not fit the network and optimizer");
    std::vector<float> norms = std::move(state_.norms);
    state_ = state;
    if (state.norms.empty()) state_.norms = std::move(norms);  // `state` has none
    pack_range(state_.parameters, 0);
  }

  TrainState state() override { return state_; }

  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    ensure(train_ != nullptr, "no training set is loaded");
    ensure(keeps_the_same(recipe, settings_.recipe), "the memory was laid out for another recipe");
    validate(recipe);
    for (const StepScalars& s : scalars) validate(recipe, s);
    for (std::size_t i = 0; i < scalars.size(); ++i) take_step(recipe, first + i, scalars[i]);
  }

  void measure_norms() override {
    ensure(train_ != nullptr && keeps_norms(), "norms are not kept");
    const std::size_t n = train_->size();
    const std::size_t chunk = to_size(layout_.chunk);
    team_.run((n + chunk - 1) / chunk, [&](std::size_t i, int thread) {
      std::uint32_t examples[kMaxChunk];
      const std::size_t at = i * chunk;
      const std::size_t count = std::min(chunk, n - at);
      for (std::size_t e = 0; e < count; ++e) examples[e] = static_cast<std::uint32_t>(at + e);
      workers_[to_size(thread)]->norms(*train_, {examples, count}, weights(),
                                       state_.norms.data() + at);
    });
    canaries_.set_norms(state_.norms);
  }
  std::vector<float> norms() override { return state_.norms; }

  std::vector<float> logits(const Dataset& examples) override {
    ensure(fits(network_, examples), "the test set does not fit the model");
    const std::size_t chunk = to_size(layout_.chunk);
    const auto outputs = static_cast<std::size_t>(network_.outputs);
    std::vector<float> all(examples.size() * outputs);
    team_.run((examples.size() + chunk - 1) / chunk, [&](std::size_t i, int thread) {
      std::uint32_t numbers[kMaxChunk];
      const std::size_t at = i * chunk;
      const std::size_t n = std::min(chunk, examples.size() - at);
      for (std::size_t e = 0; e < n; ++e) numbers[e] = static_cast<std::uint32_t>(at + e);
      workers_[to_size(thread)]->logits(examples, {numbers, n}, weights(),
                                        all.data() + at * outputs);
    });
    return all;
  }

  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override {
    ensure(train_ != nullptr, "no training set is loaded");
    const std::size_t d = network_.parameter_count;
    const auto groups = static_cast<std::size_t>(network_.groups);
    PerExample out;
    if (gradients) out.gradients.resize(examples.size() * d);
    out.squared_norms.resize(examples.size() * groups);
    out.losses.resize(examples.size());
    std::vector<AlignedVector<float>> scratch(workers_.size());
    team_.run(examples.size(), [&](std::size_t i, int thread) {
      AlignedVector<float>& g = scratch[to_size(thread)];
      if (g.size() == 0) g = AlignedVector<float>(to_size(layout_.storage.packed));
      out.losses[i] = workers_[to_size(thread)]->gradient(*train_, examples[i], weights(), g.data(),
                                                          out.squared_norms.data() + i * groups);
      if (gradients)
        for (std::size_t j = 0; j < d; ++j)
          out.gradients[i * d + j] = g[to_size(layout_.storage.packed_offset[j])];
    });
    return out;
  }

  std::vector<std::uint32_t> sampled(std::uint64_t step) override {
    ensure(train_ != nullptr, "no training set is loaded");
    ensure(!keeps_norms(), "candidates are drawn by norms, which change");
    const std::span<const std::uint32_t> batch = draws_->draw(step, settings_.recipe.draw);
    return {batch.begin(), batch.end()};
  }

  Diagnostics diagnostics() override { return std::exchange(diagnostics_, {}); }

 private:
  bool keeps_norms() const { return std::holds_alternative<Candidates>(settings_.recipe.draw); }

  void draw_batch(std::uint64_t step, const Draw& draw) {
    if (ahead_ != nullptr) {
      const RowsAhead::Step taken = ahead_->take(step, draw);
      batch_ = taken.batch;
      batch_data_ = taken.data;
      batch_examples_ = taken.examples;
      return;
    }
    batch_ = draws_->draw(step, draw, state_.norms);
    batch_data_ = train_;
    batch_examples_ = batch_;
  }

  void take_step(const StepRecipe& recipe, std::uint64_t step, StepScalars scalars) {
    draw_batch(step, recipe.draw);
    if (settings_.release_observer != nullptr)
      show_batch(settings_.release_observer, step, recipe.draw,
                 draws_->numbering().numbers_of(batch_));
    const double grid = bound_of(recipe.contribution, static_cast<double>(scalars.clip_norm)).grid;
    add_up(use_of(recipe, step, scalars, static_cast<float>(1.0 / grid)), grid);
    release(recipe, step, scalars, grid);
    if (recipe.step_size) adapt_learning_rate(*recipe.step_size, step, scalars);
    update(recipe, step, scalars);
  }

  /// Returns what workers do with each gradient in a step: clip it; clip it coordinate-wise; or
  /// accept or reject it (importance sampling). step: number of the step. scalars: numbers of this
  /// step, such as its clipping norm. inverse_grid: 1 / grid, where the grid is the power of two to
  /// whose multiples contributions are rounded.
  GradientUse use_of(const StepRecipe& recipe, std::uint64_t step, const StepScalars& scalars,
                     float inverse_grid) {
    if (const auto* const clipped = std::get_if<ClippedGradient>(&recipe.contribution))
      return AddClipped{clipped->at(scalars.clip_norm), inverse_grid};
    if (const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution))
      return AddTransformed{coordinates_->refresh(state_.mean, state_.deviation, team_),
                            transformed->at(scalars.clip_norm), inverse_grid};
    return AddAccepted{std::get<Candidates>(recipe.draw).rule, stream(Stream::acceptance, step),
                       state_.norms.data(), inverse_grid};
  }

  /// Computes the sum of the contributions of the batch's examples and writes it to sum_, as
  /// integer multiples of the grid. use: what is done with each gradient. grid: the power of two to
  /// whose multiples contributions are rounded.
  void add_up(const GradientUse& use, double grid) {
    seen_ = {};
    const std::size_t ordinary = canaries_.ordinary(batch_);
    const auto* const clipped = std::get_if<AddClipped>(&use);
    const bool as_one = linear_sum_ && clipped != nullptr && !train_->is_text();
    // linear_sum_ keeps no record of single examples. If it computes the sum, only the canaries
    // have records.
    records_.resize(!settings_.diagnostics ? 0 : as_one ? batch_.size() - ordinary : batch_.size());
    if (as_one) {
      linear_sum_->add_up(*batch_data_, batch_examples_.first(ordinary), state_.parameters,
                          *clipped, team_, sum_.data(), settings_.diagnostics ? &seen_ : nullptr);
    } else {
      add_by_workers(batch_examples_.first(ordinary), use);
    }
    if (settings_.audit) keep_ordinary_sum(grid);
    const std::vector<CanaryFacts> facts =
        canaries_.add(batch_.subspan(ordinary), canary_use(use), sum_.data(),
                      layout_.storage.packed_offset.data());
    if (settings_.diagnostics) {
      std::ranges::transform(facts, records_.end() - static_cast<std::ptrdiff_t>(facts.size()),
                             [](const CanaryFacts& f) {
                               return ExampleRecord{.squared_norm = f.squared_norm,
                                                    .clipped = f.clipped};
                             });
      add_records();
    }
    join();
    diagnostics_ += seen_;
  }

  static CanaryUse canary_use(const GradientUse& use) {
    if (const auto* const clipped = std::get_if<AddClipped>(&use))
      return {.clip = clipped->clip, .inverse_grid = clipped->inverse_grid};
    if (const auto* const transformed = std::get_if<AddTransformed>(&use))
      return {.clip = transformed->clip,
              .inverse = transformed->coordinates.transform.inverse,
              .inverse_grid = transformed->inverse_grid};
    const AddAccepted& accepted = std::get<AddAccepted>(use);
    return {.rule = accepted.rule,
            .stream = accepted.stream,
            .norms = accepted.norms,
            .inverse_grid = accepted.inverse_grid};
  }

  /// Computes the sum of the contributions of examples with the threads' workers, and writes it to
  /// sum_. examples: indices in *batch_data_, without audit canaries. use: what is done with each
  /// gradient.
  void add_by_workers(std::span<const std::uint32_t> examples, const GradientUse& use) {
    const std::size_t chunk = to_size(layout_.chunk);
    const std::size_t n = examples.size();
    team_.run((n + chunk - 1) / chunk, [&](std::size_t i, int thread) {
      const std::size_t at = i * chunk;
      if (batch_data_->rows != nullptr) batch_data_->rows->read_ahead(examples, at, chunk);
      workers_[to_size(thread)]->add(*batch_data_, examples.subspan(at, std::min(chunk, n - at)),
                                     weights(), use,
                                     settings_.diagnostics ? records_.data() + at : nullptr);
    });
    const std::int64_t size = layout_.storage.packed;
    team_.run(to_size(ranges(size, kParameterRange)), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
      std::vector<std::int64_t*> totals;
      std::vector<std::int32_t*> units;
      for (const auto& w : workers_) {
        totals.push_back(w->totals() + begin);
        units.push_back(w->units() + begin);
      }
      k_.sum_units({.totals = totals.data(),
                    .units = units.data(),
                    .count = static_cast<int>(totals.size()),
                    .out = sum_.data() + begin,
                    .n = std::min(kParameterRange, size - begin)});
    });
  }

  void keep_ordinary_sum(double grid) {
    ordinary_sum_.resize(network_.parameter_count);
    for (std::size_t j = 0; j < ordinary_sum_.size(); ++j)
      ordinary_sum_[j] = static_cast<float>(
          grid * static_cast<double>(sum_[to_size(layout_.storage.packed_offset[j])]));
  }

  /// Adds noise to the sum and writes the noisy sum to released_. step: number of the step.
  /// scalars: numbers of this step, such as the standard deviation of its noise. grid: power of two
  /// of which the sum is a multiple; sum_ has the sum divided by it, as integers.
  void release(const StepRecipe& recipe, std::uint64_t step, const StepScalars& scalars,
               double grid) {
    const ReleasedValue what = released_sum(step, grid, scalars.noise_std);
    if (SecretObserver* const o = observer(settings_.release_observer))
      o->before_noise(what, sums());
    team_.run(to_size(ranges(parameter_count(), kParameterRange)), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
      const ReleaseSum args{.sum = sum_.data(),
                            .where = layout_.storage.packed_offset.data(),
                            .grid = grid,
                            .noise_std = scalars.noise_std,
                            .noise = stream(Stream::noise, step),
                            .begin = begin,
                            .end = std::min(begin + kParameterRange, parameter_count()),
                            .released = released_.data()};
      validate(args);
      k_.release_sum(args);
    });
    if (settings_.audit && settings_.audit->released)
      settings_.audit->released(
          {.step = step,
           .sum = released_,
           .ordinary = ordinary_sum_,
           .max_norm = layer_norm_bound(recipe.contribution, static_cast<double>(scalars.clip_norm),
                                        network_.groups),
           .noise_std = static_cast<double>(scalars.noise_std)});
    show_released(settings_.release_observer, what, std::span(released_));
  }

  void adapt_learning_rate(const StepSizeSettings& settings, std::uint64_t step,
                           StepScalars& scalars) {
    std::vector<double> squares(to_size(ranges(parameter_count(), kParameterRange)));
    team_.run(squares.size(), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
      const std::int64_t end = std::min(begin + kParameterRange, parameter_count());
      for (std::int64_t j = begin; j < end; ++j) {
        const double g = static_cast<double>(released_[to_size(j)] * scalars.inverse_batch);
        squares[i] += g * g;
      }
    });
    const double square = std::accumulate(squares.begin(), squares.end(), 0.0);
    state_.step_size_sum = grown_step_size_sum(settings, step, state_.step_size_sum, square);
    scalars.learning_rate = static_cast<float>(static_cast<double>(scalars.learning_rate) /
                                               std::sqrt(state_.step_size_sum));
  }

  void update(const StepRecipe& recipe, std::uint64_t step, const StepScalars& scalars) {
    team_.run(to_size(ranges(parameter_count(), kParameterRange)), [&](std::size_t i, int) {
      UpdateArgs args = update_args(recipe, scalars, i);
      const std::int64_t end = args.end;
      for (const Rate& rate : rates_) {  // each part of the range that has a rate of its own
        if (rate.end <= args.begin) continue;
        args.end = std::min(end, rate.end);
        args.scalars.learning_rate = scalars.learning_rate * rate.scale;
        k_.update(args);
        args.begin = args.end;
        if (args.begin == end) break;
      }
      const auto begin = to_size(static_cast<std::int64_t>(i) * kParameterRange);
      pack_range(std::span(state_.parameters).subspan(begin, to_size(end) - begin), begin);
    });
    if (SecretObserver* const o = observer(settings_.release_observer)) {
      transcript::Update record = update_record(step, recipe, scalars, state_);
      record.lr_scale = own_rates(network_);
      o->on_record(record);
    }
  }

  /// Returns the sum of the batch's contributions, reordered from the order of the packed weights,
  /// as in sum_, to the order of the network's parameters. The integers are multiples of the step's
  /// grid.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> all;
    all.reserve(network_.parameter_count);
    for (std::size_t j = 0; j < network_.parameter_count; ++j)
      all.push_back(sum_[to_size(layout_.storage.packed_offset[j])]);
    return all;
  }

  std::int64_t parameter_count() const {
    return static_cast<std::int64_t>(network_.parameter_count);
  }

  /// Returns the arguments for the update of the i-th range of parameters. recipe: recipe of the
  /// step. scalars: numbers of this step, such as its learning rate.
  UpdateArgs update_args(const StepRecipe& recipe, const StepScalars& scalars, std::size_t i) {
    const auto* const transformed = std::get_if<TransformedGradient>(&recipe.contribution);
    const auto optional = [](std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
    const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
    return {
        .released = released_.data(),
        .parameters = state_.parameters.data(),
        .moment1 = optional(state_.moment1),
        .moment2 = optional(state_.moment2),
        .average = optional(state_.average),
        .begin = begin,
        .end = std::min(begin + kParameterRange, parameter_count()),
        .optimizer = recipe.optimizer,
        .scalars = scalars,
        .mean = optional(state_.mean),
        .deviation = optional(state_.deviation),
        .scale = coordinates_ ? &coordinates_->scale() : nullptr,
        .coordinates = transformed != nullptr ? transformed->coordinates : CoordinateSettings{}};
  }

  Weights weights() const { return {packed_.data(), transposed_.data()}; }

  RandomStream stream(Stream purpose, std::uint64_t step) const {
    return {settings_.generator, settings_.key.key(), purpose, step};
  }

  /// Replaces this rank's sum in sum_, and the step's statistics after it, with the totals over all
  /// ranks (processes).
  void join() {
    if (settings_.ranks->alone()) return;
    std::int64_t* const words = sum_.data() + layout_.storage.packed;
    seen_.to_words(words);
    settings_.ranks->sum("the sum of a step", {sum_.data(), sum_.size()});
    seen_ = Diagnostics::of_words(words);
  }

  /// Copies weights to the packed arrays that products read. first: index of the first weight.
  void pack_range(std::span<const float> weights, std::size_t first) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      packed_[to_size(layout_.storage.packed_offset[first + i])] = weights[i];
      if (layout_.storage.transposed_offset[first + i] >= 0)
        transposed_[to_size(layout_.storage.transposed_offset[first + i])] = weights[i];
    }
  }

  /// A range of parameters whose learning rate has the same factor, `scale`. It begins where the
  /// range before it in rates_ ends, and ends before parameter `end`.
  struct Rate {
    std::int64_t end = 0;
    float scale = 1.0f;
  };

  void make_rates() {
    for (const ParameterTensor& t : network_.parameters) {
      const auto end = static_cast<std::int64_t>(t.offset + t.size);
      if (!rates_.empty() && rates_.back().scale == t.lr_scale)
        rates_.back().end = end;
      else
        rates_.push_back({end, t.lr_scale});
    }
  }

  void add_records() {
    for (const ExampleRecord& r : records_) {
      seen_.examples += 1;
      if (!r.finite) {
        seen_.non_finite += 1;
        continue;
      }
      seen_.loss_units += tally_units(static_cast<double>(r.loss));
      seen_.norm_units += tally_units(std::sqrt(static_cast<double>(r.squared_norm)));
      seen_.clipped += r.clipped ? 1 : 0;
    }
  }

  Network network_;
  EngineSettings settings_;
  CpuLayout layout_;
  const CpuKernels& k_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Rate> rates_;              ///< ascending; the last one ends at the last parameter
  std::optional<LinearSum> linear_sum_;  ///< set for networks that it supports
  Canaries canaries_;
  std::vector<float> ordinary_sum_;  ///< sum without the canaries' contributions; audits only
  const Dataset* train_ = nullptr;
  std::optional<BatchDraws> draws_;       ///< draws batches of the training set
  std::unique_ptr<RowsAhead> ahead_;      ///< null: batches are not read ahead
  std::span<const std::uint32_t> batch_;  ///< the current step's examples, ascending
  /// Data set from which the current step reads its examples: train_, or a copy of the batch's rows
  /// that was read from a file. batch_examples_ has the examples' indices in it.
  const Dataset* batch_data_ = nullptr;
  std::span<const std::uint32_t> batch_examples_;
  TrainState state_;
  std::optional<PackedCoordinates> coordinates_;
  AlignedVector<float> packed_;
  AlignedVector<float> transposed_;
  /// Sum of the contributions of the batch's examples, in the order of the packed weights
  /// (Storage::packed). Each number is an integer, a multiple of the grid: the power of two to
  /// whose multiples contributions are rounded at this step. The step's statistics follow:
  /// Diagnostics::kWords integers.
  AlignedVector<std::int64_t> sum_;
  std::vector<float> released_;
  std::vector<ExampleRecord> records_;
  Diagnostics seen_;         ///< statistics of the step in progress
  Diagnostics diagnostics_;  ///< statistics of all steps since they were last read
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings) {
  return std::make_unique<cpu::CpuEngine>(network, settings);
}

}  // namespace cudp

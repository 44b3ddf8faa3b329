#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/device/cpu/canaries.hpp"
#include "runtime/device/cpu/coordinates.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/worker.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/observed.hpp"
#include "runtime/gate/witness.hpp"

namespace cudp {
namespace cpu {
namespace {

/// Multiples of 256 (a tile of random words) that one task handles.
constexpr std::int64_t kSampleRange = std::int64_t{64} * 256;
constexpr std::int64_t kParameterRange = std::int64_t{16} * 256;

std::int64_t ranges(std::int64_t n, std::int64_t range) { return (n + range - 1) / range; }

class CpuEngine final : public Engine {
 public:
  CpuEngine(const Network& network, const EngineSettings& settings)
      : network_(network),
        settings_(settings),
        layout_(build_layout(network_)),
        // Accepted directions have norm 1.
        grid_(sum_grid(settings.importance ? 1.0 : settings.clip.max_norm)),
        k_(cpu_kernels(best_simd_level())),
        team_(settings.threads),
        canaries_(network_, layout_, settings.audit.get()),
        state_{.parameters = std::vector<float>(network_.parameter_count),
               .moment1 = {},
               .moment2 = {},
               .average = {},
               .mean = {},
               .deviation = {},
               .norms = {}},
        packed_(to_size(layout_.storage.packed)),
        transposed_(to_size(layout_.storage.transposed)),
        sum_(to_size(layout_.storage.packed)),
        released_(network_.parameter_count) {
    for (int t = 0; t < team_.size(); ++t)
      workers_.push_back(std::make_unique<Worker>(layout_, k_));
    const OptimizerKind kind = settings.optimizer.kind;
    const bool adam = kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
    if (kind != OptimizerKind::sgd) state_.moment1.resize(network_.parameter_count);
    if (adam) state_.moment2.resize(network_.parameter_count);
    if (settings.keep_average) state_.average.resize(network_.parameter_count);
    if (settings.coordinates.on) {
      state_.mean.resize(network_.parameter_count);
      state_.deviation.resize(network_.parameter_count);
      coordinates_.emplace(layout_);
    }
  }

  void load(const Dataset& train) override {
    if (!fits(train) || train.classes != network_.classes)
      throw InputError("the training set's shape or classes do not fit the model");
    if (train.size() > std::size_t{1} << 31)
      throw InputError("expected at most 2^31 training examples");
    canaries_.load(train.size());
    train_ = &train;
    drawn_.resize(train.size());
    if (settings_.importance) state_.norms.assign(train.size(), 0.0f);
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
    if (state.norms.empty()) state_.norms = std::move(norms);  // none seen yet
    pack(state_.parameters);
  }

  TrainState state() override { return state_; }

  void run(std::uint64_t first, std::span<const StepScalars> scalars,
           const std::function<void(Engine&)>& step) override {
    ensure(train_ != nullptr, "no training set is loaded");
    for (std::size_t i = 0; i < scalars.size(); ++i) {
      step_ = first + i;
      scalars_ = scalars[i];
      is_released_ = false;
      step(*this);
    }
  }

  void measure_norms() override {
    ensure(train_ != nullptr && settings_.importance, "norms are not kept");
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
  void set_clip_norm(float max_norm) override {
    settings_.clip.max_norm = max_norm;
    grid_ = sum_grid(max_norm);
  }
  void set_importance(const ImportanceRule& rule) override { rule_ = rule; }

  void sample_batch() override {
    draw(step_, false);
    show_batch(step_, settings_.sampling_threshold, drawn());
  }
  void sample_candidates() override {
    draw(step_, true);
    show_batch(step_, kCandidates, drawn());
  }

  void sum_clipped_gradients() override { add_up(nullptr, nullptr); }

  void sum_accepted_directions() override {
    const Acceptance acceptance{rule_, stream(Stream::acceptance, step_), state_.norms.data()};
    add_up(nullptr, &acceptance);
  }

  void sum_coordinate_clipped_gradients() override {
    const Coordinates c = coordinates_->refresh(state_.mean, state_.deviation, team_);
    add_up(&c, nullptr);
  }

  void adapt_learning_rate() override {
    release();
    std::vector<double> squares(to_size(ranges(parameter_count(), kParameterRange)));
    team_.run(squares.size(), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
      const std::int64_t end = std::min(begin + kParameterRange, parameter_count());
      for (std::int64_t j = begin; j < end; ++j) {
        const double g = static_cast<double>(released_[to_size(j)] * scalars_.inverse_batch);
        squares[i] += g * g;
      }
    });
    const double square = std::accumulate(squares.begin(), squares.end(), 0.0);
    state_.step_size_sum =
        grown_step_size_sum(settings_.step_size, step_, state_.step_size_sum, square);
    scalars_.learning_rate = static_cast<float>(static_cast<double>(scalars_.learning_rate) /
                                                std::sqrt(state_.step_size_sum));
  }

  void add_noise_and_update() override { update({}); }
  void add_noise_restore_and_update() override { update(settings_.coordinates); }

  std::vector<float> logits(const Dataset& examples) override {
    ensure(fits(examples), "the test set does not fit the model");
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
          out.gradients[i * d + j] = g[to_size(layout_.storage.where[j])];
    });
    return out;
  }

  std::vector<std::uint32_t> sampled(std::uint64_t step) override {
    ensure(train_ != nullptr, "no training set is loaded");
    draw(step, false);
    const std::span<const std::uint32_t> batch = drawn();
    return {batch.begin(), batch.end()};
  }

  Diagnostics diagnostics() override { return std::exchange(diagnostics_, {}); }

 private:
  bool fits(const Dataset& data) const {
    const WordVectors* const v = data.vectors.get();
    return data.shape == network_.input && data.words == network_.text.words &&
           (v != nullptr ? v->columns == network_.text.columns && v->rows == data.words
                         : network_.text.columns == 0);
  }

  /// sum_ <- clipped gradients of the batch.
  void add_up(const Coordinates* coordinates, const Acceptance* acceptance) {
    const std::size_t chunk = to_size(layout_.chunk);
    const std::span<const std::uint32_t> batch(drawn_.data(), batch_);
    const std::size_t ordinary = canaries_.ordinary(batch);
    const std::size_t chunks = (ordinary + chunk - 1) / chunk;
    const auto inverse_grid = static_cast<float>(1.0 / grid_);
    if (settings_.diagnostics) records_.resize(batch_);
    const auto records = [&](std::size_t at) {
      return settings_.diagnostics ? records_.data() + at : nullptr;
    };
    team_.run(chunks, [&](std::size_t i, int thread) {
      const std::size_t at = i * chunk;
      workers_[to_size(thread)]->add_clipped(
          *train_, batch.subspan(at, std::min(chunk, ordinary - at)), weights(), settings_.clip,
          coordinates, acceptance, inverse_grid, records(at));
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
    if (settings_.audit) keep_ordinary_sum();
    canaries_.add_clipped(batch.subspan(ordinary), settings_.clip, coordinates, acceptance,
                          inverse_grid, sum_.data(), records(ordinary));
    if (settings_.diagnostics) add_diagnostics();
  }

  void keep_ordinary_sum() {
    ordinary_sum_.resize(network_.parameter_count);
    for (std::size_t j = 0; j < ordinary_sum_.size(); ++j)
      ordinary_sum_[j] =
          static_cast<float>(grid_ * static_cast<double>(sum_[to_size(layout_.storage.where[j])]));
  }

  /// released_ <- the sum with noise, once a step.
  void release() {
    if (std::exchange(is_released_, true)) return;
    const Leaving what = released_sum(step_, grid_, scalars_.noise_std);
    if (Observer* const o = observer()) o->adds_noise(what, sums());
    team_.run(to_size(ranges(parameter_count(), kParameterRange)), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
      const ReleaseSum args{.sum = sum_.data(),
                            .where = layout_.storage.where.data(),
                            .grid = grid_,
                            .noise_std = scalars_.noise_std,
                            .noise = stream(Stream::noise, step_),
                            .begin = begin,
                            .end = std::min(begin + kParameterRange, parameter_count()),
                            .released = released_.data()};
      validate(args);
      k_.release_sum(args);
    });
    if (settings_.audit && settings_.audit->released)
      settings_.audit->released({.step = step_,
                                 .sum = released_,
                                 .ordinary = ordinary_sum_,
                                 .most = largest_contribution(),
                                 .noise_std = static_cast<double>(scalars_.noise_std)});
    show_witness(what, std::span(released_));
  }

  /// Of an example to the parameters of one layer.
  double largest_contribution() const {
    if (settings_.importance) return 1.0;
    const bool per_layer = settings_.clip.kind == Clipping::per_layer;
    return static_cast<double>(settings_.clip.max_norm) /
           (per_layer ? std::sqrt(static_cast<double>(network_.groups)) : 1.0);
  }

  void update(const CoordinateSettings& coordinates) {
    release();
    team_.run(to_size(ranges(parameter_count(), kParameterRange)), [&](std::size_t i, int) {
      UpdateArgs args = update_args(i);
      args.coordinates = coordinates;
      k_.update(args);
      pack_range(state_.parameters, args.begin, args.end);
    });
    if (Observer* const o = observer())
      o->sees(update_record(step_, settings_, scalars_, coordinates.on, state_));
  }

  /// The sum, in units of the grid, in the order of the parameters.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> all;
    all.reserve(network_.parameter_count);
    for (const std::int32_t at : layout_.storage.where) all.push_back(sum_[to_size(at)]);
    return all;
  }

  std::int64_t parameter_count() const {
    return static_cast<std::int64_t>(network_.parameter_count);
  }

  /// Of the i-th range of parameters.
  UpdateArgs update_args(std::size_t i) {
    const auto optional = [](std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
    const std::int64_t begin = static_cast<std::int64_t>(i) * kParameterRange;
    return {.released = released_.data(),
            .parameters = state_.parameters.data(),
            .moment1 = optional(state_.moment1),
            .moment2 = optional(state_.moment2),
            .average = optional(state_.average),
            .begin = begin,
            .end = std::min(begin + kParameterRange, parameter_count()),
            .optimizer = settings_.optimizer,
            .scalars = scalars_,
            .mean = optional(state_.mean),
            .deviation = optional(state_.deviation),
            .scale = coordinates_ ? &coordinates_->scale() : nullptr};
  }

  Weights weights() const { return {packed_.data(), transposed_.data()}; }

  RandomStream stream(Stream purpose, std::uint64_t step) const {
    return {settings_.generator, settings_.key.key(), purpose, step};
  }

  std::span<const std::uint32_t> drawn() const { return {drawn_.data(), batch_}; }

  /// The batch of a step, ascending, in drawn_[0..batch_).
  void draw(std::uint64_t step, bool candidates) {
    const auto n = static_cast<std::int64_t>(train_->size());
    std::vector<std::int64_t> counts(to_size(ranges(n, kSampleRange)));
    team_.run(counts.size(), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kSampleRange;
      counts[i] = k_.sample({.stream = stream(Stream::sampling, step),
                             .threshold = settings_.sampling_threshold,
                             .begin = begin,
                             .end = std::min(begin + kSampleRange, n),
                             .drawn = drawn_.data() + begin,
                             .norms = candidates ? state_.norms.data() : nullptr,
                             .rule = rule_});
    });
    batch_ = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::copy_n(drawn_.data() + static_cast<std::int64_t>(i) * kSampleRange, counts[i],
                  drawn_.data() + batch_);
      batch_ += to_size(counts[i]);
    }
    if (batch_ > settings_.largest_sum) throw Error(kBatchTooLarge);
  }

  void pack(const std::vector<float>& parameters) {
    pack_range(parameters, 0, static_cast<std::int64_t>(parameters.size()));
  }

  void pack_range(const std::vector<float>& parameters, std::int64_t begin, std::int64_t end) {
    for (std::size_t j = to_size(begin); j < to_size(end); ++j) {
      packed_[to_size(layout_.storage.where[j])] = parameters[j];
      if (layout_.storage.where_transposed[j] >= 0)
        transposed_[to_size(layout_.storage.where_transposed[j])] = parameters[j];
    }
  }

  void add_diagnostics() {
    for (const ExampleRecord& r : records_) {
      diagnostics_.examples += 1;
      if (!r.finite) {
        diagnostics_.non_finite += 1;
        continue;
      }
      diagnostics_.loss += static_cast<double>(r.loss);
      diagnostics_.norm += std::sqrt(static_cast<double>(r.squared_norm));
      diagnostics_.clipped += r.clipped ? 1 : 0;
    }
  }

  Network network_;
  EngineSettings settings_;
  CpuLayout layout_;
  double grid_;
  const CpuKernels& k_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Canaries canaries_;
  std::vector<float> ordinary_sum_;  ///< in an audit
  const Dataset* train_ = nullptr;
  TrainState state_;
  std::optional<PackedCoordinates> coordinates_;
  AlignedVector<float> packed_;
  AlignedVector<float> transposed_;
  AlignedVector<std::int64_t> sum_;  ///< in units of the grid, packed
  std::vector<float> released_;
  bool is_released_ = false;  ///< in this step
  std::uint64_t step_ = 0;
  StepScalars scalars_{};
  ImportanceRule rule_;
  std::vector<std::uint32_t> drawn_;
  std::size_t batch_ = 0;
  std::vector<ExampleRecord> records_;
  Diagnostics diagnostics_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings) {
  return std::make_unique<cpu::CpuEngine>(network, settings);
}

}  // namespace cudp

#include <algorithm>
#include <cmath>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/numbering.hpp"
#include "runtime/device/linear_data.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/device/scratch_fill.hpp"

namespace cudp {
namespace {

constexpr std::int64_t kRange =
    128;  // tiles of 16 examples that a thread takes at a time: 2,048 examples

/// LinearEngine on the CPU. It stores all examples in tiles of 16 examples, and copies the examples
/// of a batch to other tiles. Threads add integers, so results do not depend on the number of
/// threads.
class CpuLinearEngine final : public LinearEngine {
 public:
  CpuLinearEngine(const Dataset& train, Loss loss, double max_examples, int threads,
                  SignWeights weights)
      : source_(train),
        numbering_(train),
        loss_(loss),
        weights_(weights),
        max_examples_(max_examples),
        k_(cpu_kernels(best_simd_level())),
        team_(threads),
        all_(linear_data(train)) {
    use(all_);
  }

  int dimension() const override { return all_.d; }
  std::size_t size() const override { return source_.size(); }

  void draw_batch(const RandomStream& stream, std::uint64_t threshold) override {
    drawn_.resize(numbering_.count());
    const std::int64_t count = k_.sample({.stream = stream,
                                          .threshold = threshold,
                                          .begin = static_cast<std::int64_t>(numbering_.begin()),
                                          .end = static_cast<std::int64_t>(numbering_.end()),
                                          .drawn = drawn_.data(),
                                          .first = static_cast<std::int64_t>(numbering_.begin())});
    drawn_.resize(numbering_.to_indices({drawn_.data(), static_cast<std::size_t>(count)}));
    batch_ = linear_data(source_, drawn_);
    use(batch_);
  }
  std::vector<std::uint32_t> batch() override { return numbering_.numbers_of(drawn_); }

  std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) override {
    const double grid = linear_grid(max_norm, max_examples_);
    clear(dimension());
    fill_scratch(scores_);
    for_ranges([&](std::int64_t begin, std::int64_t end, double* total) {
      k_.linear_scores({.features = now_->features.data(),
                        .w = w.data(),
                        .scores = scores_.data(),
                        .begin = begin,
                        .end = end,
                        .d = dimension()});
      k_.linear_gradient({.features = now_->features.data(),
                          .scores = scores_.data(),
                          .signs = now_->signs.data(),
                          .norms = now_->norms.data(),
                          .total = total,
                          .begin = begin,
                          .end = end,
                          .d = dimension(),
                          .loss = loss_,
                          .clip_norm = static_cast<float>(max_norm),
                          .inverse_grid = 1.0 / grid,
                          .weights = weights_});
    });
    return collect(dimension(), grid);
  }

  std::vector<double> clipped_losses(std::span<const float> direction, std::span<const float> steps,
                                     double max_loss) override {
    const double grid = linear_grid(max_loss, max_examples_);
    const int count = static_cast<int>(steps.size());
    clear(count);
    fill_scratch(along_);
    for_ranges([&](std::int64_t begin, std::int64_t end, double* total) {
      k_.linear_scores({.features = now_->features.data(),
                        .w = direction.data(),
                        .scores = along_.data(),
                        .begin = begin,
                        .end = end,
                        .d = dimension()});
      k_.linear_losses({.scores = scores_.data(),
                        .along = along_.data(),
                        .signs = now_->signs.data(),
                        .steps = steps.data(),
                        .total = total,
                        .begin = begin,
                        .end = end,
                        .count = count,
                        .loss = loss_,
                        .max_loss = static_cast<float>(max_loss),
                        .inverse_grid = 1.0 / grid,
                        .weights = weights_});
    });
    return collect(count, grid);
  }

  std::uint64_t correct(std::span<const float> w, const Dataset& test) override {
    const LinearData data = linear_data(test);
    AlignedVector<float> scores(static_cast<std::size_t>(data.tiles) * kTile);
    k_.linear_scores({.features = data.features.data(),
                      .w = w.data(),
                      .scores = scores.data(),
                      .begin = 0,
                      .end = data.tiles,
                      .d = data.d});
    std::uint64_t right = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) right += scores[i] * data.signs[i] > 0.0f;
    return right;
  }

 private:
  static void fill_scratch(AlignedVector<float>& scratch) {
    if (const auto fill = scratch_fill()) std::fill_n(scratch.data(), scratch.size(), *fill);
  }

  void use(const LinearData& data) {
    now_ = &data;
    const std::size_t slots = static_cast<std::size_t>(data.tiles) * kTile;
    scores_ = AlignedVector<float>(slots);
    along_ = AlignedVector<float>(slots);
  }

  /// Makes `count` partial sums for each thread, all 0.
  void clear(int count) {
    const std::size_t each = static_cast<std::size_t>(count) * kTile;
    totals_.assign(static_cast<std::size_t>(team_.size()), std::vector<double>(each, 0.0));
  }

  template <class Task>
  void for_ranges(const Task& task) {
    team_.run(static_cast<std::size_t>((now_->tiles + kRange - 1) / kRange),
              [&](std::size_t i, int thread) {
                const std::int64_t begin = static_cast<std::int64_t>(i) * kRange;
                task(begin, std::min(begin + kRange, now_->tiles),
                     totals_[static_cast<std::size_t>(thread)].data());
              });
  }

  /// Returns the totals over all threads of `count` partial sums, multiplied by `grid`. The partial
  /// sums are integers below 2^53, so adding them as doubles is exact in any order.
  std::vector<double> collect(int count, double grid) const {
    std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
    for (const std::vector<double>& total : totals_)
      for (std::size_t i = 0; i < total.size(); ++i) sums[i / kTile] += total[i];
    for (double& sum : sums) sum *= grid;
    return sums;
  }

  const Dataset& source_;
  Numbering numbering_;
  Loss loss_;
  SignWeights weights_;
  double max_examples_;
  const CpuKernels& k_;
  ThreadTeam team_;
  LinearData all_;
  LinearData batch_;
  const LinearData* now_ = nullptr;
  std::vector<std::uint32_t> drawn_;
  AlignedVector<float> scores_;
  AlignedVector<float> along_;
  std::vector<std::vector<double>> totals_;
};

}  // namespace

std::unique_ptr<LinearEngine> make_cpu_linear_engine(const Dataset& train, Loss loss,
                                                     double max_examples, int threads,
                                                     SignWeights weights) {
  check_linear_data(train);
  return std::make_unique<CpuLinearEngine>(train, loss, max_examples, threads, weights);
}

}  // namespace cudp

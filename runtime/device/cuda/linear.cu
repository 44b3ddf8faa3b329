#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/linear/linear_model.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/linear.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

DeviceLinear::DeviceLinear(Gpu gpu, const Dataset& train, Loss loss, double max_examples,
                           SignWeights weights)
    : gpu_(std::move(gpu)),
      loss_(loss),
      max_examples_(max_examples),
      weights_(weights),
      numbering_(train),
      size_(train.size()) {
  check_linear_data(train);
  const LinearData data = linear_data(train);
  d_ = data.d;
  all_ = uploaded(data);
  w_ = {gpu_, dimension_count()};
  scores_ = {gpu_, all_.slots()};
  along_ = {gpu_, all_.slots()};
  derivatives_ = {gpu_, all_.slots()};
  const std::vector<std::uint32_t> index = numbering_.index();
  index_ = {gpu_, index.size()};
  index_.upload(index);
  scratch_ = {gpu_, numbering_.count()};
  drawn_ = {gpu_, size_};
}

void DeviceLinear::draw_batch(const RandomStream& stream, std::uint64_t threshold) {
  if (size_ == 0) return;
  draw_examples(gpu_,
                {.stream = stream,
                 .threshold = threshold,
                 .begin = static_cast<std::int64_t>(numbering_.begin()),
                 .end = static_cast<std::int64_t>(numbering_.end()),
                 .drawn = drawn_.get(),
                 .first = static_cast<std::int64_t>(numbering_.begin()),
                 .index = index_.size() > 0 ? index_.get() : nullptr},
                scratch_.space());
  const std::int64_t count = scratch_.count();
  const std::int64_t tiles = linear_tiles(count);
  if (tiles * kTile > static_cast<std::int64_t>(batch_.slots())) batch_ = space_for(tiles);
  batch_.tiles = tiles;
  now_ = &batch_;
  batch_.features.fill_scratch();
  batch_.signs.fill_scratch();
  batch_.norms.fill_scratch();
  if (count > 0)
    launch(gpu_, "linear gather", linear_gather_kernel,
           LinearGather{.features = all_.features.get(),
                        .signs = all_.signs.get(),
                        .norms = all_.norms.get(),
                        .examples = drawn_.get(),
                        .count = count,
                        .to_features = batch_.features.get(),
                        .to_signs = batch_.signs.get(),
                        .to_norms = batch_.norms.get(),
                        .d = d_});
}

std::vector<std::uint32_t> DeviceLinear::batch() {
  if (size_ == 0) return {};
  return numbering_.numbers_of(drawn_.download(scratch_.count()));
}

std::vector<double> DeviceLinear::clipped_gradient_sum(std::span<const float> w, double max_norm) {
  const double grid = linear_grid(max_norm, max_examples_);
  clear_totals(dimension_count());
  scores_.fill_scratch();
  derivatives_.fill_scratch();
  if (now_->tiles > 0) {
    score(*now_, w, scores_);
    launch(gpu_, "linear derivatives", linear_derivatives_kernel,
           LinearDerivatives{.scores = scores_.get(),
                             .signs = now_->signs.get(),
                             .norms = now_->norms.get(),
                             .derivatives = derivatives_.get(),
                             .n = now_->tiles * kTile,
                             .loss = loss_,
                             .clip_norm = static_cast<float>(max_norm),
                             .weights = weights_});
    launch(gpu_, "linear sum", linear_sum_kernel,
           LinearSum{.features = now_->features.get(),
                     .derivatives = derivatives_.get(),
                     .total = totals_.get(),
                     .tiles = now_->tiles,
                     .d = d_,
                     .inverse_grid = inverse_of(grid)});
  }
  return collected(dimension_count(), grid);
}

std::vector<double> DeviceLinear::clipped_losses(std::span<const float> direction,
                                                 std::span<const float> steps, double max_loss) {
  const double grid = linear_grid(max_loss, max_examples_);
  clear_totals(steps.size());
  along_.fill_scratch();
  if (now_->tiles > 0 && !steps.empty()) {
    score(*now_, direction, along_);
    if (steps_.size() < steps.size()) steps_ = {gpu_, steps.size()};
    steps_.upload(steps);
    launch(gpu_, "linear losses", linear_losses_kernel,
           LinearLossSums{.scores = scores_.get(),
                          .along = along_.get(),
                          .signs = now_->signs.get(),
                          .steps = steps_.get(),
                          .total = totals_.get(),
                          .n = now_->tiles * kTile,
                          .count = static_cast<int>(steps.size()),
                          .loss = loss_,
                          .max_loss = static_cast<float>(max_loss),
                          .inverse_grid = inverse_of(grid),
                          .weights = weights_});
  }
  return collected(steps.size(), grid);
}

std::uint64_t DeviceLinear::correct(std::span<const float> w, const Dataset& test) {
  const LinearData data = linear_data(test);
  ensure(data.d == d_, "the test set does not fit the model");
  if (data.tiles == 0) return 0;
  const Tiles tiles = uploaded(data);
  Buffer<float> scores(gpu_, tiles.slots());
  score(tiles, w, scores);
  const std::vector<float> z = scores.download();
  std::uint64_t right = 0;
  for (std::size_t i = 0; i < z.size(); ++i) right += z[i] * data.signs[i] > 0.0f;
  return right;
}

DeviceLinear::Tiles DeviceLinear::space_for(std::int64_t tiles) {
  const std::size_t slots = static_cast<std::size_t>(tiles) * kTile;
  return {{gpu_, slots * dimension_count()}, {gpu_, slots}, {gpu_, slots}, tiles};
}

DeviceLinear::Tiles DeviceLinear::uploaded(const LinearData& data) {
  Tiles t = space_for(data.tiles);
  t.features.upload({data.features.data(), data.features.size()});
  t.signs.upload({data.signs.data(), data.signs.size()});
  t.norms.upload({data.norms.data(), data.norms.size()});
  return t;
}

void DeviceLinear::score(const Tiles& tiles, std::span<const float> w, const Buffer<float>& to) {
  ensure(w.size() == dimension_count(), "the weights do not fit the training set");
  w_.upload(w);
  launch(gpu_, "linear scores", linear_scores_kernel,
         LinearScores{.features = tiles.features.get(),
                      .w = w_.get(),
                      .scores = to.get(),
                      .begin = 0,
                      .end = tiles.tiles,
                      .d = d_});
}

float DeviceLinear::inverse_of(double grid) {
  const double inverse = 1.0 / grid;
  if (!(inverse < 0x1p127 && inverse > 0x1p-126))
    throw InputError("a linear model on CUDA: expected clipping bounds of 1e-31 to 1e38");
  return static_cast<float>(inverse);
}

void DeviceLinear::clear_totals(std::size_t count) {
  if (totals_.size() < count) totals_ = {gpu_, count};
  totals_.clear();
}

std::vector<double> DeviceLinear::collected(std::size_t count, double grid) const {
  std::vector<double> sums;
  sums.reserve(count);
  for (const FixedPoint units : totals_.download(count))
    sums.push_back(static_cast<double>(static_cast<long long>(units)) * grid);
  return sums;
}

}  // namespace cudp::cuda::inline CUDP_SIMT

// Kernels and launches of all parts of a step except the sum of contributions: drawing the batch,
// the arrays of coordinate-wise clipping, noise, release and update.
#include <algorithm>
#include <limits>

#include "kernels/contribution/coordinates.cuh"
#include "kernels/contribution/norm_total.cuh"
#include "kernels/step/allocation.cuh"
#include "kernels/step/finish.cuh"
#include "kernels/step/sample.cuh"
#include "kernels/step/step_size.cuh"
#include "kernels/step/tally.cuh"
#include "kernels/step/update.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/coordinates.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/cuda/step_end.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

auto* flags_kernel(const SampleArgs& args) {
  if (args.epoch_steps > 0) return allocated_flags_kernel;
  return args.index == nullptr ? sample_flags_kernel : numbered_flags_kernel;
}

}  // namespace

void draw_examples(Gpu& gpu, const SampleArgs& args, SampleSpace space, std::size_t steps) {
  validate(args);
  ensure(steps == 1 || space.cursor == nullptr, "a step of a run is drawn by itself");
  const std::int64_t tiles = (args.end - args.begin + 255) / 256;
  const bool is_ahead = space.range != nullptr;
  const auto of_steps = [steps](LaunchShape shape) {
    shape.grid.y = static_cast<unsigned>(steps);
    return shape;
  };
  space.scanned = tiles > kScannedTiles;
  // Half a warp takes a tile; two tiles in the flags kernels of Poisson and importance sampling.
  const std::int64_t flag_threads = args.epoch_steps > 0 ? tiles * 16 : (tiles + 1) / 2 * 16;
  gpu.launch(is_ahead ? "flags ahead" : "flags", flags_kernel(args),
             of_steps(strided_shape(flag_threads)), args, space);
  if (space.scanned) {
    constexpr unsigned kScanThreads = 1024;
    gpu.launch(is_ahead ? "scan ahead" : "scan", sample_scan_kernel,
               of_steps({.grid = {1},
                         .block = {kScanThreads},
                         .shared_bytes = kScanThreads / 32 * sizeof(std::uint32_t)}),
               args, space);
  }
  gpu.launch(is_ahead ? "place ahead" : "place", sample_place_kernel,
             of_steps(strided_shape(tiles * 16)), args, space);
}

std::size_t AllocatedEpochs::prepare(const SampleArgs& args, std::uint64_t step) {
  if (args.epoch_steps == 0) return std::numeric_limits<std::size_t>::max();
  // Groups of epochs_ epochs, so that an epoch's place in memory follows from its number.
  const std::uint64_t of_group = epochs_ * std::uint64_t{args.epoch_steps};
  const std::uint64_t first = step / of_group * of_group;
  if (steps_.first != first || steps_.end != first + of_group) {
    Allocate a{.stream = args.stream,
               .steps = args.epoch_steps,
               .begin = args.begin,
               .end = args.end,
               .step = step_.get(),
               .index = args.index};
    a.stream.step = first / args.epoch_steps;
    validate(a);
    LaunchShape shape = strided_shape((args.end - args.begin + 255) / 256 * 16);
    shape.grid.y = static_cast<unsigned>(epochs_);
    gpu_->launch("allocate", allocate_kernel, shape, a, range_.get());
    steps_ = {first, first + of_group};
  }
  return steps_.end - step;
}

void begin_drawn_step(Gpu& gpu, const NextStep& next) {
  // The launch has one block, because the kernel advances the cursor, and all threads need its
  // previous state.
  constexpr unsigned kMaxThreads = 1024;
  const unsigned threads = std::min(kMaxThreads, (next.batches.list_size + 31) / 32 * 32);
  gpu.launch("begin", begin_step_kernel, LaunchShape{.grid = {1}, .block = {threads}}, next.batches,
             next.space, next.drawn);
}

DeviceCoordinates::DeviceCoordinates(Gpu& gpu, std::size_t d, int groups)
    : gpu_(gpu),
      mean_(gpu, d),
      deviation_(gpu, d),
      centre_(gpu, d),
      inverse_(gpu, d),
      square_(gpu, d),
      product_(gpu, d),
      parts_(gpu, d > 0 ? 2 * launch_shape(sums(nullptr, nullptr)).grid.x : 0),
      scale_(gpu, d > 0 ? 1 : 0),
      shifts_(gpu, d > 0 ? static_cast<std::size_t>(groups) : 0) {
  mean_.clear();
  deviation_.clear();
}

CoordinatesView DeviceCoordinates::refresh(const StepCursor* cursor) {
  const CoordinateSums summed = sums(cursor, parts_.get());
  launch(gpu_, "coordinate sums", coordinate_sums_kernel, summed);
  launch(gpu_, "coordinate arrays", coordinate_arrays_kernel,
         CoordinateArrays{.active = &cursor->active,
                          .mean = mean_.get(),
                          .deviation = deviation_.get(),
                          .parts = parts_.get(),
                          .count = static_cast<int>(launch_shape(summed).grid.x),
                          .scale = scale_.get(),
                          .n = static_cast<std::int64_t>(mean_.size()),
                          .centre = centre_.get(),
                          .inverse = inverse_.get(),
                          .square = square_.get(),
                          .product = product_.get()});
  return {.centre = centre_.get(),
          .inverse = inverse_.get(),
          .square = square_.get(),
          .product = product_.get(),
          .shifts = shifts_.get()};
}

CoordinatesView DeviceCoordinates::refresh(const CudaLayout& layout, const StepCursor* cursor) {
  const CoordinatesView view = refresh(cursor);
  LayerShifts shifts{
      .centre = view.centre, .square = view.square, .shifts = view.shifts, .layer = {}};
  const auto sum_up = [&] {
    if (shifts.count > 0) launch(gpu_, "layer shifts", layer_shifts_kernel, shifts);
    shifts.count = 0;
  };
  for (const auto& layer : layout.layers) {
    if (shifts.count == LayerShifts::kMax) sum_up();
    if (!layer->is_frozen()) layer->note_shift(shifts);
  }
  sum_up();
  return view;
}

CoordinateSums DeviceCoordinates::sums(const StepCursor* cursor, double* parts) const {
  return {.active = &cursor->active,
          .mean = mean_.get(),
          .deviation = deviation_.get(),
          .n = static_cast<std::int64_t>(mean_.size()),
          .parts = parts};
}

void total_norms_by_kernel(Gpu& gpu, const NormTotal& a) {
  gpu.clear(a.total, sizeof *a.total);
  launch(gpu, "norm total", norm_total_kernel, a);
}

void add_tally(Gpu& gpu, const TallyBatch& batch) { launch(gpu, "tally", tally_kernel, batch); }

StepEnd::StepEnd(Gpu& gpu, DeviceModelState& state, StepCursor* cursor, ListedStep* list)
    : gpu_(gpu),
      state_(state),
      cursor_(cursor),
      list_(list),
      sum_(gpu, state.size() + kRankWords),
      undecided_(gpu, static_cast<std::size_t>(words_of_pairs(numbers()))),
      released_(gpu, state.size()),
      norm_parts_(gpu, released_norm_shape(numbers()).grid.x) {
  sum_.clear();
  undecided_.clear();
  released_.clear();
}

std::vector<FixedPoint> StepEnd::download_rank_words() const {
  return sum_.download(kRankWords, state_.size());
}

void StepEnd::finish(const StepRecipe& recipe, const RandomStream& noise,
                     const Unfinished& unfinished, bool is_shown, const NextStep& next) {
  FinishStep args = finish_args(recipe, noise, unfinished, is_shown);
  args.next = next;
  // If there are partial sums of thread blocks (slabs), the previous launch is the fused kernel
  // that computes them. This launch is then a dependent launch, so that it makes noise while that
  // kernel still runs.
  const bool is_dependent = unfinished.sums.slabs != nullptr;
  const FinishKernel kernel = finish_kernel_of(recipe.optimizer.kind, is_dependent);
  if (is_dependent)
    launch_dependent(gpu_, "finish", kernel, args);
  else
    launch(gpu_, "finish", kernel, args);
  if (has_separate_update(recipe) && !is_shown) update(recipe);
}

void StepEnd::update(const StepRecipe& recipe) {
  AdaptStepSize size{};
  if (recipe.step_size) {
    launch(gpu_, "released norm", released_norm_kernel, released_norm());
    size = {.settings = *recipe.step_size,
            .parts = norm_parts_.get(),
            .count = static_cast<int>(norm_parts_.size()),
            .sum = state_.step_size_sum(),
            .cursor = cursor_};
    validate(size);
  }
  UpdateArgs args = state_.update_args(recipe);
  args.released = released_.get();
  gpu_.launch("update", update_kernel_of(recipe.optimizer.kind), strided_shape(args.end, 64), args,
              &cursor_->scalars, size);
}

void StepEnd::complete(const StepCursor& at, const StepRecipe& recipe, const RandomStream& noise,
                       bool is_shown) {
  const std::vector<DecidedPair> made = decided_pairs(undecided_.download(), at, noise);
  ensure(made.size() == at.pending, "a step has left other pairs undecided than it counted");
  pairs_ = {gpu_, made.size()};
  pairs_.upload(made);
  launch(gpu_, "finish pairs", finish_pairs_kernel_of(recipe.optimizer.kind),
         FinishPairs{.step = finish_args(recipe, noise, {}, is_shown),
                     .pairs = pairs_.get(),
                     .count = static_cast<std::uint32_t>(made.size())});
  if (has_separate_update(recipe) && !is_shown) update(recipe);
}

FinishStep StepEnd::finish_args(const StepRecipe& recipe, const RandomStream& noise,
                                const Unfinished& unfinished, bool is_shown) {
  return {.cursor = cursor_,
          .sum = sum_.get(),
          .unfinished = unfinished,
          .noise = noise,
          .n = numbers(),
          .undecided = undecided_.get(),
          .released = has_separate_update(recipe) || is_shown ? released_.get() : nullptr,
          .update = state_.update_args(recipe),
          .by_pairs = numbers() < kPairwise,
          .list = list_};
}

ReleasedNorm StepEnd::released_norm() const {
  return {.released = released_.get(),
          .n = numbers(),
          .sum = state_.step_size_sum(),
          .cursor = cursor_,
          .parts = norm_parts_.get()};
}

}  // namespace cudp::cuda::inline CUDP_SIMT

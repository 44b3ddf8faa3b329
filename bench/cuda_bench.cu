// Whole DP-SGD steps on the device, as training runs them: recorded once and replayed, Poisson
// sampling of the whole data set included. Copy bandwidth, fp32 multiply-adds and TF32 products of
// tensor cores are measured in the same run, for comparison, and so are the toolkit's libraries
// (cuda_baselines.cu).
#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cuda_baselines.hpp"
#include "bench/linear_setup.hpp"
#include "bench/step_setup.hpp"
#include "kernels/common/lanes.hpp"
#include "kernels/common/tensor_core.cuh"
#include "runtime/device/cuda/batch_capacity.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/plans.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::bench {
namespace {

// grid, block: any.
__global__ void copy_kernel(const float4* from, float4* to, std::int64_t n) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    to[i] = from[i];
}

constexpr int kChains = 16;
constexpr int kRounds = 4096;
// grid, block: any. Every thread makes kChains * kRounds multiply-adds.
__global__ void fma_kernel(float a, float b, float* out) {
  float x[kChains];
  CUDP_UNROLL for (int i = 0; i < kChains; ++i) x[i] = a + static_cast<float>(i);
  for (int r = 0; r < kRounds; ++r)
    CUDP_UNROLL for (int i = 0; i < kChains; ++i) x[i] = fmaf(x[i], a, b);
  float sum = 0.0f;
  CUDP_UNROLL for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum == 12345.0f) *out = sum;  // never, but the compiler cannot know
}

constexpr int kTensorChains = 8;
// grid, block: any, of whole warps. Every warp makes kTensorChains * kRounds products of 16 x 8
// x 8.
__global__ void tensor_kernel(float v, float* out) {
  float d[kTensorChains][4] = {};
  const float a[4] = {to_tf32(v), to_tf32(-v), to_tf32(v), to_tf32(-v)};
  const float b[2] = {to_tf32(v), to_tf32(v)};
  for (int r = 0; r < kRounds; ++r)
    CUDP_UNROLL for (int i = 0; i < kTensorChains; ++i) mma_tf32(d[i], d[i] + 2, a, b);
  float sum = 0.0f;
  CUDP_UNROLL for (int i = 0; i < kTensorChains; ++i) sum += d[i][0] + d[i][3];
  if (sum == 12345.0f) *out = sum;
}

struct Peaks {
  double copy_bytes = 0;    ///< a second, read and written
  double flops = 0;         ///< fp32, a second
  double tensor_flops = 0;  ///< TF32 by mma.sync, a second

  double of(Precision p) const { return p == Precision::tf32 ? tensor_flops : flops; }
};

/// Best of five, in seconds; the download waits for the device.
template <class Work>
double best_seconds(cuda::Buffer<float>& memory, const Work& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < 20; ++k) work();
    (void)memory.download(1);
    const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    best = std::min(best, t.count() / 20);
  }
  return best;
}

Peaks measure_peaks(int multiprocessors) {
  cuda::CudaGpu gpu;
  constexpr std::size_t kFloats = std::size_t{1} << 28;  // a gibibyte: far more than any cache
  cuda::Buffer<float> from(gpu, kFloats);
  cuda::Buffer<float> to(gpu, kFloats);
  from.clear();
  const auto blocks = static_cast<unsigned>(multiprocessors);
  Peaks p;
  p.copy_bytes =
      8.0 * kFloats / best_seconds(to, [&] {
        gpu.launch("copy", copy_kernel, {.grid = {blocks * 16}, .block = {512}},
                   reinterpret_cast<const float4*>(from.get()), reinterpret_cast<float4*>(to.get()),
                   static_cast<std::int64_t>(kFloats / 4));
      });
  const double multiply_adds = 16.0 * multiprocessors * 512 * kChains * kRounds;
  p.flops = 2 * multiply_adds / best_seconds(to, [&] {
              gpu.launch("fma", fma_kernel, {.grid = {blocks * 16}, .block = {512}}, 0.999f, 1e-3f,
                         to.get());
            });
  const double products = 16.0 * multiprocessors * (512 / 32) * kTensorChains * kRounds;
  p.tensor_flops = 2 * 16 * 8 * 8 * products / best_seconds(to, [&] {
                     gpu.launch("tensor", tensor_kernel, {.grid = {blocks * 16}, .block = {512}},
                                0.999f, to.get());
                   });
  return p;
}

using MakeEngine = std::unique_ptr<Engine> (*)(const Network&, const EngineSettings&);

EngineSettings settings_of(double batch, std::size_t examples, Precision precision) {
  EngineSettings s = settings_for(batch, examples);
  s.precision = precision;
  return s;
}
const char* peak_name(Precision p) {
  return p == Precision::tf32 ? "of_tensor_peak" : "of_fma_peak";
}

void step(benchmark::State& state, const Setup& setup, const Peaks& peaks, MakeEngine make,
          Precision precision) {
  const Dataset& data = examples_for(setup);
  const Network net = network_of(setup);
  const double batch = static_cast<double>(state.range(0));
  const EngineSettings settings = settings_of(batch, data.size(), precision);
  const auto engine = make(net, settings);
  engine->load(data);
  engine->set_state(random_weights(net));
  const auto steps = static_cast<std::size_t>(static_cast<double>(data.size()) / batch);
  const std::vector<StepScalars> epoch(steps, scalars_for(batch));
  std::uint64_t n = 0;
  engine->run(settings.recipe, n, std::span(epoch).first(1));  // records the step
  for (auto _ : state) engine->run(settings.recipe, n += steps, epoch);
  const double examples =
      batch * static_cast<double>(steps) * static_cast<double>(state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(examples));
  using benchmark::Counter;
  state.counters["step_seconds"] =
      Counter(static_cast<double>(steps * state.iterations()), Counter::kIsRate | Counter::kInvert);
  state.counters["GFLOP/s"] = Counter(examples * flops(net) * 1e-9, Counter::kIsRate);
  state.counters[peak_name(precision)] =
      Counter(examples * flops(net) / peaks.of(precision), Counter::kIsRate);
}

std::unique_ptr<Engine> layer_wise(const Network& network, const EngineSettings& settings) {
  return make_layer_wise_cuda_engine(network, settings, cuda::kLargeDense);
}

/// The sum of clipped gradients alone, over one batch again and again, without sampling, noise and
/// update: what is left of a step is its launches.
void clipped_sum(benchmark::State& state, const Setup& setup, const Peaks& peaks, MakeEngine make,
                 Precision precision) {
  const Dataset& data = examples_for(setup);
  const Network net = network_of(setup);
  const double batch = static_cast<double>(state.range(0));
  const EngineSettings settings = settings_of(batch, data.size(), precision);
  const StepRecipe& recipe = settings.recipe;
  cuda::EngineParts p(cuda::CudaGpu(), net, settings, cuda::kLargeDense, make != layer_wise);
  p.load(data);
  p.set_train_state(random_weights(net));
  const std::int64_t room = cuda::batch_capacity(recipe.draw, data.size());
  p.passes.reserve(cuda::public_capacity(recipe.draw, settings.expected_batch).value_or(room));
  cuda::StepSum sum(p);
  cuda::draw_examples(p.gpu, sum.sample_args(recipe.draw), p.sample.space());
  const std::size_t drawn = p.sample.count();
  StepCursor cursor;
  cursor.scale = sum_scale(kClipNorm, bound_of(recipe.contribution, double{kClipNorm}).grid);
  p.gpu.upload(p.position.cursor(), &cursor, sizeof cursor);
  const auto recording = p.gpu.record([&] { (void)sum.add_up(recipe, room, p.train.data()); });
  constexpr std::size_t kSteps = 100;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kSteps; ++i) p.gpu.replay(recording);
    p.end.clear_sum();  // it is of no step
    (void)p.position.wait();
  }
  const double examples =
      static_cast<double>(drawn) * static_cast<double>(kSteps * state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(examples));
  using benchmark::Counter;
  state.counters["step_seconds"] = Counter(static_cast<double>(kSteps * state.iterations()),
                                           Counter::kIsRate | Counter::kInvert);
  state.counters[peak_name(precision)] =
      Counter(examples * flops(net) / peaks.of(precision), Counter::kIsRate);
}

RandomStream stream_of(Stream purpose) {
  return {Generator::chacha20, {{1, 2, 3, 4, 5, 6, 7, 8}}, purpose, 0};
}

enum class Draws { poisson, candidates, allocated };

/// A batch of one example in a thousand; candidates of the importance rule; or, by random
/// allocation, one step after another of epochs of a thousand steps, of which the first allocates
/// all examples. items are examples. Bytes: flags and counts written and read, what was drawn
/// written, norms or the examples' steps read.
void sampling(benchmark::State& state, const Peaks& peaks, Draws draws) {
  cuda::CudaGpu gpu;
  constexpr std::size_t kExamples = 100'000'000;
  constexpr double kRate = 1e-3;
  const cuda::SampleScratch scratch(gpu, kExamples);
  cuda::Buffer<std::uint32_t> drawn(gpu, kExamples);
  cuda::Buffer<float> norms(gpu, draws == Draws::candidates ? kExamples : 0);
  norms.clear();
  const bool allocates = draws == Draws::allocated;
  cuda::AllocatedEpochs epochs(gpu, allocates ? kExamples : 0);
  SampleArgs args{.stream = stream_of(allocates ? Stream::allocation : Stream::sampling),
                  .threshold = static_cast<std::uint64_t>(kRate * 0x1p32),
                  .begin = 0,
                  .end = kExamples,
                  .drawn = drawn.get(),
                  .norms = norms.get(),
                  // Candidates by chance kRate where the norm last seen is 0.
                  .rule = {.clip = 1.0, .multiple = 5.0, .min_norm = 0.05, .rate = 4 * kRate},
                  .epoch_steps = allocates ? static_cast<std::uint32_t>(1 / kRate) : 0,
                  .allocated = epochs.stored()};
  for (auto _ : state) {
    (void)epochs.prepare(args, args.stream.step);
    cuda::draw_examples(gpu, args, scratch.space());
    ++args.stream.step;
    (void)scratch.count();  // waits
  }
  const double bytes = static_cast<double>(kExamples) * (2.0 / 8 + 4 * 4.0 / 256 + 4.0 * kRate +
                                                         (draws == Draws::poisson ? 0.0 : 4.0));
  const auto rounds = static_cast<double>(state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(kExamples) * state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes * rounds * 1e-9, Counter::kIsRate);
  state.counters["of_copy"] = Counter(bytes * rounds / peaks.copy_bytes, Counter::kIsRate);
}

/// The batches of an epoch of `steps` steps, drawn ahead as trainings draw them: by random
/// allocation, or Poisson batches of the same expected size. items are steps.
void batches_ahead(benchmark::State& state, std::size_t examples, std::uint32_t steps,
                   bool allocates) {
  cuda::CudaGpu gpu;
  cuda::AllocatedEpochs epochs(gpu, allocates ? examples : 0);
  const double rate = 1.0 / steps;
  cuda::DrawnAhead ahead(gpu, examples,
                         static_cast<std::size_t>(cuda::capacity_at_rate(rate, examples)));
  const cuda::Buffer<std::uint32_t> word(gpu, 1);
  const SampleArgs args{.stream = stream_of(allocates ? Stream::allocation : Stream::sampling),
                        .threshold = static_cast<std::uint64_t>(rate * 0x1p32),
                        .begin = 0,
                        .end = static_cast<std::int64_t>(examples),
                        .drawn = nullptr,
                        .epoch_steps = allocates ? steps : 0,
                        .allocated = epochs.stored()};
  std::uint64_t step = 0;
  for (auto _ : state) {
    for (const std::uint64_t end = step + steps; step < end; ++step)
      if (!ahead.has(step)) ahead.draw(args, step, end - step, epochs.prepare(args, step));
    (void)word.download();  // waits
  }
  state.SetItemsProcessed(std::int64_t{steps} * state.iterations());
}

using Bench = void (*)(benchmark::State&, const Setup&, const Peaks&, MakeEngine, Precision);

void add(const Setup& setup, std::initializer_list<int> batches, const Peaks& peaks,
         const char* what = "/epoch", Bench bench = step, MakeEngine make = make_cuda_engine,
         Precision precision = Precision::fp32) {
  for (const int batch : batches)
    benchmark::RegisterBenchmark((std::string(setup.name) + what).c_str(),
                                 [&setup, peaks, bench, make, precision](benchmark::State& s) {
                                   bench(s, setup, peaks, make, precision);
                                 })
        ->ArgName("batch")
        ->Arg(batch)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace cudp::bench

int main(int argc, char** argv) {
  using namespace cudp::bench;
  const auto devices = cudp::cuda_devices();
  const bool lists_names = argc == 2 && std::string(argv[1]) == "--benchmark_list_tests";
  if (devices.empty() && !lists_names) {
    std::puts("no CUDA device");
    return 3;
  }
  const int multiprocessors = lists_names ? 0 : devices[0].multiprocessors;
  const Peaks peaks = lists_names ? Peaks() : measure_peaks(multiprocessors);
  benchmark::AddCustomContext("device", lists_names ? "none" : devices[0].name);
  benchmark::AddCustomContext("copy_GB/s", std::to_string(peaks.copy_bytes * 1e-9));
  benchmark::AddCustomContext("fma_GFLOP/s", std::to_string(peaks.flops * 1e-9));
  benchmark::AddCustomContext("tensor_GFLOP/s", std::to_string(peaks.tensor_flops * 1e-9));
  const auto alone = [](const std::string& name, const auto& body) {
    benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  alone("sampling", [=](benchmark::State& s) { sampling(s, peaks, Draws::poisson); });
  alone("sampling/importance", [=](benchmark::State& s) { sampling(s, peaks, Draws::candidates); });
  alone("sampling/allocation", [=](benchmark::State& s) { sampling(s, peaks, Draws::allocated); });
  for (const bool allocates : {false, true}) {
    const std::string of = allocates ? "/allocation" : "/poisson";
    alone("batches_ahead/60000/steps:118" + of,
          [=](benchmark::State& s) { batches_ahead(s, 60'000, 118, allocates); });
    alone("batches_ahead/32561/steps:8" + of,
          [=](benchmark::State& s) { batches_ahead(s, 32'561, 8, allocates); });
  }
  for (const Setup* setup : {&kCnn, &kCifarCnn, &kAdult, &kAdultMlp})
    add(*setup, {16, 64, 256, 512, 1024, 2048, 4096}, peaks);
  add(kCnn, {256, 2048}, peaks, "/epoch_layer_wise", step, layer_wise);
  for (const Setup* fused : {&kCnn, &kScatterCnn, &kMlpPca, &kLogistic, &kAdult}) {
    add(*fused, {132, 256, 2048, 4096}, peaks, "/clipped_sum", clipped_sum);
    add(*fused, {256, 2048}, peaks, "/clipped_sum_layer_wise", clipped_sum, layer_wise);
  }
  for (const Setup* other : {&kScatterCnn, &kMlpPca, &kLogistic, &kMlp})
    add(*other, {256, 2048}, peaks);
  constexpr auto kTf32 = cudp::Precision::tf32;
  for (const Setup* small : {&kCnn, &kScatterCnn}) {
    add(*small, {256, 512, 2048, 4096}, peaks, "/epoch_tf32", step, cudp::make_cuda_engine, kTf32);
    add(*small, {132, 256, 2048, 4096}, peaks, "/clipped_sum_tf32", clipped_sum,
        cudp::make_cuda_engine, kTf32);
  }
  for (const Setup* large : {&kCifarCnn, &kMlp}) {
    add(*large, {256, 2048}, peaks, "/epoch_tf32", step, cudp::make_cuda_engine, kTf32);
    add(*large, {256, 2048}, peaks, "/clipped_sum", clipped_sum);
    add(*large, {256, 2048}, peaks, "/clipped_sum_tf32", clipped_sum, cudp::make_cuda_engine,
        kTf32);
  }
  for (const Setup* texts : {&kImdbRnn, &kImdbLstm}) {
    add(*texts, {64, 512, 4096}, peaks);
    add(*texts, {512, 4096}, peaks, "/epoch_tf32", step, cudp::make_cuda_engine,
        cudp::Precision::tf32);
    add(*texts, {512, 4096}, peaks, "/clipped_sum", clipped_sum);
  }
  for (const Setup* linear : {&kWideLinear, &kNarrowLinear})
    for (const std::size_t batch : {std::size_t{0}, linear->examples / 10})
      alone(
          linear->name + (batch == 0 ? "/iteration" : "/iteration_batch:" + std::to_string(batch)),
          [=](benchmark::State& s) {
            const auto engine =
                cudp::make_cuda_linear_engine(examples_for(*linear), cudp::Loss::logistic, 1e6);
            linear_iteration(s, *linear, *engine, peaks.copy_bytes, batch);
          });
  register_baselines();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

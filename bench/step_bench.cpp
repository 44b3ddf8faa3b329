// Whole DP-SGD steps on the CPU, as training runs them: Poisson sampling of 60,000 (50,000 colour)
// examples, per-example gradients, clipping, sum, noise, update. items are sampled examples.
// GFLOP/s counts the products that a step needs: forward, input gradient, weight gradient. peak is
// measured on registers in the same run, with as many threads.
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/fma_peak.hpp"
#include "kernels/cpu.hpp"
#include "runtime/engine.hpp"

namespace cudp::bench {
namespace {

/// Operations of one example's forward and backward pass.
double flops(const Network& net) {
  double total = 0;
  bool first = true;
  for (const NetworkLayer& l : net.layers) {
    double products = 0;
    if (const auto* c = std::get_if<Conv2d>(&l.layer))
      products = static_cast<double>(l.out.size()) * c->kernel * c->kernel * l.in.channels;
    else if (std::holds_alternative<Dense>(l.layer))
      products = static_cast<double>(l.out.size()) * l.in.size();
    total += 2 * products * (first ? 2 : 3);  // the first layer's input needs no gradient
    if (products > 0) first = false;
  }
  return total;
}

Dataset random_images(const Shape& shape, std::size_t n) {
  Dataset d;
  d.shape = shape;
  d.classes = 10;
  std::mt19937_64 random(1);
  d.bytes.resize(n * static_cast<std::size_t>(shape.size()));
  for (auto& b : d.bytes) b = static_cast<std::uint8_t>(random());
  d.labels.resize(n);
  for (auto& l : d.labels) l = static_cast<std::uint8_t>(random() % 10);
  return d;
}

TrainState random_weights(const Network& net) {
  TrainState s;
  s.parameters.resize(net.parameter_count);
  s.moment1.resize(net.parameter_count);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const ParameterTensor& p : net.parameters)
    for (std::size_t i = 0; i < p.size; ++i)
      s.parameters[p.offset + i] =
          p.is_bias ? 0.1f : normal(random) / std::sqrt(static_cast<float>(p.fan_in));
  return s;
}

double peak_of(SimdLevel level, int threads) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (double& r : rates) team.emplace_back([&r, level] { r = fma_peak(level); });
  for (auto& t : team) t.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

struct Setup {
  const char* model;
  Shape shape;
  std::size_t examples;
};
const Setup kCnn{"cnn", {1, 28, 28}, 60000};
const Setup kCifarCnn{"cifar-cnn", {3, 32, 32}, 50000};
const Setup kMlp{"mlp", {1, 28, 28}, 60000};
const Setup kLogistic{"logistic", {1, 28, 28}, 60000};

void step(benchmark::State& state, const Setup& setup, int threads) {
  static const Dataset grey = random_images(kCnn.shape, kCnn.examples);
  static const Dataset colour = random_images(kCifarCnn.shape, kCifarCnn.examples);
  const Dataset& data = setup.shape.channels == 1 ? grey : colour;
  const Network net =
      build_network(parse_model(builtin_model(setup.model), setup.model, 10, "tanh"), setup.shape, 10);
  const double batch = static_cast<double>(state.range(0));
  EngineSettings settings;
  settings.clip.max_norm = 0.1f;
  settings.optimizer.kind = OptimizerKind::momentum;
  settings.threads = threads;
  settings.key = {{1, 2, 3, 4, 5, 6, 7, 8}};
  settings.sampling_threshold =
      static_cast<std::uint64_t>(std::ceil(batch / static_cast<double>(data.size()) * 0x1p32));
  const auto engine = make_cpu_engine(net, settings);
  engine->load(data);
  engine->set_state(random_weights(net));
  const StepScalars scalars{.learning_rate = 1e-4f,
                            .noise_std = 0.1f,
                            .inverse_batch = static_cast<float>(1 / batch),
                            .bias1 = 1,
                            .bias2 = 1,
                            .ema_decay = 0};
  const double peak = peak_of(best_simd_level(), threads);
  std::uint64_t n = 0;
  for (auto _ : state)
    engine->run(n++, {&scalars, 1}, [](Engine& e) {
      e.sample_batch();
      e.sum_clipped_gradients();
      e.add_noise_and_update();
    });
  const double examples = batch * static_cast<double>(state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(examples));
  state.counters["GFLOP/s"] =
      benchmark::Counter(examples * flops(net) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["peak_GFLOP/s"] = peak * 1e-9;
  state.counters["of_peak"] =
      benchmark::Counter(examples * flops(net) / peak, benchmark::Counter::kIsRate);
}

void add(const Setup& setup, std::initializer_list<int> batches) {
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    for (const int batch : batches)
      benchmark::RegisterBenchmark(
          (std::string(setup.model) + "/threads:" + std::to_string(threads)).c_str(),
          [&setup, threads](benchmark::State& s) { step(s, setup, threads); })
          ->ArgName("batch")
          ->Arg(batch)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace cudp::bench

int main(int argc, char** argv) {
  using namespace cudp::bench;
  benchmark::AddCustomContext("simd", std::string(cudp::simd_name(cudp::best_simd_level())));
  add(kCnn, {16, 64, 256, 512, 2048});
  add(kCifarCnn, {64, 512});
  add(kMlp, {512});
  add(kLogistic, {512});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

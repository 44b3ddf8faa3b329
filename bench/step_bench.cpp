// Whole DP-SGD steps on the CPU, as training runs them: Poisson sampling of 60,000 (50,000 colour)
// examples, per-example gradients, clipping, sum, noise, update. items are sampled examples.
// GFLOP/s counts the products that a step needs: forward, input gradient, weight gradient. peak is
// measured on registers in the same run, with as many threads. For linear models on the whole data
// set, memory is the peak: what the threads read of it in the same run.
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/fma_peak.hpp"
#include "bench/linear_setup.hpp"
#include "bench/memory_peak.hpp"
#include "bench/step_setup.hpp"
#include "kernels/cpu.hpp"

namespace cudp::bench {
namespace {

double peak_of(SimdLevel level, int threads) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  team.reserve(rates.size());
  for (double& r : rates) team.emplace_back([&r, level] { r = fma_peak(level); });
  for (auto& t : team) t.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

void step(benchmark::State& state, const Setup& setup, int threads) {
  const Dataset& data = examples_for(setup);
  const Network net = network_of(setup);
  const double batch = static_cast<double>(state.range(0));
  EngineSettings settings = settings_for(batch, data.size());
  settings.threads = threads;
  const auto engine = make_cpu_engine(net, settings);
  engine->load(data);
  engine->set_state(random_weights(net));
  const StepScalars scalars = scalars_for(batch);
  const double peak = peak_of(best_simd_level(), threads);
  std::uint64_t n = 0;
  for (auto _ : state) engine->run(n++, {&scalars, 1}, dp_sgd_step);
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
          (std::string(setup.name) + "/threads:" + std::to_string(threads)).c_str(),
          [&setup, threads](benchmark::State& s) { step(s, setup, threads); })
          ->ArgName("batch")
          ->Arg(batch)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  }
}

void add_linear(const Setup& setup) {
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    benchmark::RegisterBenchmark(
        (std::string(setup.name) + "/iteration/threads:" + std::to_string(threads)).c_str(),
        [&setup, threads](benchmark::State& s) {
          const auto engine = make_cpu_linear_engine(examples_for(setup), Loss::logistic, threads);
          linear_iteration(s, setup, *engine, read_peak(threads), 0);
        })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace cudp::bench

int main(int argc, char** argv) {
  using namespace cudp::bench;
  benchmark::AddCustomContext("simd", std::string(cudp::simd_name(cudp::best_simd_level())));
  for (const Setup* setup : {&kCnn, &kCifarCnn, &kAdult, &kAdultMlp})
    add(*setup, {16, 64, 256, 512, 1024, 2048, 4096});
  add(kMlp, {512});
  add(kLogistic, {512});
  add_linear(kWideLinear);
  add_linear(kNarrowLinear);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

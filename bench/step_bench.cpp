// Whole DP-SGD steps on the CPU, as training runs them: Poisson sampling of 60,000 (50,000 colour)
// examples, per-example gradients, clipping, sum, noise, update. items are sampled examples.
// GFLOP/s counts the products that a step needs: forward, input gradient, weight gradient. peak is
// measured on registers in the same run, with as many threads. adaclip and importance are the steps
// of AdaCliP and DPIS (five candidates an example of the batch), sgd that without privacy; -coded
// reads rows by their codes, and its GFLOP/s are those of the dense rows. For linear models on the
// whole data set, memory is the peak: what the threads read of it in the same run.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/fma_peak.hpp"
#include "bench/linear_setup.hpp"
#include "bench/memory_peak.hpp"
#include "bench/step_setup.hpp"
#include "kernels/common/simd_level.hpp"

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

/// sgd: the clipping norm is so large that nothing is clipped, no noise, and facts are kept.
enum class Kind { dp_sgd, adaclip, importance, sgd };

constexpr double kMultiple = 5.0;  // candidates for each example of the batch

/// So that the expected batch is drawn by the norms as they are.
ImportanceRule importance_rule(Engine& engine, double clip, double batch) {
  engine.measure_norms();
  double total = 0.0;
  for (const float norm : engine.norms()) total += std::fmin(norm, clip);
  return {.clip = clip, .multiple = kMultiple, .min_norm = 0.01 * clip, .rate = batch / total};
}

void step(benchmark::State& state, const Setup& setup, int threads, Kind kind) {
  const Dataset& data = examples_for(setup);
  const Network net = network_of(setup);
  const double batch = static_cast<double>(state.range(0));
  EngineSettings settings = settings_for(batch, data.size());
  settings.threads = threads;
  settings.diagnostics = kind == Kind::sgd;
  if (kind == Kind::adaclip) settings.recipe.contribution = TransformedGradient{};
  if (kind == Kind::importance)
    settings.recipe = {.draw = Candidates{},
                       .contribution = AcceptedDirection{},
                       .optimizer = settings.recipe.optimizer};
  const auto engine = make_cpu_engine(net, settings);
  engine->load(data);
  TrainState start = random_weights(net);
  if (kind == Kind::adaclip) {
    start.mean.assign(net.parameter_count, 1e-3f);
    start.deviation.assign(net.parameter_count, 1e-2f);
  }
  engine->set_state(start);
  StepRecipe recipe = settings.recipe;
  if (kind == Kind::importance)
    recipe.draw = Candidates{importance_rule(*engine, static_cast<double>(kClipNorm), batch)};
  StepScalars scalars = scalars_for(batch);
  if (kind == Kind::sgd) {
    scalars.clip_norm = 64.0f;
    scalars.noise_std = 0.0f;
  }
  const double peak = peak_of(best_simd_level(), threads);
  std::uint64_t n = 0;
  for (auto _ : state) engine->run(recipe, n++, {&scalars, 1});
  const double examples = batch * static_cast<double>(state.iterations());
  const double gradients = examples * (kind == Kind::importance ? kMultiple : 1.0);
  state.SetItemsProcessed(static_cast<std::int64_t>(examples));
  state.counters["GFLOP/s"] =
      benchmark::Counter(gradients * flops(net) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["peak_GFLOP/s"] = peak * 1e-9;
  state.counters["of_peak"] =
      benchmark::Counter(gradients * flops(net) / peak, benchmark::Counter::kIsRate);
}

void add(const Setup& setup, std::initializer_list<int> batches, Kind kind = Kind::dp_sgd,
         const char* what = "") {
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    for (const int batch : batches)
      benchmark::RegisterBenchmark(
          (std::string(setup.name) + what + "/threads:" + std::to_string(threads)).c_str(),
          [&setup, threads, kind](benchmark::State& s) { step(s, setup, threads, kind); })
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
          const auto engine =
              make_cpu_linear_engine(examples_for(setup), Loss::logistic, 1e6, threads);
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
  for (const Setup* setup : {&kCnn, &kCifarCnn, &kAdult, &kAdultCoded, &kAdultMlp, &kAdultMlpCoded})
    add(*setup, {16, 64, 256, 512, 1024, 2048, 4096});
  for (const Setup* setup : {&kImdbRnn, &kImdbLstm}) add(*setup, {64, 512});
  add(kAdultCoded, {4096}, Kind::sgd, "/sgd");
  add(kAdultCoded, {16384});
  add(kTableCoded, {4096, 65536});
  add(kMlp, {512});
  add(kMlpPca, {512});
  add(kLogistic, {512});
  for (const Setup* setup : {&kCnn, &kMlpPca, &kLogistic}) {
    add(*setup, {512}, Kind::adaclip, "/adaclip");
    add(*setup, {512}, Kind::importance, "/importance");
  }
  add_linear(kWideLinear);
  add_linear(kNarrowLinear);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

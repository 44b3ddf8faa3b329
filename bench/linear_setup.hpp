#pragma once
// What the benchmarks of linear models on the whole data set share
// (runtime/device/linear_engine.hpp).
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/step_setup.hpp"
#include "runtime/device/linear_engine.hpp"

namespace cudp::bench {

// 188 MB of features, which no cache holds, and 4.1 MB.
inline const Setup kWideLinear{"svm", {784, 1, 1}, 60000, 2, "linear-784"};
inline const Setup kNarrowLinear{"svm", {33, 1, 1}, 30000, 2, "linear-33"};

/// Benchmark of an iteration of DP-AGD without noise: the sum of clipped gradients, and the losses
/// along it for 20 step sizes. batch: expected size of a batch that is drawn in each iteration; 0
/// to use all examples. Reports the examples per second, and GB/s, which counts the features alone,
/// read three times. peak_bytes: bandwidth of the memory that has the features [bytes per second].
inline void linear_iteration(benchmark::State& state, const Setup& setup, LinearEngine& engine,
                             double peak_bytes, std::size_t batch) {
  const auto size = static_cast<double>(batch == 0 ? setup.examples : batch);
  const auto threshold =
      static_cast<std::uint64_t>(size / static_cast<double>(setup.examples) * 0x1p32);
  const auto d = static_cast<std::size_t>(engine.dimension());
  const std::vector<float> w(d, 0.01f);
  std::vector<float> direction(d);
  std::vector<float> steps;
  for (int k = 0; k < 20; ++k) steps.push_back(0.1f * static_cast<float>(k));
  RandomStream stream{Generator::chacha20, {{1, 2, 3, 4, 5, 6, 7, 8}}, Stream::sampling, 0};
  for (auto _ : state) {
    if (batch != 0) engine.draw_batch(stream, threshold);
    ++stream.step;
    const std::vector<double> sum = engine.clipped_gradient_sum(w, 0.1);
    for (std::size_t j = 0; j < d; ++j) direction[j] = static_cast<float>(sum[j] / size);
    benchmark::DoNotOptimize(engine.clipped_losses(direction, steps, 1.0));
  }
  const double examples = size * static_cast<double>(state.iterations());
  const double bytes = 3 * 4.0 * static_cast<double>(d) * examples;
  using benchmark::Counter;
  state.SetItemsProcessed(static_cast<std::int64_t>(examples));
  state.counters["GB/s"] = Counter(bytes * 1e-9, Counter::kIsRate);
  state.counters["of_memory"] = Counter(bytes / peak_bytes, Counter::kIsRate);
}

}  // namespace cudp::bench

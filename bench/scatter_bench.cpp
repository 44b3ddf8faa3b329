// Scattering features on the CPU, as `--features scatter` computes them. items are images; bytes
// are those of the features written. Arg: threads.
#include <cstdint>

#include <benchmark/benchmark.h>

#include "runtime/device/scatter.hpp"
#include "runtime/device/scatter_tables.hpp"

namespace cudp::bench {
namespace {

constexpr std::size_t kImages = 4096;

void scatter(benchmark::State& state, const Shape& shape) {
  Dataset d;
  d.shape = shape;
  d.labels.resize(kImages);
  d.bytes.resize(kImages * static_cast<std::size_t>(shape.size()));
  std::uint32_t random = 1;
  for (std::uint8_t& b : d.bytes)
    b = static_cast<std::uint8_t>((random = random * 1664525u + 1013904223u) >> 24);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        scatter_on_cpu(d, static_cast<int>(state.range(0)), [](double) {}).data());
  const auto images = static_cast<std::int64_t>(state.iterations() * kImages);
  state.SetItemsProcessed(images);
  state.SetBytesProcessed(images * scattered_shape(shape).size() * 4);
}

BENCHMARK_CAPTURE(scatter, grey_28x28, Shape{1, 28, 28})
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(scatter, colour_32x32, Shape{3, 32, 32})
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cudp::bench

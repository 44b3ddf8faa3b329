// Random words, normal numbers, rounded ones, Poisson sampling and the noisy update, one thread, at
// every SIMD level this processor has. items: words, normals, examples, parameters; bytes: what the
// operation must read and write in memory (nothing for what stays in cache by design).
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"

namespace cudp {
namespace {

RandomStream stream(Generator generator, Stream purpose) {
  return {generator, {{1, 2, 3, 4, 5, 6, 7, 8}}, purpose, 1};
}

void words(benchmark::State& state, const CpuKernels* k, Generator generator) {
  std::vector<std::uint32_t> out(1 << 14);
  const auto n = static_cast<std::int64_t>(out.size());
  for (auto _ : state) {
    k->fill_words(stream(generator, Stream::noise), 0, n, out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * n * 4);
}

void normals(benchmark::State& state, const CpuKernels* k, Generator generator) {
  std::vector<float> out(1 << 14);
  const auto n = static_cast<std::int64_t>(out.size());
  for (auto _ : state) {
    k->fill_normals(stream(generator, Stream::noise), 0, n, out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * n * 4);
}

// s = 2^state.range(0).
void rounded_normals(benchmark::State& state, const CpuKernels* k, Generator generator) {
  std::vector<std::int64_t> out(1 << 14);
  const auto n = static_cast<std::int64_t>(out.size());
  RoundedNormals args{.stream = stream(generator, Stream::noise),
                      .s = std::ldexp(1.0, static_cast<int>(state.range(0))),
                      .begin = 0,
                      .end = n,
                      .out = out.data()};
  for (auto _ : state) {
    ++args.stream.step;
    k->rounded_normals(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * n * 8);
}

// 60,000 examples at sampling rate state.range(0) / 1000.
void sampling(benchmark::State& state, const CpuKernels* k) {
  constexpr std::int64_t kExamples = 60000;
  std::vector<std::uint32_t> drawn(kExamples);
  const double rate = static_cast<double>(state.range(0)) / 1000.0;
  SampleArgs args{.stream = stream(Generator::chacha20, Stream::sampling),
                  .threshold = static_cast<std::uint64_t>(rate * 0x1p32),
                  .begin = 0,
                  .end = kExamples,
                  .drawn = drawn.data()};
  std::int64_t count = 0;
  for (auto _ : state) {
    ++args.stream.step;
    count += k->sample(args);
  }
  state.counters["rate"] =
      static_cast<double>(count) / static_cast<double>(state.iterations() * kExamples);
  state.SetItemsProcessed(state.iterations() * kExamples);
  state.SetBytesProcessed(count * 4);
}

// state.range(0) parameters with an average kept; range(1): through a permutation.
void update(benchmark::State& state, const CpuKernels* k, OptimizerKind kind) {
  const std::int64_t d = state.range(0);
  const auto n = static_cast<std::size_t>(d);
  const std::vector<std::int64_t> sum(n, 1000);
  std::vector<float> released(n);
  std::vector<float> parameters(n);
  std::vector<float> moment1(n);
  std::vector<float> moment2(n);
  std::vector<float> average(n);
  std::vector<std::int32_t> where(n);
  for (std::int64_t j = 0; j < d; ++j) where[j] = static_cast<std::int32_t>(j * 7919 % d);
  ReleaseSum release{.sum = sum.data(),
                     .where = state.range(1) ? where.data() : nullptr,
                     .grid = 0x1p-20,
                     .noise_std = 1.0f,
                     .noise = stream(Generator::chacha20, Stream::noise),
                     .begin = 0,
                     .end = d,
                     .released = released.data()};
  UpdateArgs args{.released = released.data(),
                  .parameters = parameters.data(),
                  .moment1 = moment1.data(),
                  .moment2 = moment2.data(),
                  .average = average.data(),
                  .begin = 0,
                  .end = d,
                  .optimizer = {.kind = kind},
                  .scalars = {.learning_rate = 0.1f,
                              .noise_std = 1.0f,
                              .inverse_batch = 0.01f,
                              .bias1 = 1.0f,
                              .bias2 = 1.0f,
                              .ema_decay = 0.99f,
                              .clip_norm = 1.0f}};
  for (auto _ : state) {
    ++release.noise.step;
    k->release_sum(release);
    k->update(args);
    benchmark::ClobberMemory();
  }
  const int moments = kind == OptimizerKind::sgd ? 0 : kind == OptimizerKind::adam ? 2 : 1;
  const std::int64_t floats = 4 + 2 * (2 + moments) + (state.range(1) ? 1 : 0);
  state.SetItemsProcessed(state.iterations() * d);
  state.SetBytesProcessed(state.iterations() * d * 4 * floats);
}

int register_all() {
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    if (level > best_simd_level()) continue;
    const CpuKernels* k = &cpu_kernels(level);
    std::string at = "/";
    at += simd_name(level);
    const auto add = [&](const char* name, auto function, auto... more) {
      return benchmark::RegisterBenchmark(std::string(name).append(at).c_str(), function, k,
                                          more...);
    };
    add("words/chacha20", words, Generator::chacha20);
    add("words/philox", words, Generator::philox);
    add("normals/chacha20", normals, Generator::chacha20);
    add("normals/philox", normals, Generator::philox);
    for (const auto& [name, generator] :
         {std::pair{"rounded_normals/chacha20", Generator::chacha20},
          {"rounded_normals/philox", Generator::philox}})
      add(name, rounded_normals, generator)->ArgName("log2_s")->Arg(16)->Arg(24)->Arg(32)->Arg(40);
    add("sample_60000", sampling)->ArgName("rate_permille")->Arg(9)->Arg(300);
    for (const auto& [name, kind] : {std::pair{"update_sgd", OptimizerKind::sgd},
                                     {"update_momentum", OptimizerKind::momentum},
                                     {"update_adam", OptimizerKind::adam}})
      add(name, update, kind)
          ->ArgNames({"d", "permuted"})
          ->Args({26010, 0})
          ->Args({26010, 1})
          ->Args({550570, 0});
  }
  return 0;
}

const int kRegistered = register_all();

}  // namespace
}  // namespace cudp

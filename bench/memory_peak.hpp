#pragma once
// The peak that passes over a whole data set are measured against: reading memory in order.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

namespace cudp::bench {

/// Measures the memory bandwidth: returns the bytes per second that the threads read together, each
/// its part of 128 MB; the best of five measurements.
inline double read_peak(int threads) {
  const std::vector<std::uint64_t> words(std::size_t{1} << 24, 1);
  const auto part = static_cast<std::ptrdiff_t>(words.size()) / threads;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> team;
    for (int i = 0; i < threads; ++i)
      team.emplace_back([&words, part, first = part * i] {
        const auto begin = words.begin() + first;
        benchmark::DoNotOptimize(std::accumulate(begin, begin + part, std::uint64_t{0}));
      });
    for (auto& t : team) t.join();
    const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    const double rate = 8.0 * static_cast<double>(part) * threads / t.count();
    best = rate > best ? rate : best;
  }
  return best;
}

}  // namespace cudp::bench

#pragma once
// The backends that random streams, sampling and the update run on, for parametrised tests.
#include <cstdint>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu.hpp"
#include "kernels/cpu_ops.hpp"

namespace cudp {

struct RandomBackend {
  std::string name;
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, std::uint32_t*)> fill_words;
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, float*)> fill_normals;
  std::function<std::int64_t(const SampleArgs&)> sample;
  std::function<void(const UpdateArgs&)> update;
  bool emulated = false;  ///< thousands of times slower: fewer and smaller cases
};
inline void PrintTo(const RandomBackend& b, std::ostream* os) { *os << b.name; }

/// Every SIMD level this build and processor have.
inline std::vector<RandomBackend> random_backends() {
  std::vector<RandomBackend> backends;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    try {
      const CpuKernels& k = cpu_kernels(level);
      backends.push_back({.name = std::string(simd_name(level)),
                          .fill_words = k.fill_words,
                          .fill_normals = k.fill_normals,
                          .sample = k.sample,
                          .update = k.update});
    } catch (const std::invalid_argument&) {  // this processor lacks it
    }
  }
  return backends;
}

}  // namespace cudp

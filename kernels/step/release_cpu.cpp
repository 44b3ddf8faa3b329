#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/step/release.hpp"

namespace cudp::CUDP_SIMD {

void release_sum(const ReleaseSum& a) {
  const double s = static_cast<double>(a.noise_std) / a.grid;
  for (std::int64_t j = a.begin; j < a.end; j += kRandomChunk) {
    const std::int64_t count = a.end - j < kRandomChunk ? a.end - j : kRandomChunk;
    std::int64_t units[kRandomChunk] = {};
    if (a.noise_std != 0.0f) rounded_normals_chunk(a.noise, s, j, units);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t sum = a.sum[a.where ? a.where[j + i] : j + i];
      units[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                           static_cast<std::uint64_t>(units[i]));
    }
    for (std::int64_t i = 0; i < count; ++i)
      a.released[j + i] = static_cast<float>(static_cast<double>(units[i]) * a.grid);
  }
}

}  // namespace cudp::CUDP_SIMD

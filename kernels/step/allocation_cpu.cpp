#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/step/allocation.hpp"

namespace cudp::CUDP_SIMD {

void allocate(const Allocate& a) {
  const std::uint32_t rejected = rejected_words(a.steps);
  for (std::int64_t i = a.begin; i < a.end; i += kRandomChunk) {
    std::uint32_t words[kRandomChunk];
    words_chunk(a.stream, i, words);
    const std::int64_t count = i + kRandomChunk < a.end ? kRandomChunk : a.end - i;
    for (std::int64_t j = 0; j < count; ++j)
      a.step[i - a.begin + j] = allocated_step(a.stream, i + j, words[j], a.steps, rejected);
  }
}

}  // namespace cudp::CUDP_SIMD

#include "runtime/base/random_numbers.hpp"

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"

namespace cudp {

std::vector<std::uint32_t> random_words(const RandomStream& stream, std::size_t count) {
  std::vector<std::uint32_t> words(count);
  cpu_kernels(best_simd_level())
      .fill_words(stream, 0, static_cast<std::int64_t>(count), words.data());
  return words;
}

std::vector<float> normal_numbers(const RandomStream& stream, std::size_t count) {
  std::vector<float> z(count);
  cpu_kernels(best_simd_level())
      .fill_normals(stream, 0, static_cast<std::int64_t>(count), z.data());
  return z;
}

double normal_number(const RandomStream& stream) { return normal_numbers(stream, 1).front(); }

}  // namespace cudp

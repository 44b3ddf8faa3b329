#include "runtime/base/random_numbers.hpp"

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/random/rounded_normal.hpp"

namespace cudp {

std::vector<std::uint32_t> random_words(const RandomStream& stream, std::size_t count) {
  return random_words(stream, 0, count);
}

std::vector<std::uint32_t> random_words(const RandomStream& stream, std::int64_t begin,
                                        std::size_t count) {
  std::vector<std::uint32_t> words(count);
  cpu_kernels(best_simd_level())
      .fill_words(stream, begin, begin + static_cast<std::int64_t>(count), words.data());
  return words;
}

std::vector<std::int64_t> rounded_normals(const RandomStream& stream, double s, std::int64_t begin,
                                          std::size_t count) {
  std::vector<std::int64_t> k(count);
  cpu_kernels(best_simd_level())
      .rounded_normals({.stream = stream,
                        .s = s,
                        .begin = begin,
                        .end = begin + static_cast<std::int64_t>(count),
                        .out = k.data()});
  return k;
}

std::vector<float> normal_numbers(const RandomStream& stream, std::size_t count) {
  std::vector<float> z(count);
  cpu_kernels(best_simd_level())
      .fill_normals(stream, 0, static_cast<std::int64_t>(count), z.data());
  return z;
}

}  // namespace cudp

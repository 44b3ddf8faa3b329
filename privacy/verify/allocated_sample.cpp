#include "privacy/verify/allocated_sample.hpp"

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

std::vector<std::uint32_t> allocated_sample(std::string_view generator,
                                            const std::array<std::uint32_t, 8>& key,
                                            std::uint64_t epoch_steps, std::uint64_t step,
                                            std::uint64_t examples) {
  constexpr std::uint32_t kAllocation = 13;
  constexpr std::uint64_t kWords = std::uint64_t{1} << 32;
  const RandomWords words(generator, key, kAllocation, step / epoch_steps);
  const std::vector<std::uint32_t> first = words.first(examples);
  std::vector<std::uint32_t> found;
  for (std::uint64_t i = 0; i < examples; ++i) {
    std::uint64_t product = first[static_cast<std::size_t>(i)] * epoch_steps;
    for (std::uint32_t round = 1; product % kWords < kWords % epoch_steps; ++round) {
      const auto block = static_cast<std::uint32_t>(i / 256 * 16 + i % 16);
      product = words.block(block, round)[i % 256 / 16] * epoch_steps;
    }
    if (product / kWords == step % epoch_steps) found.push_back(static_cast<std::uint32_t>(i));
  }
  return found;
}

}  // namespace cudp::verify

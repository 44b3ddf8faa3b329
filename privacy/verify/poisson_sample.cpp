#include "privacy/verify/poisson_sample.hpp"

#include <array>
#include <cstddef>

namespace cudp::verify {

std::vector<std::uint32_t> poisson_sample(const RandomWords& words, std::uint64_t threshold,
                                          std::uint64_t examples) {
  constexpr std::uint32_t kLowerBits = 134'217'728;  // 2^31 words in blocks of 16
  std::vector<bool> drawn(static_cast<std::size_t>(examples));
  for (std::uint64_t tile = 0; 512 * tile < examples; ++tile)
    for (std::uint64_t lane = 0; lane < 16; ++lane) {
      const auto number = static_cast<std::uint32_t>(16 * tile + lane);
      const std::array<std::uint32_t, 16> upper = words.block(number);
      std::array<std::uint32_t, 16> lower{};  // made on first use
      bool is_made = false;
      for (std::uint64_t row = 0; row < 16; ++row)
        for (std::uint64_t half = 0; half < 2; ++half) {
          const std::uint64_t example = 512 * tile + 256 * half + 16 * row + lane;
          if (example >= examples) continue;
          const std::uint64_t lowest = std::uint64_t{upper[row] >> 16 * half & 65535} << 16;
          if (lowest >= threshold) continue;
          if (lowest + 65535 >= threshold) {
            if (!is_made) lower = words.block(number + kLowerBits);
            is_made = true;
            if (lowest + (lower[row] >> 16 * half & 65535) >= threshold) continue;
          }
          drawn[static_cast<std::size_t>(example)] = true;
        }
    }
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    if (drawn[i]) found.push_back(static_cast<std::uint32_t>(i));
  return found;
}

}  // namespace cudp::verify

#include "kernels/step/finish.hpp"

#include <bit>

#include "kernels/random/random_block.hpp"

namespace cudp {

std::vector<DecidedPair> decided_pairs(const std::vector<std::uint32_t>& undecided,
                                       const StepCursor& at, RandomStream noise) {
  noise.step = at.step;
  const double s = static_cast<double>(at.scalars.noise_std) / at.scale.grid;
  std::vector<DecidedPair> made;
  for (std::size_t word = 0; word < undecided.size(); ++word)
    for (std::uint32_t bits = undecided[word]; bits != 0; bits &= bits - 1) {
      const auto pair = static_cast<std::uint32_t>(32 * word) +
                        static_cast<std::uint32_t>(std::countr_zero(bits));
      std::uint32_t block[16];
      random_block<ScalarLanes>(noise, pair / 64 * 16 + pair % 16, block);
      made.push_back(
          {at.step, pair,
           exact_rounded_pair(noise, pair, block + std::size_t{4} * (pair % 64 / 16), s)});
    }
  return made;
}

}  // namespace cudp

#include "runtime/data/holdout.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "runtime/base/random_numbers.hpp"
#include "runtime/data/examples.hpp"

namespace cudp {

HoldOut hold_out(const Dataset& used, const RandomKey& coins, double share) {
  // The key draws nothing else.
  const std::vector<std::uint32_t> words =
      random_words({Generator::chacha20, coins, Stream::sampling, 0}, used.size());
  const auto threshold = static_cast<std::uint64_t>(std::llround(share * 0x1p32));
  std::vector<std::size_t> train, held;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::size_t first = used.first_rows.empty() ? i : used.first_rows[i];
    if (words[first] < threshold) {
      held.push_back(i);
      continue;
    }
    train.push_back(i);
    numbers.push_back(static_cast<std::uint32_t>(i));
  }
  HoldOut parts{.train = select_examples(used, train), .held = select_examples(used, held)};
  parts.train.numbers = std::move(numbers);
  return parts;
}

RandomKey coins_of_seed(std::uint64_t seed) {
  constexpr std::uint64_t kOther = 0x636f696e2d6b6579;
  return key_from_seed(seed ^ kOther);
}

}  // namespace cudp

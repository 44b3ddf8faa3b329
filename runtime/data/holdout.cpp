#include "runtime/data/holdout.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "runtime/base/random_numbers.hpp"

namespace cudp {

HoldOutDraws::HoldOutDraws(const SharedKey& key, double share)
    : key_(key), threshold_(static_cast<std::uint64_t>(std::llround(share * 0x1p32))) {}

bool HoldOutDraws::holds_out(std::uint64_t first_row) {
  constexpr std::size_t kAtOnce = 4096;
  while (held_.size() <= first_row) {
    // No other code uses this key, so any of its random streams will do.
    const std::vector<std::uint32_t> words =
        random_words({Generator::chacha20, key_.key(), Stream::sampling, 0},
                     static_cast<std::int64_t>(held_.size()), kAtOnce);
    for (const std::uint32_t word : words) held_.push_back(word < threshold_);
  }
  return held_[first_row];
}

HoldOutSplitter::HoldOutSplitter(HoldOutDraws draws, KeptRange train, KeptRange held)
    : draws_(std::move(draws)), train_(std::move(train)), held_(std::move(held)) {}

void HoldOutSplitter::take(const Dataset& used) {
  for (std::size_t i = 0; i < used.size(); ++i, ++taken_) {
    const bool held = draws_.holds_out(used.first_rows.empty() ? taken_ : used.first_rows[i]);
    if (held)
      held_.take(used, i);
    else if (train_.take(used, i))
      train_.number(taken_);
  }
}

HeldOut HoldOutSplitter::finish(const std::string& file) {
  return {.train = train_.finish(file), .held = held_.finish(file)};
}

RandomKey split_key_of_seed(std::uint64_t seed) {
  constexpr std::uint64_t kOther = 0x636f696e2d6b6579;
  return key_from_seed(seed ^ kOther);
}

}  // namespace cudp

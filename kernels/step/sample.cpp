#include "kernels/step/sample.hpp"

#include <stdexcept>
#include <string>

namespace cudp {

void validate(const SampleArgs& a) {
  validate(a.stream, a.begin, a.end);
  if (a.begin % kSampleTile != 0)
    throw std::invalid_argument(
        "sampling: expected a first example that is a multiple of 512, found " +
        std::to_string(a.begin));
  constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
  if (a.threshold > kOne)
    throw std::invalid_argument("sampling: expected a threshold in 0..2^32, found " +
                                std::to_string(a.threshold));
  if (static_cast<std::uint64_t>(a.end) > kOne)
    throw std::invalid_argument("sampling: expected at most 2^32 examples, found " +
                                std::to_string(a.end));
  if (a.end > a.begin && !a.drawn)
    throw std::invalid_argument("sampling: expected an array `drawn`, found none");
}

}  // namespace cudp

#include "kernels/step/sample.hpp"

#include <stdexcept>
#include <string>

#include "kernels/step/allocation.hpp"

namespace cudp {

void validate(const SampleArgs& a) {
  validate(a.stream, a.begin, a.end);
  if (a.begin % kSampleTile != 0)
    throw std::invalid_argument(
        "sampling: expected a first example that is a multiple of 512, found " +
        std::to_string(a.begin));
  if (a.epoch_steps > kMaxEpochSteps || (a.epoch_steps > 0 && a.norms != nullptr))
    throw std::invalid_argument("sampling: expected norms or epochs of at most 2^24 steps");
  if (a.epoch_steps > 0 && (a.allocated.epochs < 1 || a.allocated.range == nullptr ||
                            (a.end > a.begin && a.allocated.step == nullptr)))
    throw std::invalid_argument("sampling: expected the steps of the examples, found none");
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

#include "kernels/step/allocation.hpp"

#include "kernels/common/launch.hpp"

namespace cudp {

void validate(const Allocate& a) {
  validate(a.stream, a.begin, a.end);
  expect(a.stream.stream == Stream::allocation, "allocation: expected a stream of its own");
  expect(a.steps >= 1 && a.steps <= kMaxEpochSteps,
         "allocation: expected 1 to 2^24 steps of an epoch");
  expect(a.end <= std::int64_t{1} << 32, "allocation: expected at most 2^32 examples");
  expect(a.end == a.begin || a.step != nullptr, "allocation: expected an array `step`");
}

}  // namespace cudp

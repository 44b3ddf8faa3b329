#pragma once
#include <cstdint>

#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"

namespace cudp {

/// Poisson sampling: example i is drawn when word i of the stream is below `threshold`, or with
/// norms below candidate_threshold(rule, norms[i]).
struct SampleArgs {
  RandomStream stream;           ///< Stream::sampling at this step
  std::uint64_t threshold;       ///< 0..2^32; the sampling rate is threshold / 2^32
  std::int64_t begin;            ///< first example, a multiple of 256
  std::int64_t end;              ///< one past the last example
  std::uint32_t* drawn;          ///< out, ascending; room for end - begin
  const float* norms = nullptr;  ///< [end], or null
  ImportanceRule rule = {};      ///< with norms
};

/// Throws std::invalid_argument naming the member that is out of range. end is at most 2^32.
void validate(const SampleArgs& args);

}  // namespace cudp

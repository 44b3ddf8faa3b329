#pragma once
#include <algorithm>
#include <cstddef>

namespace cudp {

/// A range of a data set's examples: those with indices begin to end - 1.
struct ExampleRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

/// Ranks (processes) get ranges of examples that begin at multiples of this number. The sampler of
/// batches handles this many examples at once, and it is a multiple of 256, the number of examples
/// that share one authentication code.
inline constexpr std::size_t kRangeTile = 512;

/// Returns the range of a data set's examples that belongs to a rank, one of `size` processes that
/// train together. examples: number of examples of the data set. Ranges differ in size by at most
/// kRangeTile. The last ranks may get none; rank 0 gets some if there are any.
inline ExampleRange range_of(int rank, int size, std::size_t examples) {
  const std::size_t tiles = (examples + kRangeTile - 1) / kRangeTile;
  const auto at = [&](int r) {
    const auto ranks = static_cast<std::size_t>(size);
    const std::size_t tile = (tiles * static_cast<std::size_t>(r) + ranks - 1) / ranks;
    return std::min(tile * kRangeTile, examples);
  };
  return {at(rank), at(rank + 1)};
}

/// The part of a data set that belongs to one rank, a process out of `size` that train together: a
/// contiguous range of the examples, which of() computes.
struct Share {
  int rank = 0;
  int size = 1;

  bool is_all() const { return size == 1; }
  ExampleRange of(std::size_t examples) const { return range_of(rank, size, examples); }
};

}  // namespace cudp

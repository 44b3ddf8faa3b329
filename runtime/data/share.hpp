#pragma once
#include <algorithm>
#include <cstddef>

namespace cudp {

/// Examples [begin, end) of a data set.
struct ExampleRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

/// Ranges begin at multiples of this: a tile of the sampler's words (kernels/step/sample.hpp), two
/// blocks of a seal's codes.
inline constexpr std::size_t kRangeTile = 512;

/// The examples of a rank, of `size` ranks, of so many: equally many tiles, but for one. The last
/// ranks may have none, rank 0 has some where there are any.
inline ExampleRange range_of(int rank, int size, std::size_t examples) {
  const std::size_t tiles = (examples + kRangeTile - 1) / kRangeTile;
  const auto at = [&](int r) {
    const auto ranks = static_cast<std::size_t>(size);
    const std::size_t tile = (tiles * static_cast<std::size_t>(r) + ranks - 1) / ranks;
    return std::min(tile * kRangeTile, examples);
  };
  return {at(rank), at(rank + 1)};
}

/// Whose range of a data set is read.
struct Share {
  int rank = 0;
  int size = 1;

  bool is_all() const { return size == 1; }
  ExampleRange of(std::size_t examples) const { return range_of(rank, size, examples); }
};

}  // namespace cudp

#pragma once
// Parts that all CUDA kernels of a network share. The kernels work on a micro-batch of examples at
// once; how many of them were really drawn is known only to the device.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/common/host_device.hpp"

namespace cudp {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// How a kernel is launched; each is chosen beside its kernel's arguments.
struct LaunchShape {
  Extent grid;
  Extent block;
  std::size_t shared_bytes = 0;
};

/// Shared memory that a block may have without asking.
inline constexpr std::size_t kAlwaysShared = std::size_t{48} * 1024;

/// The limits of a device, as far as the choice of a kernel depends on them.
struct DeviceLimits {
  int multiprocessors = 1;
  std::size_t shared_bytes = kAlwaysShared;  ///< a block may ask for at most
};

/// Examples first .. first + capacity - 1 of a batch. Those from *count on do not exist: blocks
/// that have only such examples leave at once, and nothing of theirs reaches a result.
struct Batch {
  const std::uint32_t* count;  ///< device
  std::int32_t first;
  std::int32_t capacity;
};

/// Examples of this micro-batch that exist.
CUDP_HD int live_examples(const Batch& b) {
  const std::int64_t n = static_cast<std::int64_t>(*b.count) - b.first;
  return static_cast<int>(n < 0 ? 0 : n < b.capacity ? n : b.capacity);
}

/// One example's activations or their gradients: channel by channel, row by row, each plane with a
/// border of zeros that nobody writes (a convolution's padding), rows with a border filled up to a
/// multiple of 16 bytes (patch_gradient.hpp copies them whole). A flat vector of n numbers is n
/// channels of one pixel. A micro-batch holds [capacity] of these, size() apart.
struct Planes {
  std::int32_t channels = 0;
  std::int32_t height = 1;
  std::int32_t width = 1;
  std::int32_t border = 0;

  CUDP_HD int row() const { return border == 0 ? width : (width + 2 * border + 3) / 4 * 4; }
  CUDP_HD int plane() const { return (height + 2 * border) * row(); }
  CUDP_HD int size() const { return channels * plane(); }
  CUDP_HD int pixels() const { return channels * height * width; }
  CUDP_HD int at(int c, int y, int x) const {
    return c * plane() + (y + border) * row() + x + border;
  }
  /// Offset of the n-th pixel, borders not counted.
  CUDP_HD int pixel_offset(int n) const {
    if (border == 0) return n;
    const int line = n / width;
    return at(line / height, line % height, n % width);
  }
};

inline void expect(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

inline void validate(const Batch& b) {
  expect(b.count != nullptr && b.first >= 0 && b.capacity > 0,
         "batch: expected a count and capacity > 0");
}

/// For loops that stride over `items` numbers, one a thread at first.
inline LaunchShape strided_shape(std::int64_t items, unsigned block = 256) {
  const std::int64_t blocks = (items + block - 1) / block;
  constexpr std::int64_t kMaxBlocks = 1 << 16;
  return {.grid = {static_cast<unsigned>(blocks < 1            ? 1
                                         : blocks < kMaxBlocks ? blocks
                                                               : kMaxBlocks)},
          .block = {block},
          .shared_bytes = 0};
}

inline unsigned divide_up(int n, int by) { return static_cast<unsigned>((n + by - 1) / by); }

/// A row of blocks, of whole warps, for each of so many rows of numbers; a thread has four of them
/// where there are as many as 1,024.
inline LaunchShape rows_shape(int rows, int columns) {
  constexpr int kThreads = 256;
  constexpr int kMaxGrid = 65'535;
  const unsigned threads = columns < kThreads ? 32 * divide_up(columns, 32) : kThreads;
  return {.grid = {divide_up(columns, 4 * kThreads),
                   static_cast<unsigned>(rows < kMaxGrid ? rows : kMaxGrid)},
          .block = {threads},
          .shared_bytes = 0};
}
/// For for_each_pixel().
inline LaunchShape pixel_shape(const Batch& batch, int pixels) {
  return rows_shape(batch.capacity, pixels);
}

}  // namespace cudp

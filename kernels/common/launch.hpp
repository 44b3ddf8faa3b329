#pragma once
// Types that all CUDA kernels of a network share. A kernel processes a micro-batch of examples at
// once. The number of examples in a micro-batch follows from a random draw on the device, so the
// host does not know it; launches are sized by the capacity of the micro-batch.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/common/host_device.hpp"

namespace cudp {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// Grid size, block size and shared memory of a kernel launch. For each struct of kernel arguments
/// a function launch_shape() chooses them.
struct LaunchShape {
  Extent grid;
  Extent block;
  std::size_t shared_bytes = 0;
};

/// Shared memory that a kernel may use on every GPU by default [bytes]. For more, the host has to
/// raise the kernel's limit first (cudaFuncSetAttribute).
inline constexpr std::size_t kAlwaysShared = std::size_t{48} * 1024;

/// Limits of a GPU on which the choice of a launch shape (grid, block and shared memory) depends.
struct DeviceLimits {
  int multiprocessors = 1;
  std::size_t shared_bytes = kAlwaysShared;  ///< largest amount that a block may request [bytes]
};

/// Micro-batch: the part of a batch that one kernel launch processes, examples first, first + 1,
/// ..., first + capacity - 1. The number of examples of the whole batch, *count, is in device
/// memory; the host does not know it. Kernels skip examples from index *count on.
struct Batch {
  const std::uint32_t* count;  ///< number of examples drawn, in device memory
  std::int32_t first;
  std::int32_t capacity;
};

/// Returns the number of examples that the micro-batch really has: min(capacity, *count - first),
/// but at least 0.
CUDP_HD int live_examples(const Batch& b) {
  const std::int64_t n = static_cast<std::int64_t>(*b.count) - b.first;
  return static_cast<int>(n < 0 ? 0 : n < b.capacity ? n : b.capacity);
}

/// Layout of one example's activations, or of their gradients: channel by channel, row by row. Each
/// channel (plane) is surrounded by a border of zeros, the padding of a convolution, that no kernel
/// writes. If there is a border, rows are padded to a multiple of 16 bytes, so that they can be
/// copied in parts of 16 bytes. A flat vector of n numbers is n channels of one pixel. The
/// activations of a micro-batch are an array [capacity] of examples, size() floats apart.
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
  /// Returns the offset in memory of the n-th pixel [floats]. Pixels are counted channel by
  /// channel, row by row; those of the zero border are not counted.
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

/// Returns the launch shape of a loop over `items` numbers with one number per thread. A launch has
/// at most 65,536 blocks; with more numbers, each thread processes several (grid-stride loop).
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

/// Returns the launch shape for an array [rows, columns]. blockIdx.y is the row; the grid has at
/// most 65,535 rows, and with more rows a kernel loops (row += gridDim.y). blockIdx.x is a range of
/// columns. A block is whole warps, at most 256 threads, and covers up to 1,024 columns, four per
/// thread.
inline LaunchShape rows_shape(int rows, int columns) {
  constexpr int kThreads = 256;
  constexpr int kMaxGrid = 65'535;
  const unsigned threads = columns < kThreads ? 32 * divide_up(columns, 32) : kThreads;
  return {.grid = {divide_up(columns, 4 * kThreads),
                   static_cast<unsigned>(rows < kMaxGrid ? rows : kMaxGrid)},
          .block = {threads},
          .shared_bytes = 0};
}
/// Returns the launch shape of kernels that call for_each_pixel(). pixels: number of pixels of one
/// example, over all channels.
inline LaunchShape pixel_shape(const Batch& batch, int pixels) {
  return rows_shape(batch.capacity, pixels);
}

}  // namespace cudp

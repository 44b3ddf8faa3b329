#pragma once
// Poisson sampling on a device, over any Gpu (see layer_wise.hpp).
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/sample.cuh"
#include "runtime/device/cuda/buffer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The scratch of a SampleSpace, for so many examples.
class SampleScratch {
 public:
  SampleScratch() = default;
  SampleScratch(Gpu& gpu, std::size_t examples)
      : flags_(gpu, tiles(examples) * 16), counts_(gpu, tiles(examples) + 1), count_(gpu, 1) {}

  SampleSpace space() const {
    return {.flags = flags_.get(), .counts = counts_.get(), .count = count_.get()};
  }
  /// How many were drawn; waits.
  std::uint32_t count() const { return count_.download().front(); }

 private:
  static std::size_t tiles(std::size_t examples) { return (examples + 255) / 256; }

  Buffer<std::uint16_t> flags_;
  Buffer<std::uint32_t> counts_;
  Buffer<std::uint32_t> count_;
};

/// args.drawn and *space.count, in order on the device's stream.
inline void draw_poisson(Gpu& gpu, const SampleArgs& args, SampleSpace space) {
  validate(args);
  const std::int64_t tiles = (args.end - args.begin + 255) / 256;
  space.scanned = tiles > kScannedTiles;
  // Half a warp two tiles, and one.
  gpu.launch("flags", sample_flags_kernel, strided_shape((tiles + 1) / 2 * 16), args, space);
  if (space.scanned) {
    constexpr unsigned kScanThreads = 1024;
    gpu.launch("scan", sample_scan_kernel,
               LaunchShape{.grid = {1},
                           .block = {kScanThreads},
                           .shared_bytes = kScanThreads / 32 * sizeof(std::uint32_t)},
               args, space);
  }
  gpu.launch("place", sample_place_kernel, strided_shape(tiles * 16), args, space);
}

}  // namespace cudp::cuda::inline CUDP_SIMT

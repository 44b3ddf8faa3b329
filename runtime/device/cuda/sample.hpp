#pragma once
// Poisson sampling on a device, over any Gpu (see layer_wise.hpp).
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/step/sample.cuh"

namespace cudp::cuda {

/// Number of tiles of a SampleSpace for that many examples.
inline std::size_t sample_space_tiles(std::size_t examples) { return (examples + 255) / 256; }

/// args.drawn and *space.count, in order on the device's stream.
template <class Gpu>
void draw_poisson(Gpu& gpu, const SampleArgs& args, const SampleSpace& space) {
  validate(args);
  // Half a warp two tiles, and one tile; one block for the scan of the tiles' counts.
  const auto tiles = static_cast<std::int64_t>(
      sample_space_tiles(static_cast<std::size_t>(args.end - args.begin)));
  constexpr unsigned kScanThreads = 1024;
  gpu.launch("sample flags", sample_flags_kernel, strided_shape((tiles + 1) / 2 * 16), args, space);
  gpu.launch("sample scan", sample_scan_kernel,
             LaunchShape{.grid = {1},
                         .block = {kScanThreads},
                         .shared_bytes = kScanThreads / 32 * sizeof(std::uint32_t)},
             args, space);
  gpu.launch("sample scatter", sample_scatter_kernel, strided_shape(tiles * 16), args, space);
}

}  // namespace cudp::cuda

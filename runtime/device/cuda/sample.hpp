#pragma once
// Poisson sampling on a device.
#include <cstddef>
#include <cstdint>

#include "kernels/step/sample.hpp"
#include "runtime/device/cuda/buffer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Scratch memory of a SampleSpace.
class SampleScratch {
 public:
  SampleScratch() = default;
  SampleScratch(Gpu& gpu, std::size_t examples)
      : flags_(gpu, tiles(examples) * 16), counts_(gpu, tiles(examples) + 1), count_(gpu, 1) {}

  SampleSpace space() const {
    return {.flags = flags_.get(), .counts = counts_.get(), .count = count_.get()};
  }
  /// Returns the number of examples drawn. Waits for the device.
  std::uint32_t count() const { return count_.download().front(); }

 private:
  static std::size_t tiles(std::size_t examples) { return (examples + 255) / 256; }

  Buffer<std::uint16_t> flags_;
  Buffer<std::uint32_t> counts_;
  Buffer<std::uint32_t> count_;
};

/// Launches the draw of a Poisson sample: writes the examples to args.drawn and their number to
/// *space.count, in order on the device's stream.
void draw_poisson(Gpu& gpu, const SampleArgs& args, SampleSpace space);

}  // namespace cudp::cuda::inline CUDP_SIMT

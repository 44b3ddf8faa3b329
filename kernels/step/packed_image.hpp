#pragma once
// Parameters once more, as a kernel wants them in shared memory: fp16 numbers, in two parts or one,
// and float32, each at a place of its own. What updates a parameter writes the image too.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Where a parameter goes in the image.
struct PackedPlace {
  std::uint32_t word;  ///< byte, and the two flags below

  static constexpr std::uint32_t kIsFloat = 1u << 31, kHasLow = 1u << 30;
  CUDP_HD constexpr std::uint32_t byte() const { return word & ~(kIsFloat | kHasLow); }
  CUDP_HD constexpr bool is_float() const { return (word & kIsFloat) != 0; }
  CUDP_HD constexpr bool has_low() const { return (word & kHasLow) != 0; }
};

/// An image in device memory, and where each parameter goes.
struct PackedImage {
  const PackedPlace* places = nullptr;  ///< [parameters]; null: there is no image
  unsigned char* bytes = nullptr;
  std::uint32_t low = 0;  ///< bytes from a number's high part to its low part
};

/// Writes all parameters to the image.
struct PackParameters {
  PackedImage image;
  const float* parameters;  ///< [n]
  std::int64_t n;
};
inline void validate(const PackParameters& a) {
  expect(a.image.places && a.image.bytes && a.parameters && a.n > 0,
         "pack: expected an image, parameters and n > 0");
}
inline LaunchShape launch_shape(const PackParameters& a) { return strided_shape(a.n); }

}  // namespace cudp

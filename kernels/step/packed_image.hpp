#pragma once
// Packed copy (image) of the parameters, laid out as a fused kernel reads them from shared memory:
// each parameter is an fp16 number, a sum of two fp16 numbers, or a float32. Every kernel that
// updates a parameter also writes the image.
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/launch.hpp"

namespace cudp {

/// Byte offset and number format of one parameter in the packed copy of the parameters that a fused
/// kernel reads.
struct PackedPlace {
  std::uint32_t word;  ///< byte offset in the low 30 bits, and the two flags below

  static constexpr std::uint32_t kIsFloat = 1u << 31, kHasLow = 1u << 30;
  CUDP_HD constexpr std::uint32_t byte() const { return word & ~(kIsFloat | kHasLow); }
  CUDP_HD constexpr bool is_float() const { return (word & kIsFloat) != 0; }
  CUDP_HD constexpr bool has_low() const { return (word & kHasLow) != 0; }
};

/// Packed copy of the parameters in device memory, in the order and number formats in which a fused
/// kernel reads them; and the offset of each parameter in it.
struct PackedImage {
  const PackedPlace* places = nullptr;  ///< [parameters]; null: there is no packed copy
  unsigned char* bytes = nullptr;
  std::uint32_t low = 0;  ///< distance from the high to the low fp16 part of a parameter [bytes]
};

/// Writes all n parameters to the packed copy that a fused kernel reads.
struct PackParameters {
  PackedImage image;
  const float* parameters;  ///< [n], values of all parameters
  std::int64_t n;
};
inline void validate(const PackParameters& a) {
  expect(a.image.places && a.image.bytes && a.parameters && a.n > 0,
         "pack: expected an image, parameters and n > 0");
}
inline LaunchShape launch_shape(const PackParameters& a) { return strided_shape(a.n); }

}  // namespace cudp

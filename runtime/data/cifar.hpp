#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

inline constexpr int kCifarClasses = 10;
inline constexpr int kCifarSide = 32;
inline constexpr std::size_t kCifarPixels = std::size_t{3} * kCifarSide * kCifarSide;

/// Records of the binary version of CIFAR-10: one label byte, then the red, green and blue plane.
struct CifarRecords {
  std::vector<std::uint8_t> pixels;  ///< [count, 3, 32, 32]
  std::vector<std::uint8_t> labels;  ///< [count], each < 10
};

/// Reads to the end of the stream. Throws InputError on no records, a label that is not 0 to 9, or
/// a last record cut short.
CifarRecords read_cifar(ByteReader& reader);

}  // namespace cudp

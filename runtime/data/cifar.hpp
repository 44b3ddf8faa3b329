#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

inline constexpr int kCifarClasses = 10;
inline constexpr int kCifarSide = 32;
inline constexpr std::size_t kCifarPixels = std::size_t{3} * kCifarSide * kCifarSide;

/// Records of the binary version of CIFAR-10: one label byte, then the red, green and blue plane.
struct CifarRecords {
  std::vector<std::uint8_t> pixels;  ///< [count, 3, 32, 32]
  std::vector<std::uint8_t> labels;  ///< [count], each < 10
};

/// Every record of a file.
inline constexpr ExampleRange kAllRecords{0, std::numeric_limits<std::size_t>::max()};

/// Whole records of the stream, without looking into them.
std::uint64_t count_cifar(ByteReader& reader);

/// Reads to the end of the stream, and keeps the records of a range. Throws InputError on a
/// label among those kept that is not 0 to 9, or a last record cut short. There may be no records.
CifarRecords read_cifar(ByteReader& reader, ExampleRange range = kAllRecords);

}  // namespace cudp

#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

inline constexpr int kCifarClasses = 10;
/// Height and width of an image [pixels].
inline constexpr int kCifarSide = 32;
/// Number of bytes of an image: red, green and blue of each pixel.
inline constexpr std::size_t kCifarPixels = std::size_t{3} * kCifarSide * kCifarSide;

/// Images and labels of CIFAR-10 in its binary format. In a file, each record has one byte with the
/// label, followed by all red, all green and all blue values of the image.
struct CifarRecords {
  std::vector<std::uint8_t> pixels;  ///< [count, 3, 32, 32]
  std::vector<std::uint8_t> labels;  ///< [count], each < 10
};

/// Range of records for read_cifar() that contains all records of a file.
inline constexpr ExampleRange kAllRecords{0, std::numeric_limits<std::size_t>::max()};

/// Returns the number of complete records in the stream, without reading their content. reader: the
/// file.
std::uint64_t count_cifar(ByteReader& reader);

/// Reads the records in `range`, which may be empty, and checks the stream to its end. Throws
/// InputError if a label in the range is above 9, or if the last record is cut short. reader: the
/// file.
CifarRecords read_cifar(ByteReader& reader, ExampleRange range = kAllRecords);

}  // namespace cudp

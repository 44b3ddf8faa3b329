#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Grey images of an IDX file (magic 2051).
struct IdxImages {
  int rows = 0;
  int columns = 0;
  std::vector<std::uint8_t> pixels;  ///< [count, rows, columns]

  std::uint64_t count() const {
    return pixels.size() / (static_cast<std::uint64_t>(rows) * columns);
  }
};

/// Reads to the end of the stream. Throws InputError on a wrong magic number, no images, sides
/// outside 1..4096, too few or too many bytes.
IdxImages read_idx_images(ByteReader& reader);

/// The labels of an IDX file (magic 2049), each to be checked against the number of classes.
/// Throws InputError on a wrong magic number, no labels, too few or too many bytes.
std::vector<std::uint8_t> read_idx_labels(ByteReader& reader);

}  // namespace cudp

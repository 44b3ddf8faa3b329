#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Grey images of an IDX file (magic number 2051), or a range of them.
struct IdxImages {
  int rows = 0;
  int columns = 0;
  std::uint64_t whole = 0;           ///< number of images in the file
  std::vector<std::uint8_t> pixels;  ///< [count, rows, columns]

  std::uint64_t count() const {
    return pixels.size() / (static_cast<std::uint64_t>(rows) * columns);
  }
};

/// Labels of an IDX file (magic number 2049), or a range of them. The caller must check each
/// against the number of classes.
struct IdxLabels {
  std::uint64_t whole = 0;
  std::vector<std::uint8_t> labels;
};

/// Reads the stream to its end and keeps a share. The file may hold no images. Throws InputError on
/// a wrong magic number, sides outside 1..4096, or too few or too many bytes.
IdxImages read_idx_images(ByteReader& reader, Share share = {});
/// Reads the labels of a share to the end of the stream. Throws InputError on a wrong magic number,
/// or too few or too many bytes.
IdxLabels read_idx_labels(ByteReader& reader, Share share = {});

}  // namespace cudp

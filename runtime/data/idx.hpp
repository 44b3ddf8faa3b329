#pragma once
#include <cstdint>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Grey images of an IDX file (magic 2051), or a range of them.
struct IdxImages {
  int rows = 0;
  int columns = 0;
  std::uint64_t whole = 0;           ///< images of the file
  std::vector<std::uint8_t> pixels;  ///< [count, rows, columns]

  std::uint64_t count() const {
    return pixels.size() / (static_cast<std::uint64_t>(rows) * columns);
  }
};

/// The labels of an IDX file (magic 2049), or a range of them, each to be checked against the
/// number of classes.
struct IdxLabels {
  std::uint64_t whole = 0;
  std::vector<std::uint8_t> labels;
};

/// Reads to the end of the stream, and keeps a share. There may be no images. Throws InputError on
/// a wrong magic number, sides outside 1..4096, too few or too many bytes.
IdxImages read_idx_images(ByteReader& reader, Share share = {});
/// Throws InputError on a wrong magic number, too few or too many bytes.
IdxLabels read_idx_labels(ByteReader& reader, Share share = {});

}  // namespace cudp

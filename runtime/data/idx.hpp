#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Grey images of an IDX file (MNIST's format, magic number 2051), or the range of the images that
/// belongs to one rank (process).
struct IdxImages {
  int rows = 0;
  int columns = 0;
  std::uint64_t whole = 0;           ///< number of images in the file
  std::vector<std::uint8_t> pixels;  ///< [count, rows, columns]; empty if `file` has them
  /// File with the pixels, one record of rows x columns bytes per image; null if `pixels` has them.
  std::shared_ptr<const RowFile> file;

  std::uint64_t count() const {
    return pixels.size() / (static_cast<std::uint64_t>(rows) * columns);
  }
};

/// Labels of an IDX file (MNIST's format, magic number 2049), or the range of the labels that
/// belongs to one rank (process). The caller must check that each label is below the number of
/// classes.
struct IdxLabels {
  std::uint64_t whole = 0;
  std::vector<std::uint8_t> labels{};
};

/// Reads the images of an IDX file that belong to one rank (process), and checks that the file has
/// the size that its header states. Throws InputError on a wrong magic number, images with a side
/// outside 1..4096 pixels, or too few or too many bytes. A file without images is valid. share: the
/// rank, and the number of ranks; they determine a contiguous range of the images. storage: whether
/// the pixels are kept in memory or in a file.
IdxImages read_idx_images(ByteReader& reader, Share share = {}, const RowStorage& storage = {});
/// Reads the labels of an IDX file that belong to one rank (process), and checks that the file has
/// the size that its header states. Throws InputError on a wrong magic number, or too few or too
/// many bytes. share: the rank, and the number of ranks; they determine a contiguous range of the
/// labels.
IdxLabels read_idx_labels(ByteReader& reader, Share share = {});

}  // namespace cudp

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudp {

/// An array of numbers in the memory of the calling program, e.g. a NumPy array. It is only read,
/// and must not change while it is in use.
struct GivenArray {
  std::string name;  ///< name in messages, e.g. "X"
  std::string type;  ///< NumPy's name of the element type, in native byte order: "<f4"
  std::vector<std::uint64_t> shape;   ///< at least one dimension
  std::vector<std::int64_t> strides;  ///< distance between neighbours along each dimension [bytes]
  const std::byte* data = nullptr;    ///< address of the first element
  std::shared_ptr<const void> owner;  ///< keeps the memory alive

  std::size_t item_size() const { return static_cast<std::size_t>(type[2] - '0'); }
  /// Returns whether the elements are adjacent in memory, in row-major order.
  bool is_contiguous() const;
};

/// Returns whether the arrays a and b lie in ranges of memory that overlap.
bool overlap(const GivenArray& a, const GivenArray& b);

/// Features x [N, ...] of N examples, and their labels y [N].
struct LabelledArrays {
  GivenArray x;
  std::optional<GivenArray> y;
};

/// Examples that the calling program passes as arrays instead of files. DataRequest::dataset and
/// test_path are then only names for messages and reports; no such files need to exist.
struct GivenArrays {
  LabelledArrays train;
  std::optional<LabelledArrays> test;
};

/// Arrays in memory that a training reads instead of files. A part of the training's config,
/// TrainConfig::of<ArraysInUse>(). The member `arrays` is null if the data come from files.
struct ArraysInUse {
  std::shared_ptr<const GivenArrays> arrays;
};

}  // namespace cudp

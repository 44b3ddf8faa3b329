#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudp {

/// An array of numbers in memory that belongs to a program that uses cudp, such as a NumPy array.
/// It is only read. It must not change while it is in use.
struct GivenArray {
  std::string name;                   ///< for messages: "X"
  std::string type;                   ///< NumPy's name of the type, native: "<f4"
  std::vector<std::uint64_t> shape;   ///< at least one dimension
  std::vector<std::int64_t> strides;  ///< of each dimension [bytes]
  const std::byte* data = nullptr;    ///< the first element
  std::shared_ptr<const void> owner;  ///< keeps the memory

  std::size_t item_size() const { return static_cast<std::size_t>(type[2] - '0'); }
  /// Returns whether the elements lie one after another, row by row.
  bool is_contiguous() const;
};

/// Returns whether two arrays lie in ranges of memory that overlap.
bool overlap(const GivenArray& a, const GivenArray& b);

/// Features of examples, and their labels.
struct LabelledArrays {
  GivenArray x;
  std::optional<GivenArray> y;
};

/// Examples that a program gives as arrays, in place of files. DataRequest::dataset and test_path
/// are then their names: those of .npz files that need not exist.
struct GivenArrays {
  LabelledArrays train;
  std::optional<LabelledArrays> test;
};

/// The arrays of a training, in TrainConfig::of. A config that is read back has none.
struct ArraysInUse {
  std::shared_ptr<const GivenArrays> arrays;
};

}  // namespace cudp

#pragma once
// Which examples an array [N, ...] holds: their shape, and the order of their numbers.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/layer.hpp"

namespace cudp {

/// What is known of the examples before an array is opened.
struct ArrayForm {
  std::optional<Shape> shape{};  ///< --input-shape
  /// Shape of the examples of a matrix [N, D] whose rows have as many numbers; others keep theirs.
  /// Used if `shape` is not given.
  std::optional<Shape> shape_of_rows{};
  bool channels_last = false;  ///< --channels-last
};

/// How an array holds examples.
struct ArrayLayout {
  Shape shape;            ///< shape of an example
  bool is_bytes = false;  ///< numbers are uint8; otherwise they are floats
  /// If true, the numbers of an example are in the order row, column, channel, and channels_first()
  /// must be called on each.
  bool channels_last = false;
  std::vector<std::uint64_t> sides;  ///< the array's own shape without the number of examples

  /// Returns NumPy's index of number `at` of example `row`, "[3, 0, 27]"; only the last index for a
  /// matrix.
  std::string place_of(std::size_t at) const;
};

/// Returns the layout of an array. name: for messages. type: NumPy's, e.g. "<f4". sides: the
/// array's shape, number of examples first. Throws InputError if it has no examples that a network
/// can take. No message states the number of examples, which may be private.
ArrayLayout array_layout(const std::string& name, const std::string& type,
                         std::span<const std::uint64_t> sides, const ArrayForm& form);

/// Changes the order of one example's numbers from row, column, channel to channel, row, column.
/// scratch: memory that is reused.
template <class T>
void channels_first(std::span<T> example, const Shape& shape, std::vector<T>& scratch) {
  scratch.assign(example.begin(), example.end());
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t pixels = example.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t p = 0; p < pixels; ++p) example[c * pixels + p] = scratch[p * channels + c];
}

}  // namespace cudp

#pragma once
// Layout of an array [N, ...] of N examples: the shape of an example, and the order of its
// elements.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/layer.hpp"

namespace cudp {

/// What is known about the shape and the element order of examples before their array is opened:
/// the user's options, and the input shape of a trained model that scores them.
struct ArrayForm {
  std::optional<Shape> shape{};  ///< shape stated with --input-shape
  /// Shape of an example, used if `shape` is not set and the array is a matrix [N, D] with D equal
  /// to the size of this shape. In all other cases the array's own shape is used.
  std::optional<Shape> shape_of_rows{};
  bool channels_last = false;  ///< images are stored as [N, H, W, C] (--channels-last)
};

/// Shape and element order of the examples in an array [N, ...], as found when the array is opened.
struct ArrayLayout {
  Shape shape;            ///< shape of an example
  bool is_bytes = false;  ///< numbers are uint8; otherwise they are floats
  /// Whether the elements of an example are in the order row, column, channel. The caller must then
  /// reorder each example with channels_first(), because networks expect channel, row, column.
  bool channels_last = false;
  std::vector<std::uint64_t> sides;  ///< the array's shape without its first dimension, N

  /// Returns the position of one element within an example, for a message: the NumPy index in the
  /// example, e.g. "[3, 0, 27]", or only the column number if the array is a matrix with one
  /// example per row. at: offset of the element from the start of the example [elements].
  std::string place_of(std::size_t at) const;
};

/// Returns the layout of an array of examples. name: for messages. type: NumPy's name of the
/// element type, e.g. "<f4". sides: the array's shape, number of examples first. Throws InputError
/// if no network can take such examples. The error's message never states the number of examples,
/// which may be private. form: what the user states about the examples' shape and element order.
ArrayLayout array_layout(const std::string& name, const std::string& type,
                         std::span<const std::uint64_t> sides, const ArrayForm& form);

/// Changes the order of one image's elements, in place, from row, column, channel to channel, row,
/// column. example: the image's elements. shape: the shape of the image. scratch: temporary memory,
/// which the caller passes again so that it is not allocated for each image.
template <class T>
void channels_first(std::span<T> example, const Shape& shape, std::vector<T>& scratch) {
  scratch.assign(example.begin(), example.end());
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t pixels = example.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t p = 0; p < pixels; ++p) example[c * pixels + p] = scratch[p * channels + c];
}

}  // namespace cudp

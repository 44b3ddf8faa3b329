#pragma once
#include <optional>
#include <string>

#include "models/layer.hpp"
#include "runtime/data/target.hpp"

namespace cudp {

/// How arrays (.npy, .npz) are read, as a user states it. All of it is public: no row decides any
/// of it.
struct ArrayOptions {
  std::string input_shape{};   ///< shape of an example: "CxHxW" or "HxW"; empty: the array's own
  bool channels_last = false;  ///< images are stored as [N, H, W, C]
  /// Names of the arrays in a .npz file, features first: "NAME,NAME", or "NAME" if labels are not
  /// read. Empty: x and y, or X and Y.
  std::string arrays{};
  std::string test_arrays{};  ///< the same for the file of test rows; empty: as `arrays`
  /// Bounds of the number to predict: "LOW,HIGH"; empty: labels are classes.
  std::string target_bounds{};

  bool operator==(const ArrayOptions&) const = default;
};

/// Names of two arrays of a .npz file. Empty names stand for x or X, and y or Y.
struct ArrayNames {
  std::string features{};
  std::string labels{};
};

// Parsers of the options' texts. An empty text has no value. place: for messages. They throw
// InputError.
std::optional<Shape> parse_input_shape(const std::string& text, const std::string& place);
ArrayNames parse_array_names(const std::string& text, const std::string& place);
std::optional<TargetBounds> parse_target_bounds(const std::string& text, const std::string& place);

}  // namespace cudp

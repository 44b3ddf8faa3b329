#pragma once
#include <optional>
#include <string>

#include "models/layer.hpp"
#include "runtime/data/target.hpp"

namespace cudp {

/// User options for reading arrays (.npy, .npz). All of them are public: none depends on a row of
/// the data.
struct ArrayOptions {
  std::string input_shape{};   ///< shape of an example: "CxHxW" or "HxW"; empty: the array's own
  bool channels_last = false;  ///< images are stored as [N, H, W, C]
  /// Names of the arrays in a .npz file, features first: "NAME,NAME", or "NAME" if labels are not
  /// read. Empty: x and y, or X and Y.
  std::string arrays{};
  /// Names of the arrays in the .npz file with the test rows; if empty, the names in `arrays` are
  /// used.
  std::string test_arrays{};
  /// Public bounds of the number to predict: "LOW,HIGH". If empty, the model predicts classes.
  std::string target_bounds{};

  bool operator==(const ArrayOptions&) const = default;
};

/// Names of the array of features and the array of labels in a .npz file. If a name is empty, the
/// array is found by its usual name: x or X for features, y or Y for labels.
struct ArrayNames {
  std::string features{};
  std::string labels{};
};

// Parse the texts of the options above. An empty text gives nullopt or empty names. place: where
// the text was written, for messages. Throw InputError.
std::optional<Shape> parse_input_shape(const std::string& text, const std::string& place);
ArrayNames parse_array_names(const std::string& text, const std::string& place);
std::optional<TargetBounds> parse_target_bounds(const std::string& text, const std::string& place);

}  // namespace cudp

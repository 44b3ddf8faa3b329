#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// Description of how a released model's inputs are computed from the cells of a table, or from the
/// bytes of an image. If the user let private rows complete the schema, the description contains
/// exact values from these rows; the run's certificate then states this, and that the run must not
/// be published.
struct ModelInputs {
  std::optional<TableSchema> schema;  ///< complete schema of the table; empty if there was no table
  /// Conversion of an image's bytes to features.
  struct Pixels {
    float scale = 1.0f / 255.0f;  ///< used as feature = scale * byte + shift
    float shift = 0.0f;
  };
  /// Scale and shift with which bytes of images become features; nullopt for other data.
  std::optional<Pixels> pixels;
  /// Bounds of a regression target, for models of arrays, which have no schema; otherwise empty.
  std::optional<TargetBounds> array_target;

  /// Returns the names of the classes that the model predicts; empty if the classes have only
  /// indices.
  std::vector<std::string> classes() const;
  /// Returns the bounds of the regression target; nullopt if the model predicts a class.
  std::optional<TargetBounds> target() const;
};

/// Returns the description of the inputs of a model that is trained on this data.
ModelInputs inputs_of(const DataSplit& data);

/// Writes the description of a model's inputs to the metadata of the model's file: the schema as
/// TOML, the names of the features in order as a JSON list, and the scale of pixels.
void add_inputs(TensorFile& file, const ModelInputs& inputs);

/// Reads the description of a model's inputs from the metadata of the model's file. source: name of
/// the file, for messages. Members whose metadata are missing, as in a model of an earlier version,
/// stay empty. Throws InputError if the description is damaged.
ModelInputs read_inputs(const TensorFile& file, const std::string& source);

}  // namespace cudp

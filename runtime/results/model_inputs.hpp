#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// Meaning of a model's inputs: how they are computed from the cells of a table, or from the bytes
/// of an image. If the user let private rows complete the schema, the schema contains numbers of
/// these rows; the certificate of such a run states this and that the run is not for release.
struct ModelInputs {
  std::optional<TableSchema> schema;  ///< complete schema of the table; empty if there was no table
  struct Pixels {
    float scale = 1.0f / 255.0f;  ///< feature = scale * byte + shift
    float shift = 0.0f;
  };
  std::optional<Pixels> pixels;  ///< scale of the images' bytes; empty for other data
  /// Bounds of the target of arrays, which have no schema; empty for other data and for classes.
  std::optional<TargetBounds> array_target;

  /// Returns the names of the classes; empty if they have only numbers.
  std::vector<std::string> classes() const;
  /// Returns the bounds of the target; empty if the model predicts a class.
  std::optional<TargetBounds> target() const;
};

/// Returns the inputs of a model that is trained on this data.
ModelInputs inputs_of(const DataSplit& data);

/// Writes the inputs' meaning to a model's metadata: the schema as TOML, the names of the features
/// in order as a JSON list, and the scale of pixels.
void add_inputs(TensorFile& file, const ModelInputs& inputs);

/// Reads the inputs' meaning from a model's metadata. Returns empty fields for a model of an
/// earlier version. Throws InputError.
ModelInputs read_inputs(const TensorFile& file, const std::string& source);

}  // namespace cudp

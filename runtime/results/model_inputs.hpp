#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {

/// The meaning of a model's numbers: how they follow from the cells of a table, or the bytes of
/// an image. A schema that the user let be completed from private rows holds numbers of these: the
/// certificate of such a run says so, and that it is not for release.
struct ModelInputs {
  std::optional<TableSchema> schema;  ///< of a table; complete. Empty: it was trained on no table
  struct Pixels {
    float scale = 1.0f / 255.0f;  ///< feature = scale * byte + shift
    float shift = 0.0f;
  };
  std::optional<Pixels> pixels;  ///< of images

  /// The names of the classes; empty where they have numbers alone.
  std::vector<std::string> classes() const;
  /// The bounds of what is predicted; empty where that is a class.
  std::optional<TargetBounds> target() const;
};

/// The inputs of a model that is trained on this data, as it was loaded.
ModelInputs inputs_of(const DataSplit& data);

/// Says in a model's metadata what its inputs mean: the schema as TOML, the names of the features
/// that it gives, in order, as a list of JSON, and the scale of pixels.
void add_inputs(TensorFile& file, const ModelInputs& inputs);

/// Reads them back; empty of a model that an earlier version released. Throws InputError.
ModelInputs read_inputs(const TensorFile& file, const std::string& source);

}  // namespace cudp

#include "runtime/results/model_inputs.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/schema_text.hpp"

namespace cudp {
namespace {

// Keys of the model file's metadata.
constexpr const char* kSchema = "schema";
constexpr const char* kFeatureNames = "feature-names";
// Keys of a regression target's bounds, for which the network's outputs -1 and 1 stand. Used for
// models without a schema, and by other programs that do not parse the schema.
constexpr const char* kTargetMin = "target-min";
constexpr const char* kTargetMax = "target-max";
/// Keys in the metadata of a model's file: the factor (kPixelScale) and the summand with which
/// bytes of an image are converted to inputs of the network.
constexpr const char* kPixelScale = "pixel-scale";
constexpr const char* kPixelShift = "pixel-shift";

template <class T>
T read_finite(const TensorFile& file, const char* key, const std::string& source) {
  const auto at = file.metadata.find(key);
  const std::string text = at == file.metadata.end() ? "" : at->second;
  const std::optional<T> value = read_number<T>(text);
  if (!value || !std::isfinite(*value))
    throw InputError(source + ", " + key + ": expected a finite number, found " + shown(text));
  return *value;
}

}  // namespace

std::vector<std::string> ModelInputs::classes() const {
  if (!schema) return {};
  for (const Column& c : schema->columns)
    if (const auto* label = std::get_if<Label>(&c.kind)) return label->values;
  return {};
}

std::optional<TargetBounds> ModelInputs::target() const {
  return schema ? target_bounds(*schema) : array_target;
}

ModelInputs inputs_of(const DataSplit& data) {
  ModelInputs inputs;
  if (data.schema != nullptr) inputs.schema = *data.schema;
  if (data.train.is_bytes())
    inputs.pixels = ModelInputs::Pixels{data.train.scale, data.train.shift};
  return inputs;
}

void add_inputs(TensorFile& file, const ModelInputs& inputs) {
  if (inputs.schema) {
    file.metadata[kSchema] = schema_toml(*inputs.schema);
    if (const std::vector<std::string> names = feature_names(*inputs.schema); !names.empty())
      file.metadata[kFeatureNames] = nlohmann::json(names).dump();
  }
  if (const auto bounds = inputs.target()) {
    file.metadata[kTargetMin] = privacy::number(bounds->min);
    file.metadata[kTargetMax] = privacy::number(bounds->max);
  }
  if (inputs.pixels) {
    file.metadata[kPixelScale] = number_text(inputs.pixels->scale);
    file.metadata[kPixelShift] = number_text(inputs.pixels->shift);
  }
}

ModelInputs read_inputs(const TensorFile& file, const std::string& source) {
  ModelInputs inputs;
  if (const auto at = file.metadata.find(kSchema); at != file.metadata.end()) {
    inputs.schema = parse_schema(at->second, source + ", schema");
    if (const std::string open = first_incomplete(*inputs.schema); !open.empty())
      bad_input(source + ", schema", "column " + shown(open), "bounds or values", "none");
  }
  if (file.metadata.contains(kPixelScale))
    inputs.pixels = ModelInputs::Pixels{read_finite<float>(file, kPixelScale, source),
                                        read_finite<float>(file, kPixelShift, source)};
  if (!inputs.schema && file.metadata.contains(kTargetMin)) {
    const TargetBounds bounds{read_finite<double>(file, kTargetMin, source),
                              read_finite<double>(file, kTargetMax, source)};
    if (!(bounds.min < bounds.max))
      throw InputError(source + ", " + kTargetMax + ": expected more than " + kTargetMin +
                       ", found " + privacy::number(bounds.max));
    inputs.array_target = bounds;
  }
  return inputs;
}

}  // namespace cudp

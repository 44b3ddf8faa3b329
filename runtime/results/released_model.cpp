#include "runtime/results/released_model.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/make_network.hpp"
#include "runtime/settings/options.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

// Keys of the model file's metadata. The keys of features are names of options.
constexpr const char* kModel = "model";
constexpr const char* kActivation = "activation";
constexpr const char* kInput = "input";
constexpr const char* kClasses = "classes";
constexpr const char* kDataset = "dataset";
constexpr const char* kLoss = "loss";          // loss of a regression model
constexpr const char* kHuber = "huber-delta";  // threshold of the Huber loss [scaled target]
constexpr const char* kNormalise = "normalise";
constexpr const char* kInitial = "initial-weights";  // JSON, as in the certificate
constexpr const char* kFeatureKeys[] = {"features", "feature-groups", "feature-standardise"};

Shape parse_shape(const std::string& text, const std::string& source) {
  Shape s;
  char end = 0;
  if (std::sscanf(text.c_str(), "%dx%dx%d%c", &s.channels, &s.height, &s.width, &end) != 3)
    throw InputError(source + ", input: expected CxHxW, found '" + text + "'");
  return s;
}

/// Returns the network's parameters as named tensors, with the zero tensors that PyTorch's layers
/// have in addition.
TensorFile tensors_of(const Network& network, const std::vector<float>& parameters) {
  TensorFile file{.tensors = network.parameters, .values = parameters, .metadata = {}};
  for (ParameterTensor t : network.zeros) {
    t.offset = file.values.size();
    file.values.resize(t.offset + t.size, 0.0f);
    file.tensors.push_back(std::move(t));
  }
  return file;
}

/// Returns the values of the network's trained parameters, read from the tensors with their names
/// and shapes.
std::vector<float> parameters_of(const TensorFile& file, const Network& network,
                                 const std::string& source) {
  std::vector<float> parameters(network.parameter_count);
  for (const ParameterTensor& t : network.parameters) {
    const auto found = std::ranges::find_if(file.tensors, [&](const ParameterTensor& stored) {
      return stored.name == t.name && stored.shape == t.shape;
    });
    if (found == file.tensors.end())
      throw InputError(source + ": expected a tensor " + t.name +
                       ", found none of this name and shape");
    std::copy_n(file.values.begin() + static_cast<std::ptrdiff_t>(found->offset), t.size,
                parameters.begin() + static_cast<std::ptrdiff_t>(t.offset));
  }
  return parameters;
}

/// Returns the tensors and metadata of a model's file. For a model of texts, those of the
/// vocabulary and the embedding are not included.
TensorFile file_of(const ReleasedModel& model) {
  TensorFile file = tensors_of(model.network, model.parameters);
  file.metadata = {{"format", "pt"},  // tensors have PyTorch's memory layouts
                   {kModel, model.text},
                   {kActivation, model.activation},
                   {kInput, shape_text(model.network.input)},
                   {kClasses, std::to_string(model.network.classes)},
                   {kDataset, model.dataset}};
  if (has_target(model.network.spec.loss)) file.metadata[kLoss] = name_of(model.network.spec.loss);
  if (model.network.spec.loss == Loss::huber)
    file.metadata[kHuber] = privacy::number(static_cast<double>(model.network.spec.huber));
  if (model.features.normalise != Normalise::none)
    file.metadata[kNormalise] = name_of(model.features.normalise);
  if (model.features.kind != Features::none) {
    const std::string values[] = {std::string(name_of(model.features.kind)),
                                  std::to_string(model.features.groups),
                                  model.features.standardise ? "true" : "false"};
    for (std::size_t i = 0; i < std::size(values); ++i) file.metadata[kFeatureKeys[i]] = values[i];
  }
  add_release(file, model.features, model.feature_release);
  add_inputs(file, model.inputs);
  if (model.initial_weights) file.metadata[kInitial] = to_json(*model.initial_weights).dump();
  return file;
}

}  // namespace

std::string shape_text(const Shape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

std::string encode_model(const ReleasedModel& model) {
  TensorFile file = file_of(model);
  if (model.coder != nullptr) add_text(file, *model.coder);
  return encode_safetensors(file);
}

std::string encode_again(const TensorFile& file, const std::filesystem::path& path,
                         const Network& network) {
  const std::string source = path.string();
  ReleasedModel m{.text = released_text(file, kModel, source),
                  .activation = released_text(file, kActivation, source),
                  .network = network,
                  .parameters = parameters_of(file, network, source),
                  .dataset = released_text(file, kDataset, source),
                  .features = released_features(file, source),
                  .feature_release = {},
                  .coder = nullptr,
                  .inputs = read_inputs(file, source),
                  .initial_weights = released_initial_weights(file)};
  m.features.dimensions = network.input.size();
  m.feature_release = read_release(file, m.features, source);
  TensorFile again = file_of(m);
  copy_text(file, path, again);
  return encode_safetensors(again);
}

fs::path find_released_model(const fs::path& place) {
  std::error_code ignored;
  if (fs::is_regular_file(place, ignored)) return place;
  for (const fs::path& path :
       {place / "release" / "model.safetensors", place / "private" / "model.safetensors",
        place / "model.safetensors"})
    if (fs::exists(path, ignored)) return path;
  throw InputError(place.string() +
                   ": expected a run folder with a released model, its release folder or a "
                   ".safetensors file, found " +
                   found_for_run(place));
}

ReleasedModel read_released_model(const std::filesystem::path& path, const VectorPlace& vectors) {
  const std::string source = path.string();
  const TensorFile file = decode_safetensors(read_file(path), source);
  ReleasedModel m;
  m.dataset = released_text(file, kDataset, source);
  m.text = released_text(file, kModel, source);
  m.activation = released_text(file, kActivation, source);
  m.features = released_features(file, source);
  m.inputs = read_inputs(file, source);
  m.initial_weights = released_initial_weights(file);
  m.coder = read_text(file, path, vectors);
  TextShape words;
  if (m.coder != nullptr)
    words = {.words = m.coder->vocabulary.rows(),
             .columns = m.coder->vectors != nullptr ? m.coder->vectors->columns : 0};
  m.network = released_network(file, words, source);
  m.features.dimensions = m.network.input.size();
  m.feature_release = read_release(file, m.features, source);
  m.parameters = parameters_of(file, m.network, source);
  return m;
}

const std::string& released_text(const TensorFile& file, const char* key,
                                 const std::string& source) {
  const auto it = file.metadata.find(key);
  if (it == file.metadata.end())
    throw InputError(source + ": expected a model made by cudp, found no '" + key + "' in it");
  return it->second;
}

std::optional<privacy::Certificate::PublicInput> released_initial_weights(const TensorFile& file) {
  const auto text = file.metadata.find(kInitial);
  if (text == file.metadata.end()) return std::nullopt;
  const auto json = nlohmann::json::parse(text->second, nullptr, false);
  return privacy::read_public_input(json.is_object() ? json : nlohmann::json::object());
}

FeatureSettings released_features(const TensorFile& file, const std::string& source) {
  TrainConfig stored;
  const auto read = [&](const char* key) {
    const Option& option = *find_option(key);
    const std::string where = std::string(source).append(", ").append(key);
    option.set(stored, parse_value(option, released_text(file, key, source), where), where);
  };
  if (file.metadata.contains(kNormalise)) read(kNormalise);
  if (file.metadata.contains(kFeatureKeys[0]))
    for (const char* key : kFeatureKeys) read(key);
  return feature_settings(stored);
}

Network released_network(const TensorFile& file, const TextShape& text, const std::string& source) {
  Network network = make_network(released_text(file, kModel, source), source,
                                 released_text(file, kActivation, source),
                                 parse_shape(released_text(file, kInput, source), source),
                                 std::atoi(released_text(file, kClasses, source).c_str()), text);
  if (!has_target(network.spec.loss)) return network;
  const std::string& loss = released_text(file, kLoss, source);
  if (loss != name_of(Loss::squared) && loss != name_of(Loss::huber))
    throw InputError(source + ", loss: expected squared or huber, found " + shown(loss));
  if (loss == name_of(Loss::squared)) return network;
  network.spec.loss = Loss::huber;
  const std::string& width = released_text(file, kHuber, source);
  const double value = std::strtod(width.c_str(), nullptr);
  if (!(value > 0.0 && value < 1e30))
    throw InputError(source + ", " + kHuber + ": expected a number > 0, found " + shown(width));
  network.spec.huber = static_cast<float>(value);
  return network;
}

}  // namespace cudp

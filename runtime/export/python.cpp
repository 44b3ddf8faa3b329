#include "runtime/export/python.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/results/evaluation_report.hpp"

#include "exported_scorer.hpp"

namespace cudp {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The tensors that the exported file contains. add() appends a tensor and returns its index, with
/// which the description of a layer refers to it.
struct Weights {
  OrderedJson shapes = OrderedJson::array();
  std::vector<float> values;

  std::size_t add(const std::vector<int>& shape, const float* first, std::size_t size) {
    shapes.push_back(shape);
    values.insert(values.end(), first, first + size);
    return shapes.size() - 1;
  }
};

/// Function object that writes the kind of a table's column, with the numbers and texts that belong
/// to this kind, to the JSON object j.
struct KindJson {
  OrderedJson& j;

  void operator()(const Numeric& n) const {
    j["kind"] = n.date_format.empty() ? "numeric" : "date";
    if (!n.date_format.empty()) j["format"] = n.date_format;
    j["min"] = *n.min;
    j["max"] = *n.max;
    j["log"] = n.log;
    j["edges"] = n.edges;
    j["fill"] = n.fill ? OrderedJson(*n.fill) : OrderedJson();
  }
  void operator()(const Categorical& c) const {
    j["kind"] = "categorical";
    j["values"] = c.values;
    j["missing_has_column"] = c.missing_has_column;
    j["unknown_is_zeros"] = c.unknown_is_zeros;
  }
  void operator()(const Label&) const { j["kind"] = "label"; }
  void operator()(const Target&) const { j["kind"] = "target"; }
  void operator()(const Id&) const { j["kind"] = "id"; }
  void operator()(const Text&) const { j["kind"] = "ignore"; }
  void operator()(const Ignored&) const { j["kind"] = "ignore"; }
  void operator()(const Unstated&) const { j["kind"] = "ignore"; }
};

OrderedJson columns_json(const TableSchema& schema) {
  OrderedJson columns = OrderedJson::array();
  for (const Column& c : schema.columns) {
    OrderedJson j = {{"name", c.name}};
    std::visit(KindJson{j}, c.kind);
    columns.push_back(std::move(j));
  }
  std::vector<std::string> missing(std::begin(kUsualMissing), std::end(kUsualMissing));
  return {{"delimiter", std::string(1, schema.delimiter)},
          {"quotes", schema.quotes},
          {"header", schema.header},
          {"decimal", std::string(1, schema.decimal)},
          {"skip_prefix", schema.skip_prefix},
          {"missing", schema.missing.value_or(missing)},
          {"columns", std::move(columns)}};
}

/// Function object that returns the description of a layer as JSON, without its tensors. Throws
/// Error for the layers of models for texts, which cannot be exported and are rejected before.
struct LayerJson {
  OrderedJson operator()(const Conv2d& c) const {
    return {{"type", "conv2d"}, {"stride", c.stride}, {"pad", c.pad}};
  }
  OrderedJson operator()(const Dense&) const { return {{"type", "dense"}}; }
  OrderedJson operator()(const MaxPool2d& p) const {
    return {{"type", "maxpool"}, {"kernel", p.kernel}, {"stride", p.stride}};
  }
  OrderedJson operator()(const AvgPool2d& p) const {
    return {{"type", "avgpool"}, {"kernel", p.kernel}, {"stride", p.stride}};
  }
  OrderedJson operator()(const GroupNorm& g) const {
    return {{"type", "groupnorm"}, {"groups", g.groups}, {"epsilon", g.epsilon}};
  }
  OrderedJson operator()(const Activate& a) const {
    if (a.kind == Activation::relu) return {{"type", "relu"}};
    if (a.kind == Activation::tanh) return {{"type", "tanh"}};
    return {{"type", "tempered_sigmoid"},
            {"scale", a.scale},
            {"temperature", a.temperature},
            {"offset", a.offset}};
  }
  OrderedJson operator()(const Embedding&) const { return of_texts(); }
  OrderedJson operator()(const Recurrent&) const { return of_texts(); }
  OrderedJson operator()(const MeanOverTime&) const { return of_texts(); }
  static OrderedJson of_texts() { throw Error("a layer of texts without texts"); }
};

OrderedJson layers_json(const ReleasedModel& m, Weights& weights) {
  OrderedJson layers = OrderedJson::array();
  if (m.features.normalise != Normalise::none)
    layers.push_back({{"type", m.features.normalise == Normalise::unit ? "unit" : "standard"}});
  if (m.features.kind == Features::pca) {
    const int rows = m.network.input.channels;
    const int columns = static_cast<int>(m.feature_release.size()) / rows;
    layers.push_back(
        {{"type", "projection"},
         {"tensors",
          {weights.add({rows, columns}, m.feature_release.data(), m.feature_release.size())}}});
  }
  for (const NetworkLayer& l : m.network.layers) {
    OrderedJson j = std::visit(LayerJson{}, l.layer);
    for (std::size_t i = 0; i < l.parameter_count; ++i) {
      const ParameterTensor& t = m.network.parameters[l.first_parameter + i];
      j["tensors"].push_back(weights.add(t.shape, m.parameters.data() + t.offset, t.size));
    }
    layers.push_back(std::move(j));
  }
  return layers;
}

const char* loss_name(Loss loss) {
  if (has_target(loss)) return "target";
  if (loss == Loss::hinge) return "hinge";
  return loss == Loss::logistic ? "logistic" : "softmax";
}

OrderedJson model_json(const ReleasedModel& m, const ExportNote& note, Weights& weights) {
  const Network& net = m.network;
  OrderedJson layers = layers_json(m, weights);
  Shape input = net.input;
  if (m.features.kind == Features::pca)
    input = {.channels = static_cast<int>(m.feature_release.size()) / net.input.channels};
  OrderedJson j = {{"name", net.spec.name},
                   {"dataset", m.dataset},
                   {"not_for_release", note.not_for_release},
                   {"input", {input.channels, input.height, input.width}},
                   {"outputs", net.outputs},
                   {"loss", loss_name(net.spec.loss)}};
  j["classes"] = OrderedJson::array();
  if (!has_target(net.spec.loss))
    for (int c = 0; c < net.classes; ++c) j["classes"].push_back(class_name(m.inputs.classes(), c));
  if (const auto bounds = m.inputs.target()) j["target"] = {bounds->min, bounds->max};
  if (m.inputs.pixels)
    j["pixels"] = {{"scale", m.inputs.pixels->scale}, {"shift", m.inputs.pixels->shift}};
  j["features"] = OrderedJson::array();
  if (m.inputs.schema) {
    j["features"] = feature_names(*m.inputs.schema);
    j["table"] = columns_json(*m.inputs.schema);
  }
  j["layers"] = std::move(layers);
  j["tensors"] = weights.shapes;
  return j;
}

/// Returns float32 numbers as text: their little-endian bytes in base 64, split into lines.
std::string base64_lines(const std::vector<float>& values) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t kLine = 120;
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::uint8_t> bytes(4 * values.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  text.reserve(bytes.size() * 3 / 2);
  std::size_t column = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    if ((column += 4) >= kLine) {
      text += '\n';
      column = 0;
    }
  }
  return text;
}

/// Returns JSON as a raw Python string literal in triple quotes, in ASCII. No text in the JSON can
/// end the literal early: quotes inside a text are escaped, and JSON never has three unescaped
/// quotes in a row.
std::string literal(const OrderedJson& j) {
  return "r\"\"\"\n" + j.dump(1, ' ', true, OrderedJson::error_handler_t::replace) + "\n\"\"\"";
}

/// Returns a Python comment line; characters that are not printable ASCII become '?'.
std::string comment(const std::string& text) {
  std::string line = "# ";
  for (const char c : text) line += c >= ' ' && c < 0x7f ? c : '?';
  return line + "\n";
}

/// Throws InputError, naming the reason, on a model that cannot be exported.
void check_exported(const ReleasedModel& model, const std::string& name) {
  if (model.coder != nullptr)
    throw InputError(name +
                     ": expected a model of a table, images or features for --to python, found one "
                     "of texts, whose tokenizer and words are not exported: --to onnx takes the "
                     "numbers of words, or cudp predict the texts");
  if (model.features.kind == Features::scatter)
    throw InputError(name +
                     ": expected a model of a table, images or features for --to python, found one "
                     "of --features scatter, which are not exported: --to onnx takes the features, "
                     "or cudp predict the images");
}

}  // namespace

std::string python_scorer(const ReleasedModel& model, const ExportNote& note,
                          const std::string& name) {
  check_exported(model, name);
  Weights weights;
  const OrderedJson j = model_json(model, note, weights);
  std::string constants;
  for (const std::string& reason : note.not_for_release)
    constants += comment("NOT FOR RELEASE: " + reason);
  constants += "# The model, written by cudp export.\nMODEL = json.loads(\n    " + literal(j) +
               "\n)\n# Its tensors, float32, little-endian.\nWEIGHTS = \"\"\"\n" +
               base64_lines(weights.values) + "\n\"\"\"\n";
  std::string text(exported_scorer().front().text);
  constexpr std::string_view kPlace = "#MODEL#\n";
  const std::size_t at = text.find(kPlace);
  ensure(at != std::string::npos, "scorer.py has a place for the model");
  return "#!/usr/bin/env python3\n" + text.replace(at, kPlace.size(), constants);
}

std::string description_of(const ReleasedModel& model, const std::string& name) {
  check_exported(model, name);
  Weights weights;
  return model_json(model, {}, weights).dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace cudp

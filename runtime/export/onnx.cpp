#include "runtime/export/onnx.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/protobuf.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/results/evaluation_report.hpp"

namespace cudp {
namespace {

/// Versions of the ONNX file format and of its set of operators that are written.
constexpr std::int64_t kIrVersion = 8;
constexpr std::int64_t kOpset = 17;

// Values of the enumeration TensorProto.DataType.
constexpr int kFloat = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kDouble = 11;

using Dims = std::vector<std::int64_t>;

/// An attribute of an ONNX node: its name and its value.
struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, Dims> value;
};

ProtoMessage proto(const Attribute& a) {
  // Field numbers of AttributeProto: name 1, f 2, i 3, s 4, ints 8, type 20. Values of the type:
  // FLOAT 1, INT 2, STRING 3, INTS 7.
  ProtoMessage m;
  m.text(1, a.name);
  if (const auto* i = std::get_if<std::int64_t>(&a.value)) {
    m.integer(3, *i);
    m.integer(20, 2);
  } else if (const auto* f = std::get_if<float>(&a.value)) {
    m.real(2, *f);
    m.integer(20, 1);
  } else if (const auto* s = std::get_if<std::string>(&a.value)) {
    m.text(4, *s);
    m.integer(20, 3);
  } else {
    for (const std::int64_t i : std::get<Dims>(a.value)) m.integer(8, i);
    m.integer(20, 7);
  }
  return m;
}

/// An ONNX graph under construction: nodes and constants, in the order in which they are added. A
/// function that adds a node or a constant returns the name of its value.
class Graph {
 public:
  /// Adds a node of this operator type. inputs: names of values. chosen: index of the only output
  /// of the node that is used. Returns the name of that output.
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}, int chosen = 0) {
    std::string output = type + "_" + std::to_string(++nodes_);
    named(type, inputs, output, attributes, chosen);
    return output;
  }
  void named(const std::string& type, const std::vector<std::string>& inputs,
             const std::string& output, const std::vector<Attribute>& attributes = {},
             int chosen = 0) {
    ProtoMessage n;  // NodeProto: input 1, output 2, name 3, op_type 4, attribute 5
    for (const std::string& input : inputs) n.text(1, input);
    for (int i = 0; i < chosen; ++i) n.text(2, "");
    n.text(2, output);
    n.text(3, output + "_node");
    n.text(4, type);
    for (const Attribute& a : attributes) n.message(5, proto(a));
    graph_.message(1, n);
  }

  template <class T>
  std::string constant(int type, const Dims& dims, const T* values, std::size_t count,
                       const std::string& name = "") {
    static_assert(std::endian::native == std::endian::little);
    std::string chosen = name.empty() ? "constant_" + std::to_string(++constants_) : name;
    ProtoMessage t;  // TensorProto: dims 1, data_type 2, name 8, raw_data 9
    for (const std::int64_t d : dims) t.integer(1, d);
    t.integer(2, type);
    t.text(8, chosen);
    t.text(9, {reinterpret_cast<const char*>(values), count * sizeof(T)});
    graph_.message(5, t);
    return chosen;
  }
  std::string floats(const Dims& dims, const std::vector<float>& values,
                     const std::string& name = "") {
    return constant(kFloat, dims, values.data(), values.size(), name);
  }
  std::string scalar(float value) { return constant(kFloat, {}, &value, 1); }
  std::string scalar_double(double value) { return constant(kDouble, {}, &value, 1); }
  std::string dims(const Dims& values) {
    return constant(kInt64, {static_cast<std::int64_t>(values.size())}, values.data(),
                    values.size());
  }
  std::string cast(const std::string& value, int type) {
    return node("Cast", {value}, {{"to", static_cast<std::int64_t>(type)}});
  }

  void input(const std::string& name, int type, const std::vector<std::string>& shape) {
    graph_.message(11, value_info(name, type, shape));
  }
  void output(const std::string& name, int type, const std::vector<std::string>& shape) {
    graph_.message(12, value_info(name, type, shape));
  }
  void finish(const std::string& name) { graph_.text(2, name); }
  const ProtoMessage& message() const { return graph_; }

 private:
  /// Returns the description of an input or output of the graph. type: its TensorProto.DataType.
  /// shape: for each dimension its size in digits or, if the size varies, a name for it.
  static ProtoMessage value_info(const std::string& name, int type,
                                 const std::vector<std::string>& shape) {
    ProtoMessage dims;
    for (const std::string& side : shape) {
      ProtoMessage d;  // Dimension: dim_value 1, dim_param 2
      if (side.find_first_not_of("0123456789") == std::string::npos)
        d.integer(1, std::stoll(side));
      else
        d.text(2, side);
      dims.message(1, d);
    }
    ProtoMessage tensor, of, info;
    tensor.integer(1, type);
    tensor.message(2, dims);
    of.message(1, tensor);
    info.text(1, name);
    info.message(2, of);
    return info;
  }

  ProtoMessage graph_;  // GraphProto: node 1, name 2, initializer 5, input 11, output 12
  int nodes_ = 0;
  int constants_ = 0;
};

/// Returns the weights of a recurrent layer in ONNX's order of gates. The weights of each gate are
/// one block of `block` numbers; block g of the result is block order[g] of the weights. first:
/// pointer to the first weight.
std::vector<float> reordered(const float* first, std::size_t block, std::span<const int> order) {
  std::vector<float> out;
  out.reserve(block * order.size());
  for (const int g : order)
    out.insert(out.end(), first + static_cast<std::size_t>(g) * block,
               first + static_cast<std::size_t>(g + 1) * block);
  return out;
}

/// Converts the network's layers one by one to ONNX nodes in a graph. The value of a layer has the
/// shape [N, size] or [N, channels, height, width], where N is the number of rows; a sequence has
/// [words, N, channels], as ONNX's recurrent operators require.
class Layers {
 public:
  Layers(Graph& graph, const ReleasedModel& model) : g_(graph), m_(model) {}

  /// Adds the graph's inputs, and the nodes that compute the input of the first layer from them.
  void add_inputs() {
    if (m_.coder != nullptr) {
      g_.input("tokens", kInt64, {"N", "words"});
      g_.input("lengths", kInt32, {"N"});
      return;
    }
    const Shape& net = m_.network.input;
    const bool components = m_.features.kind == Features::pca;
    const bool scattered = m_.features.kind == Features::scatter;
    const auto given = components ? static_cast<int>(m_.feature_release.size()) / net.channels : 0;
    const bool pixels = m_.inputs.pixels && !scattered;
    const bool flat = components || (!pixels && !scattered);
    std::vector<std::string> shape = {"N"};
    if (flat)
      shape.push_back(std::to_string(components ? given : net.size()));
    else
      for (const int side : {net.channels, net.height, net.width})
        shape.push_back(std::to_string(side));
    flat_ = flat;
    value_ = pixels ? "pixels" : "features";
    g_.input(value_, pixels ? kUint8 : kFloat, shape);
    if (pixels) {
      value_ = g_.cast(value_, kFloat);
      value_ = g_.node("Mul", {value_, g_.scalar(m_.inputs.pixels->scale)});
      value_ = g_.node("Add", {value_, g_.scalar(m_.inputs.pixels->shift)});
    }
    if (!scattered) normalise();
    if (components) {
      const std::string directions =
          g_.floats({net.channels, given}, m_.feature_release, "features.projection");
      value_ = g_.node("Gemm", {value_, directions}, {{"transB", std::int64_t{1}}});
    }
  }

  void add(const NetworkLayer& l) {
    now_ = &l;
    std::visit([this](const auto& layer) { apply(layer); }, l.layer);
  }

  /// Flattens the value of the last layer, if necessary. Returns the name of the logits, [N,
  /// outputs].
  std::string logits() {
    flatten();
    return value_;
  }

 private:
  /// Adds nodes that normalise each row (the setting --normalise), in double precision as cudp
  /// does.
  void normalise() {
    if (m_.features.normalise == Normalise::none) return;
    std::string x = g_.cast(value_, kDouble);
    const auto sum_of_squares = [&](const std::string& of) {
      return g_.node("ReduceSum", {g_.node("Mul", {of, of}), g_.dims({1})},
                     {{"keepdims", std::int64_t{1}}});
    };
    if (m_.features.normalise == Normalise::unit) {
      x = g_.node("Div", {x, not_zero(g_.node("Sqrt", {sum_of_squares(x)}))});
    } else {
      const auto n = static_cast<double>(
          m_.features.kind == Features::pca
              ? m_.feature_release.size() / static_cast<std::size_t>(m_.network.input.channels)
              : static_cast<std::size_t>(m_.network.input.size()));
      const std::string mean =
          g_.node("Div", {g_.node("ReduceSum", {x, g_.dims({1})}, {{"keepdims", std::int64_t{1}}}),
                          g_.scalar_double(n)});
      x = g_.node("Sub", {x, mean});
      const std::string variance = g_.node("Div", {sum_of_squares(x), g_.scalar_double(n)});
      x = g_.node("Div",
                  {x, g_.node("Sqrt", {g_.node("Add", {variance, g_.scalar_double(1e-5)})})});
    }
    value_ = g_.cast(x, kFloat);
  }

  /// Adds a node that replaces zeros in x by 1. x: name of a value of doubles. Returns the result's
  /// name.
  std::string not_zero(const std::string& x) {
    const std::string zero = g_.scalar_double(0.0);
    return g_.node("Where", {g_.node("Equal", {x, zero}), g_.scalar_double(1.0), x});
  }

  const float* values(std::size_t i) const {
    return m_.parameters.data() + m_.network.parameters[now_->first_parameter + i].offset;
  }
  /// Adds a constant with parameter tensor i of the current layer. Returns its name.
  std::string parameter(std::size_t i) {
    const ParameterTensor& t = m_.network.parameters[now_->first_parameter + i];
    return g_.constant(kFloat, Dims(t.shape.begin(), t.shape.end()), values(i), t.size, t.name);
  }

  void flatten() {
    if (!flat_) value_ = g_.node("Flatten", {value_}, {{"axis", std::int64_t{1}}});
    flat_ = true;
  }
  void to_image() {
    const Shape& s = now_->in;
    if (flat_) value_ = g_.node("Reshape", {value_, g_.dims({0, s.channels, s.height, s.width})});
    flat_ = false;
  }

  void apply(const Conv2d& c) {
    to_image();
    const std::int64_t pad = c.pad, stride = c.stride, kernel = c.kernel;
    value_ = g_.node("Conv", {value_, parameter(0), parameter(1)},
                     {{"kernel_shape", Dims{kernel, kernel}},
                      {"pads", Dims{pad, pad, pad, pad}},
                      {"strides", Dims{stride, stride}}});
  }
  void apply(const Dense& d) {
    if (d.per_token) {
      const std::string weight = g_.node("Transpose", {parameter(0)}, {{"perm", Dims{1, 0}}});
      value_ = g_.node("Add", {g_.node("MatMul", {value_, weight}), parameter(1)});
      return;
    }
    flatten();
    value_ = g_.node("Gemm", {value_, parameter(0), parameter(1)}, {{"transB", std::int64_t{1}}});
  }
  template <class Pool>
  void pool(const char* type, const Pool& p) {
    to_image();
    const std::int64_t stride = p.stride, kernel = p.kernel;
    value_ = g_.node(type, {value_},
                     {{"kernel_shape", Dims{kernel, kernel}}, {"strides", Dims{stride, stride}}});
  }
  void apply(const MaxPool2d& p) { pool("MaxPool", p); }
  void apply(const AvgPool2d& p) { pool("AveragePool", p); }
  /// Converts a group norm to an instance norm over the groups, followed by scale and shift per
  /// channel.
  void apply(const GroupNorm& n) {
    to_image();
    const Shape& s = now_->in;
    const auto groups = static_cast<std::size_t>(n.groups);
    const std::string grouped = g_.node("Reshape", {value_, g_.dims({0, n.groups, -1})});
    const std::string normal =
        g_.node("InstanceNormalization",
                {grouped, g_.floats({n.groups}, std::vector<float>(groups, 1.0f)),
                 g_.floats({n.groups}, std::vector<float>(groups, 0.0f))},
                {{"epsilon", n.epsilon}});
    value_ = g_.node("Reshape", {normal, g_.dims({0, s.channels, s.height, s.width})});
    const Dims by_channel = {s.channels, 1, 1};
    const std::string weight = g_.node("Reshape", {parameter(0), g_.dims(by_channel)});
    const std::string bias = g_.node("Reshape", {parameter(1), g_.dims(by_channel)});
    value_ = g_.node("Add", {g_.node("Mul", {value_, weight}), bias});
  }
  void apply(const Activate& a) {
    if (a.kind == Activation::relu) {
      value_ = g_.node("Relu", {value_});
    } else if (a.kind == Activation::tanh) {
      value_ = g_.node("Tanh", {value_});
    } else {
      value_ = g_.node("Sigmoid", {g_.node("Mul", {value_, g_.scalar(a.temperature)})});
      value_ = g_.node("Mul", {value_, g_.scalar(a.scale)});
      value_ = g_.node("Sub", {value_, g_.scalar(a.offset)});
    }
  }

  /// Adds one table with a row for each word id, and nodes that look up the rows of a text's words.
  /// The rows that were trained come first. The other rows are those of the fixed embedding, or
  /// zeros if there is none.
  void apply(const Embedding& e) {
    const auto rows = static_cast<std::size_t>(m_.coder->vocabulary.rows());
    const auto columns = static_cast<std::size_t>(now_->out.channels);
    std::vector<float> table(rows * columns, 0.0f);
    if (const WordVectors* v = m_.coder->vectors.get();
        v != nullptr && static_cast<std::size_t>(v->columns) == columns)
      std::copy_n(v->values.begin(), std::min(v->values.size(), table.size()), table.begin());
    if (e.trainable)
      std::copy_n(values(0), m_.network.parameters[now_->first_parameter].size, table.begin());
    const std::string words = g_.floats(
        {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, table, "words");
    value_ = g_.node("Gather", {words, "tokens"}, {{"axis", std::int64_t{0}}});
    value_ = g_.node("Transpose", {value_}, {{"perm", Dims{1, 0, 2}}});
    flat_ = true;
  }

  /// Adds the mask of texts, [words, N, 1], at the first call: 1 at a text's words, 0 after its
  /// end. Returns its name.
  const std::string& mask() {
    if (!mask_.empty()) return mask_;
    const std::int64_t zero = 0, one = 1;
    const std::string words =
        g_.node("Gather", {g_.node("Shape", {"tokens"}), g_.constant(kInt64, {}, &one, 1)},
                {{"axis", std::int64_t{0}}});
    const std::string places = g_.node(
        "Range", {g_.constant(kInt64, {}, &zero, 1), words, g_.constant(kInt64, {}, &one, 1)});
    const std::string column = g_.node("Reshape", {places, g_.dims({-1, 1, 1})});
    const std::string lengths =
        g_.node("Reshape", {g_.cast("lengths", kInt64), g_.dims({1, -1, 1})});
    return mask_ = g_.cast(g_.node("Less", {column, lengths}), kFloat);
  }
  /// Adds nodes that compute the number of words of each text, [N, 1]. Returns the result's name.
  std::string counts() {
    return g_.node("Reshape", {g_.cast("lengths", kFloat), g_.dims({-1, 1})});
  }
  /// Adds nodes that compute the mean of a sequence over each text's words, [N, channels]; zeros
  /// for an empty text. Returns the result's name.
  std::string mean(const std::string& sequence) {
    const std::string sum = g_.node("ReduceSum", {g_.node("Mul", {sequence, mask()}), g_.dims({0})},
                                    {{"keepdims", std::int64_t{0}}});
    return g_.node("Div", {sum, g_.node("Max", {counts(), g_.scalar(1.0f)})});
  }
  void apply(const MeanOverTime& l) {
    value_ = mean(value_);
    if (!l.unit) return;
    const std::string x = g_.cast(value_, kDouble);
    const std::string squares = g_.node("ReduceSum", {g_.node("Mul", {x, x}), g_.dims({1})},
                                        {{"keepdims", std::int64_t{1}}});
    value_ = g_.cast(g_.node("Div", {x, not_zero(g_.node("Sqrt", {squares}))}), kFloat);
  }

  void apply(const Recurrent& r) {
    const bool lstm = r.cell == Cell::lstm;
    // The gates are i, f, g, o and r, z, n in PyTorch; i, o, f, g and z, r, n in ONNX.
    constexpr int kLstm[] = {0, 3, 1, 2}, kGru[] = {1, 0, 2};
    const std::span<const int> order = lstm ? std::span<const int>(kLstm) : kGru;
    const auto hidden = static_cast<std::size_t>(r.hidden);
    const auto in = static_cast<std::size_t>(now_->in.channels);
    std::vector<float> w, u, b;
    const std::size_t tensors = lstm ? 3 : 4;
    for (std::size_t d = 0; d < static_cast<std::size_t>(r.directions()); ++d) {
      const auto append = [&](std::vector<float>& to, std::size_t i, std::size_t block) {
        const std::vector<float> part = reordered(values(tensors * d + i), block, order);
        to.insert(to.end(), part.begin(), part.end());
      };
      append(w, 0, hidden * in);
      append(u, 1, hidden * hidden);
      append(b, 2, hidden);
      if (lstm)
        b.resize(b.size() + order.size() * hidden, 0.0f);
      else
        append(b, 3, hidden);
    }
    const std::int64_t directions = r.directions(), rows = std::int64_t{r.gates()} * r.hidden;
    std::vector<Attribute> attributes = {
        {"hidden_size", std::int64_t{r.hidden}},
        {"direction", std::string(r.bidirectional ? "bidirectional" : "forward")}};
    if (!lstm) attributes.push_back({"linear_before_reset", std::int64_t{1}});
    const std::vector<std::string> inputs = {
        value_, g_.floats({directions, rows, now_->in.channels}, w, r.name + ".input_weight"),
        g_.floats({directions, rows, r.hidden}, u, r.name + ".state_weight"),
        g_.floats({directions, 2 * rows}, b, r.name + ".biases"), "lengths"};
    const char* const type = lstm ? "LSTM" : "GRU";
    const std::int64_t width = directions * r.hidden;
    if (r.output == RecurrentOutput::last) {  // [directions, N, hidden]
      const std::string last = g_.node(type, inputs, attributes, 1);
      const std::string beside = g_.node("Transpose", {last}, {{"perm", Dims{1, 0, 2}}});
      const std::string any = g_.node("Clip", {counts(), g_.scalar(0.0f), g_.scalar(1.0f)});
      value_ = g_.node("Mul", {g_.node("Reshape", {beside, g_.dims({0, width})}), any});
      return;
    }
    const std::string all = g_.node(type, inputs, attributes);  // [words, directions, N, hidden]
    const std::string beside = g_.node("Transpose", {all}, {{"perm", Dims{0, 2, 1, 3}}});
    value_ = g_.node("Reshape", {beside, g_.dims({0, 0, width})});
    if (r.output == RecurrentOutput::mean) value_ = mean(value_);
  }

  Graph& g_;
  const ReleasedModel& m_;
  const NetworkLayer* now_ = nullptr;
  std::string value_;
  bool flat_ = true;
  std::string mask_;  // "" until it is first used
};

void add_outputs(Graph& g, const ReleasedModel& m, const std::string& logits) {
  const Loss loss = m.network.spec.loss;
  g.named("Identity", {logits}, "logits");
  g.output("logits", kFloat, {"N", std::to_string(m.network.outputs)});
  if (has_target(loss)) {
    const TargetBounds bounds = m.inputs.target().value_or(TargetBounds{});
    std::string z = g.node("Clip", {"logits", g.scalar(-1.0f), g.scalar(1.0f)});
    z = g.node("Add", {g.cast(z, kDouble), g.scalar_double(1.0)});
    z = g.node("Mul", {z, g.scalar_double(0.5 * (bounds.max - bounds.min))});
    g.named("Add", {z, g.scalar_double(bounds.min)}, "value");
    g.output("value", kDouble, {"N", "1"});
  } else if (loss != Loss::hinge) {
    if (loss == Loss::logistic)
      g.named("Concat",
              {g.node("Sigmoid", {g.node("Neg", {"logits"})}), g.node("Sigmoid", {"logits"})},
              "probabilities", {{"axis", std::int64_t{1}}});
    else
      g.named("Softmax", {"logits"}, "probabilities", {{"axis", std::int64_t{1}}});
    g.output("probabilities", kFloat, {"N", std::to_string(m.network.classes)});
  }
}

/// Returns a description of the inputs' layout, as text for people who read the file.
std::string inputs_text(const ReleasedModel& m) {
  if (m.coder != nullptr)
    return "tokens [N, words]: the numbers of each text's words, cut to " +
           std::to_string(m.coder->options.tokens) +
           ", 0 after its end; lengths [N]: number of words of each. Metadata `words` lists the "
           "words.";
  if (m.features.kind == Features::scatter)
    return "features [N, channels, height, width]: scattering features as cudp makes them of an "
           "image, normalised as the training's were.";
  if (m.features.kind == Features::pca && m.inputs.pixels)
    return "pixels [N, d]: bytes of an image, channel by channel, row by row.";
  if (m.inputs.pixels) return "pixels [N, channels, height, width]: bytes of an image.";
  if (m.inputs.schema)
    return "features [N, d]: a row of the table, encoded as metadata `schema` states, in the order "
           "of `feature-names`; the file of --to python has encode().";
  return "features [N, d]: a row of the matrix of features.";
}

void add_metadata(ProtoMessage& model, const std::string& key, const std::string& value) {
  ProtoMessage entry;
  entry.text(1, key);
  entry.text(2, value);
  model.message(14, entry);
}

std::string json_list(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string onnx_model(const ReleasedModel& model, const ExportNote& note,
                       const std::string& name) {
  Graph graph;
  Layers layers(graph, model);
  layers.add_inputs();
  for (const NetworkLayer& l : model.network.layers) layers.add(l);
  add_outputs(graph, model, layers.logits());
  graph.finish(model.network.spec.name);

  // Field numbers of ModelProto: ir_version 1, producer_name 2, producer_version 3, doc_string 6,
  // graph 7, opset_import 8, metadata_props 14.
  ProtoMessage m, opset;
  m.integer(1, kIrVersion);
  m.text(2, "cudp");
  m.text(3, build_info().version);
  std::string doc = inputs_text(model);
  for (const std::string& reason : note.not_for_release)
    doc.insert(0, fmt::format("NOT FOR RELEASE: {}\n", reason));
  m.text(6, doc);
  opset.text(1, "");
  opset.integer(2, kOpset);
  m.message(8, opset);
  add_metadata(m, "dataset", model.dataset);
  if (!has_target(model.network.spec.loss)) {
    std::vector<std::string> classes;
    classes.reserve(static_cast<std::size_t>(model.network.classes));
    for (int c = 0; c < model.network.classes; ++c)
      classes.push_back(class_name(model.inputs.classes(), c));
    add_metadata(m, "classes", json_list(classes));
  }
  if (model.inputs.schema) {
    add_metadata(m, "schema", schema_toml(*model.inputs.schema));
    if (const auto names = feature_names(*model.inputs.schema); !names.empty())
      add_metadata(m, "feature-names", json_list(names));
  }
  if (model.coder != nullptr) add_metadata(m, "words", json_list(model.coder->vocabulary.words()));
  if (!note.not_for_release.empty())
    add_metadata(m, "not-for-release", json_list(note.not_for_release));
  m.message(7, graph.message());
  if (m.bytes().size() >= std::size_t{1} << 31)
    throw InputError(name + ": expected a model of less than 2 GiB, which ONNX can hold, found " +
                     std::to_string(m.bytes().size()) + " bytes");
  return m.bytes();
}

}  // namespace cudp

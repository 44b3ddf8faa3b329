#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#define TOML_IMPLEMENTATION  // the functions of toml++, for the whole program
#include <toml++/toml.h>

#include "models/model.hpp"

#include "builtin_models.hpp"

namespace cudp {
namespace {

/// Reads the keys of one layer's table in a TOML description of a network. Errors name the source,
/// line and key.
class LayerTable {
 public:
  LayerTable(const toml::table& table, const std::string& source)
      : table_(table), source_(source) {}

  [[noreturn]] void fail(const std::string& what) const {
    std::ostringstream os;
    os << source_ << ", line " << table_.source().begin.line << ": " << what;
    throw std::invalid_argument(os.str());
  }

  void allow(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : table_) {
      const std::string_view k = key.str();
      if (k != "type" && std::find(keys.begin(), keys.end(), k) == keys.end()) {
        std::string expected;
        for (const auto& e : keys) expected += (expected.empty() ? "" : ", ") + std::string(e);
        fail("expected one of: type, " + expected + "; found key '" + std::string(k) + "'");
      }
    }
  }

  std::string text(std::string_view key) const {
    const auto v = table_[key].value<std::string>();
    if (!v || v->empty()) fail("expected a text for '" + std::string(key) + "'");
    return *v;
  }

  std::string optional_text(std::string_view key, const std::string& fallback) const {
    return table_.contains(key) ? text(key) : fallback;
  }

  int optional_integer(std::string_view key, int fallback) const {
    return table_.contains(key) ? integer(key) : fallback;
  }

  int integer(std::string_view key) const {
    if (!table_.contains(key)) fail("key '" + std::string(key) + "' is missing");
    const auto v = table_[key].value_exact<std::int64_t>();
    if (!v || *v < 0 || *v > 1'000'000)
      fail("expected a whole number of 0 to 1000000 for '" + std::string(key) + "'");
    return static_cast<int>(*v);
  }

  float number(std::string_view key, float fallback) const {
    if (!table_.contains(key)) return fallback;
    const auto v = table_[key].value<double>();
    if (!v || !(*v > 0 && *v < 1e6))
      fail("expected a positive number for '" + std::string(key) + "'");
    return static_cast<float>(*v);
  }

  /// Returns lr_scale, the factor by which the learning rate of this layer's parameters is
  /// multiplied; 1 if the key is missing.
  float lr_scale() const {
    if (table_["lr_scale"].value<double>() == 0.0)
      fail("expected lr_scale > 0, found 0: a layer that is not trained is named by --freeze");
    return number("lr_scale", 1.0f);
  }

  bool flag(std::string_view key) const {
    if (!table_.contains(key)) return false;
    const auto v = table_[key].value_exact<bool>();
    if (!v) fail("expected true or false for '" + std::string(key) + "'");
    return *v;
  }

  bool is_text(std::string_view key) const { return table_[key].is_string(); }

 private:
  const toml::table& table_;
  const std::string& source_;
};

Activate tempered(const LayerTable& t) {
  return {Activation::tempered_sigmoid, t.number("scale", 2.0f), t.number("temperature", 2.0f),
          t.number("offset", 1.0f)};
}

Activate activation_named(const std::string& name, const LayerTable& at) {
  if (name == "relu") return {Activation::relu};
  if (name == "tanh") return {Activation::tanh};
  if (name == "tempered_sigmoid" || name == "tempered-sigmoid")
    return {Activation::tempered_sigmoid};
  at.fail("expected activation relu, tanh or tempered_sigmoid, found '" + name + "'");
}

Embedding parse_embedding(const LayerTable& t) {
  t.allow({"name", "trainable", "trainable_rows", "columns", "lr_scale"});
  Embedding e{t.text("name"), t.flag("trainable"), t.optional_integer("trainable_rows", 0),
              t.optional_integer("columns", 0), t.lr_scale()};
  if (!e.trainable && (e.rows > 0 || e.columns > 0 || e.lr_scale != 1.0f))
    t.fail("'trainable_rows', 'columns' and 'lr_scale' need trainable = true");
  return e;
}

Recurrent parse_recurrent(const LayerTable& t, Cell cell) {
  t.allow({"name", "hidden", "bidirectional", "output", "lr_scale"});
  Recurrent r{.name = t.text("name"),
              .cell = cell,
              .hidden = t.integer("hidden"),
              .bidirectional = t.flag("bidirectional"),
              .output = RecurrentOutput::last,
              .lr_scale = t.lr_scale()};
  const std::string output = t.optional_text("output", "last");
  if (output == "mean")
    r.output = RecurrentOutput::mean;
  else if (output == "sequence")
    r.output = RecurrentOutput::sequence;
  else if (output != "last")
    t.fail("expected output last, mean or sequence, found '" + output + "'");
  return r;
}

Layer parse_layer(const LayerTable& t, const std::string& activation, int outputs) {
  const std::string type = t.text("type");
  if (type == "conv2d") {
    t.allow({"name", "out", "kernel", "stride", "pad", "lr_scale"});
    return Conv2d{t.text("name"),
                  t.integer("out"),
                  t.integer("kernel"),
                  t.optional_integer("stride", 1),
                  t.optional_integer("pad", 0),
                  t.lr_scale()};
  }
  if (type == "dense") {
    t.allow({"name", "out", "per_token", "lr_scale"});
    if (t.is_text("out") && t.text("out") != "outputs")
      t.fail("expected a number or \"outputs\" for 'out'");
    return Dense{t.text("name"), t.is_text("out") ? outputs : t.integer("out"), t.flag("per_token"),
                 t.lr_scale()};
  }
  if (type == "embedding") return parse_embedding(t);
  if (type == "lstm") return parse_recurrent(t, Cell::lstm);
  if (type == "gru") return parse_recurrent(t, Cell::gru);
  if (type == "mean") {
    t.allow({"unit"});
    return MeanOverTime{t.flag("unit")};
  }
  if (type == "maxpool") {
    t.allow({"kernel", "stride"});
    return MaxPool2d{t.optional_integer("kernel", 2), t.optional_integer("stride", 2)};
  }
  if (type == "avgpool") {
    t.allow({"kernel", "stride"});
    return AvgPool2d{t.optional_integer("kernel", 2), t.optional_integer("stride", 2)};
  }
  if (type == "groupnorm") {
    t.allow({"name", "groups", "epsilon", "lr_scale"});
    return GroupNorm{t.text("name"), t.integer("groups"), t.number("epsilon", 1e-5f), t.lr_scale()};
  }
  if (type == "tempered_sigmoid") {
    t.allow({"scale", "temperature", "offset"});
    return tempered(t);
  }
  if (type == "relu" || type == "tanh") {
    t.allow({});
    return activation_named(type, t);
  }
  if (type == "activation") {
    t.allow({});
    if (activation.empty()) t.fail("type 'activation' needs the model's key 'activation'");
    return activation_named(activation, t);
  }
  if (type == "batchnorm" || type == "batchnorm2d" || type == "batch_norm")
    t.fail("layer type '" + type +
           "' is refused: it mixes the examples of a batch, so no per-example gradient exists and "
           "clipping would bound nothing; use groupnorm");
  t.fail(
      "expected layer type conv2d, dense, maxpool, avgpool, groupnorm, embedding, lstm, gru, mean, "
      "relu, tanh, tempered_sigmoid or activation, found '" +
      type + "'");
}

}  // namespace

ModelSpec parse_model(std::string_view text, const std::string& source, int classes,
                      const std::string& activation) {
  toml::table root;
  try {
    root = toml::parse(text, source);
  } catch (const toml::parse_error& e) {
    std::ostringstream os;
    os << source << ", line " << e.source().begin.line << ": " << e.description();
    throw std::invalid_argument(os.str());
  }
  const LayerTable top(root, source);
  top.allow({"name", "loss", "activation", "layers"});

  ModelSpec spec;
  spec.name = top.text("name");
  const std::string loss = root.contains("loss") ? top.text("loss") : "cross_entropy";
  if (loss == "cross_entropy")
    spec.loss = classes == 1   ? Loss::squared
                : classes == 2 ? Loss::logistic
                               : Loss::softmax_cross_entropy;
  else if (loss == "softmax")
    spec.loss = Loss::softmax_cross_entropy;
  else if (loss == "hinge")
    spec.loss = Loss::hinge;
  else
    top.fail("expected loss cross_entropy, softmax or hinge, found '" + loss + "'");
  if (classes == 1 && !has_target(spec.loss))
    top.fail("expected loss cross_entropy for a numeric target (the squared loss), found '" + loss +
             "'");
  const int outputs = spec.loss == Loss::softmax_cross_entropy ? classes : 1;

  std::string act = activation;
  if (act.empty() && root.contains("activation")) act = top.text("activation");
  const toml::array* layers = root["layers"].as_array();
  if (layers == nullptr || layers->empty()) top.fail("expected a list 'layers', found none");
  for (const toml::node& node : *layers) {
    if (!node.is_table()) top.fail("expected every entry of 'layers' to be a table");
    spec.layers.push_back(parse_layer(LayerTable(*node.as_table(), source), act, outputs));
  }
  return spec;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const EmbeddedText& t : builtin_models()) names.emplace_back(t.name);
  return names;
}

std::string_view builtin_model(std::string_view name) {
  for (const EmbeddedText& t : builtin_models())
    if (t.name == name) return t.text;
  return {};
}

}  // namespace cudp

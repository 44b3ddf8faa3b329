#include "models/model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace cudp {
namespace {

std::string text(const Shape& s) {
  return std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" +
         std::to_string(s.width);
}

/// Builds a Network layer by layer, from the input's shape to the logits.
class Builder {
 public:
  Builder(Network& net, const Shape& input) : net_(net), shape_(input) {}

  bool is_sequence() const { return sequence_; }

  void add(const Layer& layer, std::size_t number) {
    lr_scale_ = lr_scale_of(layer);
    where_ = net_.spec.name + ", layer " + std::to_string(number + 1);
    NetworkLayer& out = net_.layers.emplace_back();
    out.layer = layer;
    out.in = shape_;
    out.in_sequence = sequence_;
    check_input(layer, number);
    std::visit([&](const auto& l) { shape_ = apply(l, out); }, layer);
    out.out = shape_;
    out.out_sequence = sequence_;
  }

  const Shape& shape() const { return shape_; }
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(where_ + ": " + what);
  }

  /// Checks that texts start with an embedding, and that sequences go only to layers that accept
  /// them.
  void check_input(const Layer& layer, std::size_t number) const {
    const bool words = number == 0 && net_.text.words > 0;
    const bool embedding = std::holds_alternative<Embedding>(layer);
    if (words && !embedding) fail("expected an embedding as the first layer of a model for texts");
    if (!words && embedding)
      fail(number == 0 ? "expected texts for an embedding, found " + text(shape_)
                       : "expected an embedding as the first layer only");
    if (embedding || std::holds_alternative<Activate>(layer)) return;
    const auto* dense = std::get_if<Dense>(&layer);
    const bool wants_sequence = std::holds_alternative<Recurrent>(layer) ||
                                std::holds_alternative<MeanOverTime>(layer) ||
                                (dense != nullptr && dense->per_token);
    if (wants_sequence != sequence_)
      fail(sequence_
               ? "expected lstm, gru, mean, an activation or a dense layer with per_token = "
                 "true after a sequence"
               : "expected a sequence before lstm, gru, mean and per_token, found " + text(shape_));
  }

  int windows(int size, int kernel, int stride, int pad) const {
    if (kernel < 1 || stride < 1 || pad < 0 || pad >= kernel)
      fail("expected kernel >= 1, stride >= 1 and 0 <= pad < kernel");
    if (size + 2 * pad < kernel)
      fail("expected an input of at least " + std::to_string(kernel) + " pixels a side, found " +
           text(shape_));
    return (size + 2 * pad - kernel) / stride + 1;
  }

  /// Appends a parameter tensor of layer l to the network. name: its name, by which PyTorch loads
  /// it. dims: its shape. fan_in, fan_out: numbers of inputs and outputs that a weight connects,
  /// which determine the range of its initial values.
  void add_parameter(NetworkLayer& l, const std::string& name, std::vector<int> dims, int fan_in,
                     int fan_out, bool is_bias) {
    if (!names_.insert(name).second)
      fail("expected a name that no other layer has, found '" + name + "'");
    std::size_t size = 1;
    for (const int d : dims) size *= static_cast<std::size_t>(d);
    if (l.parameter_count++ == 0) {
      l.first_parameter = net_.parameters.size();
      l.group = net_.groups++;
    }
    net_.parameters.push_back({.name = name,
                               .shape = std::move(dims),
                               .offset = net_.parameter_count,
                               .size = size,
                               .fan_in = fan_in,
                               .fan_out = fan_out,
                               .is_bias = is_bias,
                               .group = l.group,
                               .touched = size,
                               .lr_scale = lr_scale_});
    net_.parameter_count += size;
  }

  void add_weights(NetworkLayer& l, const std::string& name, std::vector<int> weight, int out,
                   int fan_in, int fan_out, bool weight_is_scale) {
    if (name.empty()) fail("expected a name");
    add_parameter(l, name + ".weight", std::move(weight), fan_in, fan_out, weight_is_scale);
    add_parameter(l, name + ".bias", {out}, fan_in, fan_out, true);
  }

  Shape apply(const Conv2d& c, NetworkLayer& l) {
    if (c.out_channels < 1) fail("expected out >= 1");
    const Shape out{c.out_channels, windows(shape_.height, c.kernel, c.stride, c.pad),
                    windows(shape_.width, c.kernel, c.stride, c.pad)};
    const int taps = c.kernel * c.kernel;
    add_weights(l, c.name, {c.out_channels, shape_.channels, c.kernel, c.kernel}, c.out_channels,
                shape_.channels * taps, c.out_channels * taps, false);
    return out;
  }

  Shape apply(const Dense& d, NetworkLayer& l) {
    if (d.out < 1) fail("expected out >= 1");
    if (d.per_token) {
      add_weights(l, d.name, {d.out, shape_.channels}, d.out, shape_.channels, d.out, false);
      return {d.out, 1, shape_.width};
    }
    add_weights(l, d.name, {d.out, shape_.size()}, d.out, shape_.size(), d.out, false);
    return {d.out, 1, 1};
  }

  Shape apply(const GroupNorm& g, NetworkLayer& l) {
    if (g.groups < 1 || shape_.channels % g.groups != 0)
      fail("expected groups that divide " + std::to_string(shape_.channels) + " channels, found " +
           std::to_string(g.groups));
    add_weights(l, g.name, {shape_.channels}, shape_.channels, 1, 1, true);
    return shape_;
  }

  template <class Pool>
  Shape apply_pool(const Pool& p) const {
    return {shape_.channels, windows(shape_.height, p.kernel, p.stride, 0),
            windows(shape_.width, p.kernel, p.stride, 0)};
  }
  Shape apply(const MaxPool2d& p, NetworkLayer&) { return apply_pool(p); }
  Shape apply(const AvgPool2d& p, NetworkLayer&) { return apply_pool(p); }
  Shape apply(const Activate&, NetworkLayer&) { return shape_; }

  Shape apply(const Embedding& e, NetworkLayer& l) {
    const TextShape& text = net_.text;
    sequence_ = true;
    if (!e.trainable) {
      if (text.columns == 0)
        fail("the data has no word vectors for a frozen embedding: give trainable = true");
      return {text.columns, 1, shape_.width};
    }
    if (e.name.empty()) fail("expected a name");
    const int columns = e.columns > 0 ? e.columns : text.columns;
    const int rows = e.rows > 0 ? std::min(e.rows, text.words) : text.words;
    if (columns == 0) fail("the data has no word vectors: give the embedding's 'columns'");
    if (rows < text.words && text.columns > 0 && text.columns != columns)
      fail("expected the " + std::to_string(text.columns) +
           " columns of the data's vectors, which the words from 'trainable_rows' on keep, found " +
           std::to_string(columns));
    add_parameter(l, e.name + ".weight", {rows, columns}, columns, columns, false);
    ParameterTensor& weight = net_.parameters.back();
    weight.touched = std::min(
        weight.size, static_cast<std::size_t>(shape_.width) * static_cast<std::size_t>(columns));
    return {columns, 1, shape_.width};
  }

  Shape apply(const Recurrent& r, NetworkLayer& l) {
    if (r.hidden < 1) fail("expected hidden >= 1");
    if (r.name.empty()) fail("expected a name");
    const int in = shape_.channels;
    const int rows = r.gates() * r.hidden;
    for (int d = 0; d < r.directions(); ++d) {
      const std::string suffix = d == 0 ? "_l0" : "_l0_reverse";
      add_parameter(l, r.name + ".weight_ih" + suffix, {rows, in}, in, rows, false);
      add_parameter(l, r.name + ".weight_hh" + suffix, {rows, r.hidden}, r.hidden, rows, false);
      add_parameter(l, r.name + ".bias_ih" + suffix, {rows}, in, rows, true);
      const std::string second = r.name + ".bias_hh" + suffix;
      if (r.cell == Cell::gru)
        add_parameter(l, second, {rows}, r.hidden, rows, true);
      else
        net_.zeros.push_back(
            {.name = second, .shape = {rows}, .size = static_cast<std::size_t>(rows)});
    }
    sequence_ = r.output == RecurrentOutput::sequence;
    return {r.directions() * r.hidden, 1, sequence_ ? shape_.width : 1};
  }

  Shape apply(const MeanOverTime&, NetworkLayer&) {
    sequence_ = false;
    return {shape_.channels, 1, 1};
  }

  Network& net_;
  Shape shape_;
  bool sequence_ = false;
  float lr_scale_ = 1.0f;  ///< learning-rate factor of the layer that is being added
  std::string where_;
  std::set<std::string> names_;
};

}  // namespace

float lr_scale_of(const Layer& layer) {
  return std::visit(
      [](const auto& l) {
        if constexpr (requires { l.lr_scale; })
          return l.lr_scale;
        else
          return 1.0f;
      },
      layer);
}

Network build_network(const ModelSpec& spec, const Shape& input, int classes,
                      const TextShape& text_shape) {
  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument(spec.name + ": " + what);
  };
  if (input.channels < 1 || input.height < 1 || input.width < 1)
    fail("expected a non-empty input, found " + text(input));
  const bool target = has_target(spec.loss);
  if (target ? classes != 1 : classes < 2 || classes > 256)
    fail(target ? "this loss needs a numeric target, but the data has classes"
                : "expected 2 to 256 classes, found " + std::to_string(classes));
  if (target && !(spec.huber > 0.0f && spec.huber < INFINITY))
    fail("expected a width of the Huber loss that is finite and > 0");
  if (spec.layers.empty()) fail("expected at least one layer");
  if (spec.loss != Loss::softmax_cross_entropy && !target && classes != 2)
    fail("this loss is for 2 classes, but the data has " + std::to_string(classes));

  Network net;
  net.spec = spec;
  net.input = input;
  net.text = text_shape;
  net.classes = classes;
  net.outputs = spec.loss == Loss::softmax_cross_entropy ? classes : 1;
  Builder builder(net, input);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) builder.add(spec.layers[i], i);
  if (builder.is_sequence() || builder.shape() != Shape{net.outputs, 1, 1})
    fail("expected the last layer to give " + std::to_string(net.outputs) + " outputs, found " +
         text(builder.shape()));
  if (net.groups == 0) fail("expected at least one layer with parameters");
  return net;
}

}  // namespace cudp

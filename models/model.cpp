#include "models/model.hpp"

#include <set>
#include <stdexcept>

namespace cudp {
namespace {

std::string text(const Shape& s) {
  return std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" +
         std::to_string(s.width);
}

/// Walks the layers once, from the input's shape to the logits.
class Builder {
 public:
  Builder(Network& net, const Shape& input) : net_(net), shape_(input) {}

  void add(const Layer& layer, std::size_t number) {
    where_ = net_.spec.name + ", layer " + std::to_string(number + 1);
    NetworkLayer& out = net_.layers.emplace_back();
    out.layer = layer;
    out.in = shape_;
    std::visit([&](const auto& l) { shape_ = apply(l, out); }, layer);
    out.out = shape_;
  }

  const Shape& shape() const { return shape_; }
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(where_ + ": " + what);
  }

  int windows(int size, int kernel, int stride, int pad) const {
    if (kernel < 1 || stride < 1 || pad < 0 || pad >= kernel)
      fail("expected kernel >= 1, stride >= 1 and 0 <= pad < kernel");
    if (size + 2 * pad < kernel)
      fail("expected an input of at least " + std::to_string(kernel) + " pixels a side, found " +
           text(shape_));
    return (size + 2 * pad - kernel) / stride + 1;
  }

  /// The next tensor of layer l.
  void add_parameter(NetworkLayer& l, const std::string& name, std::vector<int> dims, int fan_in,
                     int fan_out, bool is_bias) {
    if (!names_.insert(name).second) fail("expected a name not yet used, found '" + name + "'");
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
                               .group = l.group});
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

  Network& net_;
  Shape shape_;
  std::string where_;
  std::set<std::string> names_;
};

}  // namespace

Network build_network(const ModelSpec& spec, const Shape& input, int classes) {
  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument(spec.name + ": " + what);
  };
  if (input.channels < 1 || input.height < 1 || input.width < 1)
    fail("expected a non-empty input, found " + text(input));
  if (classes < 2 || classes > 256)
    fail("expected 2 to 256 classes, found " + std::to_string(classes));
  if (spec.layers.empty()) fail("expected at least one layer");
  if (spec.loss != Loss::softmax_cross_entropy && classes != 2)
    fail("this loss separates 2 classes, the data has " + std::to_string(classes));

  Network net;
  net.spec = spec;
  net.input = input;
  net.classes = classes;
  net.outputs = spec.loss == Loss::softmax_cross_entropy ? classes : 1;
  Builder builder(net, input);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) builder.add(spec.layers[i], i);
  if (builder.shape() != Shape{net.outputs, 1, 1})
    fail("expected the last layer to give " + std::to_string(net.outputs) + " outputs, found " +
         text(builder.shape()));
  if (net.groups == 0) fail("expected at least one layer with parameters");
  return net;
}

}  // namespace cudp

#pragma once
// Random models in the form of layer descriptions (models/README.md), as a user would write them.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include "runtime/data/dataset.hpp"
#include "tests/support/reference/network.hpp"

namespace cudp::cases {

struct RandomModel {
  std::string text;  ///< TOML
  Shape input;
  int classes;
  bool as_bytes;  ///< whether examples are bytes; otherwise floats
};

/// Writes a random model layer by layer, with sizes that fit together. It is small, so that the
/// emulator takes less than a second.
class RandomModelWriter {
 public:
  explicit RandomModelWriter(unsigned seed) : random_(seed) { random_.discard(10); }

  RandomModel write() {
    const bool one_logit = one_of(2);
    classes_ = one_logit ? 2 : 3 + below(3);
    outputs_ = one_logit ? 1 : classes_;
    if (one_of(4))
      shape_ = {1 + below(40), 1, 1};
    else
      shape_ = {1 + below(3) * below(2), 4 + below(7), 4 + below(7)};
    RandomModel m{
        .text = "name = \"random\"\n", .input = shape_, .classes = classes_, .as_bytes = one_of(2)};
    if (one_logit && one_of(2)) m.text += "loss = \"hinge\"\n";
    static constexpr const char* kFunctions[] = {"relu", "tanh", "tempered_sigmoid"};
    m.text += std::string("activation = \"") + kFunctions[below(3)] + "\"\nlayers = [\n";
    for (int left = 3 + below(6); left > 0; --left) hidden();
    last();
    return m.text += layers_ + "]\n", m;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_of(int n) { return below(n) == 0; }

  void add(const std::string& type, const std::string& keys = "") {
    layers_ += "  { type = \"" + type + "\"" + keys + " },\n";
  }
  static std::string key(const char* name, int value) {
    return std::string(", ") + name + " = " + std::to_string(value);
  }
  /// Returns the text of a key, or sometimes nothing if the value is the default.
  std::string key(const char* name, int value, int fallback) {
    return value == fallback && one_of(2) ? "" : key(name, value);
  }
  std::string new_name() { return ", name = \"layer" + std::to_string(++names_) + "\""; }
  /// Returns a width: mostly small, sometimes larger than a tile or a warp.
  int width() { return one_of(5) ? 17 + below(50) : 1 + below(16); }
  int shorter_side() const { return std::min(shape_.height, shape_.width); }

  void hidden() {
    const int kind = below(10);
    if (kind < 3 && convolution(width())) return;
    if (kind == 3 && (shape_.height == 1 || one_of(3))) return dense(width());
    if (kind == 4 && pool("maxpool")) return;
    if (kind == 5 && pool("avgpool")) return;
    if (kind > 5 && kind < 8 && norm()) return;
    function();
  }

  bool convolution(int out) {
    const int pad = shape_.height > 1 && one_of(2) ? 0 : below(3);
    const int kernel = pad + 1 + below(std::min(7, shorter_side() + 2 * pad) - pad);
    const int stride = one_of(2) ? 1 : 1 + below(3);
    const Shape to{out, (shape_.height + 2 * pad - kernel) / stride + 1,
                   (shape_.width + 2 * pad - kernel) / stride + 1};
    if (to.size() > 1500 || out * shape_.channels * kernel * kernel > 15'000) return false;
    add("conv2d", new_name() + key("out", out) + key("kernel", kernel) + key("stride", stride, 1) +
                      key("pad", pad, 0));
    shape_ = to;
    normed_ = false;
    return true;
  }

  void dense(int out) {
    add("dense", new_name() + key("out", out));
    shape_ = {out, 1, 1};
    normed_ = false;
  }

  bool pool(const char* type) {
    const int kernel = 1 + below(3);
    const int stride = 1 + below(3);
    if (shape_.height == 1 || shorter_side() < kernel) return false;
    add(type, key("kernel", kernel, 2) + key("stride", stride, 2));
    shape_ = {shape_.channels, (shape_.height - kernel) / stride + 1,
              (shape_.width - kernel) / stride + 1};
    return true;
  }

  /// Adds a normalisation, except of groups of very few numbers (of two, the normalised numbers are
  /// always 1 and -1) and of normalised values: the gradient would then be a difference of which
  /// only rounding errors remain.
  bool norm() {
    const int groups = 1 + below(shape_.channels);
    if (normed_ || shape_.channels % groups != 0 || shape_.size() / groups < 8) return false;
    normed_ = true;
    add("groupnorm", new_name() + key("groups", groups) + (one_of(2) ? ", epsilon = 1e-3" : ""));
    return true;
  }

  void function() {
    switch (below(6)) {
      case 0:
      case 1:
        return add("relu");
      case 2:
        return add("tanh");
      case 3:
        return add("tempered_sigmoid");
      case 4:
        return add("tempered_sigmoid", ", scale = 1.5, temperature = 1.25, offset = 0.4");
      default:
        return add("activation");
    }
  }

  void last() {
    if (shape_.height == shape_.width && shape_.height <= 5 && one_of(2)) {
      add("conv2d", new_name() + key("out", outputs_) + key("kernel", shape_.height));
    } else {
      add("dense", new_name() + ", out = \"outputs\"");
    }
  }

  std::mt19937 random_;
  int classes_ = 0;
  int outputs_ = 0;
  Shape shape_;
  std::string layers_;
  /// Whether values were normalised since the last convolution or dense layer.
  bool normed_ = false;
  int names_ = 0;
};

inline RandomModel random_model(unsigned seed) { return RandomModelWriter(seed).write(); }

/// Returns whether rounding in float32 could change more of an example's gradient than its last
/// digits: if a number is near the corner of ReLU or hinge, if two numbers compete for a maximum,
/// or if the spread of a group is small compared with its mean. Exact zeros and exact ties are
/// fine, because every engine must break them alike.
inline bool is_delicate(const Network& net, const reference::Values& theta,
                        const reference::Input& x) {
  using reference::Values;
  constexpr double kMargin = 3e-5;
  std::vector<Values> inputs;
  const Values z = reference::logits(net, theta, x, &inputs);
  bool delicate = false;
  const auto near = [&](double gap, double size) {
    delicate = delicate || (gap != 0.0 && std::abs(gap) <= kMargin * size);
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const NetworkLayer& l = net.layers[k];
    const Values& in = inputs[k];
    double size = 0.0;
    for (const double v : in) size = std::fmax(size, std::abs(v));
    if (const auto* f = std::get_if<Activate>(&l.layer); f && f->kind == Activation::relu)
      for (const double v : in) near(v, size);
    if (const auto* pool = std::get_if<MaxPool2d>(&l.layer))
      reference::for_each_window(*pool, l, [&](std::size_t, const auto& window) {
        const double top = in[reference::largest(in, window)];
        for (const std::size_t i : window) near(top - in[i], size);
      });
    if (const auto* n = std::get_if<GroupNorm>(&l.layer)) {
      const std::size_t count = in.size() / static_cast<std::size_t>(n->groups);
      for (std::size_t first = 0; first < in.size(); first += count) {
        const auto m = reference::moments(in, first, count, n->epsilon);
        delicate = delicate || std::abs(m.mean) * m.inverse_std > 30.0;
      }
    }
  }
  if (net.spec.loss == Loss::hinge) {
    near(1.0 - z[0], 1.0);
    near(1.0 + z[0], 1.0);
  }
  return delicate;
}

}  // namespace cudp::cases

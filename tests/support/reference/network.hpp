#pragma once
// Oracle for engines: one example at a time, in double, in the most literal loops. It shares the
// description of a network with the product, but no arithmetic.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <variant>
#include <vector>

#include "tests/support/reference/layer.hpp"
#include "tests/support/reference/sequence.hpp"

namespace cudp::reference {

inline LayerParameters parameters_of(const Network& net, const NetworkLayer& l, const Input& input,
                                     const double* theta, double* gradient) {
  LayerParameters p{.length = input.length, .vectors = input.vectors};
  if (l.parameter_count == 0) return p;
  const std::size_t w = net.tensor(l, 0).offset;
  const std::size_t b = w + net.tensor(l, 0).size;
  p.weight = theta + w;
  p.bias = theta + b;
  p.weight_gradient = gradient ? gradient + w : nullptr;
  p.bias_gradient = gradient ? gradient + b : nullptr;
  return p;
}

// Each layer is a pair: forward gives the output; backward adds the parameters' gradients and gives
// the input's gradient, from the same input and the output's gradient.

/// Calls visit(out index, weight index, in index) for every product of a convolution.
template <class Visit>
void for_each_tap(const Conv2d& c, const NetworkLayer& l, Visit visit) {
  for (int o = 0; o < l.out.channels; ++o)
    for (int y = 0; y < l.out.height; ++y)
      for (int x = 0; x < l.out.width; ++x)
        for (int i = 0; i < l.in.channels; ++i)
          for (int ky = 0; ky < c.kernel; ++ky)
            for (int kx = 0; kx < c.kernel; ++kx) {
              const int iy = y * c.stride - c.pad + ky;
              const int ix = x * c.stride - c.pad + kx;
              if (iy < 0 || iy >= l.in.height || ix < 0 || ix >= l.in.width) continue;
              const int tap = ((o * l.in.channels + i) * c.kernel + ky) * c.kernel + kx;
              visit(index(l.out, o, y, x), static_cast<std::size_t>(tap), index(l.in, i, iy, ix));
            }
}

inline Values forward(const Conv2d& c, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out(l.out.size());
  for (int o = 0; o < l.out.channels; ++o)
    for (int y = 0; y < l.out.height; ++y)
      for (int x = 0; x < l.out.width; ++x) out[index(l.out, o, y, x)] = p.bias[o];
  for_each_tap(c, l, [&](std::size_t to, std::size_t tap, std::size_t from) {
    out[to] += p.weight[tap] * in[from];
  });
  return out;
}

inline Values backward(const Conv2d& c, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(l.in.size(), 0.0);
  for (int o = 0; o < l.out.channels; ++o)
    for (int y = 0; y < l.out.height; ++y)
      for (int x = 0; x < l.out.width; ++x)
        p.bias_gradient[o] += out_gradient[index(l.out, o, y, x)];
  for_each_tap(c, l, [&](std::size_t to, std::size_t tap, std::size_t from) {
    p.weight_gradient[tap] += out_gradient[to] * in[from];
    in_gradient[from] += out_gradient[to] * p.weight[tap];
  });
  return in_gradient;
}

/// Calls visit(out index, weight index, in index) for every product of a dense layer; one per token
/// takes them at every time of the text.
template <class Visit>
void for_each_product(const Dense& d, const NetworkLayer& l, int length, Visit visit) {
  const int times = d.per_token ? length : 1;
  const std::size_t inputs = d.per_token ? l.in.channels : l.in.size();
  for (int t = 0; t < times; ++t)
    for (int o = 0; o < l.out.channels; ++o)
      for (std::size_t i = 0; i < inputs; ++i)
        visit(index(l.out, o, 0, t), o * inputs + i,
              d.per_token ? index(l.in, static_cast<int>(i), 0, t) : i);
}

/// Calls visit(out index, bias index) for every bias of a dense layer.
template <class Visit>
void for_each_bias(const Dense& d, const NetworkLayer& l, int length, Visit visit) {
  const int times = d.per_token ? length : 1;
  for (int t = 0; t < times; ++t)
    for (int o = 0; o < l.out.channels; ++o) visit(index(l.out, o, 0, t), o);
}

inline Values forward(const Dense& d, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out(l.out.size(), 0.0);
  for_each_bias(d, l, p.length, [&](std::size_t to, int bias) { out[to] = p.bias[bias]; });
  for_each_product(d, l, p.length, [&](std::size_t to, std::size_t weight, std::size_t from) {
    out[to] += p.weight[weight] * in[from];
  });
  return out;
}

inline Values backward(const Dense& d, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(l.in.size(), 0.0);
  for_each_bias(d, l, p.length,
                [&](std::size_t to, int bias) { p.bias_gradient[bias] += out_gradient[to]; });
  for_each_product(d, l, p.length, [&](std::size_t to, std::size_t weight, std::size_t from) {
    p.weight_gradient[weight] += out_gradient[to] * in[from];
    in_gradient[from] += out_gradient[to] * p.weight[weight];
  });
  return in_gradient;
}

/// Calls visit(out index, indices of the window's inputs, row by row) for every window.
template <class Pool, class Visit>
void for_each_window(const Pool& pool, const NetworkLayer& l, Visit visit) {
  std::vector<std::size_t> window;
  for (int c = 0; c < l.out.channels; ++c)
    for (int y = 0; y < l.out.height; ++y)
      for (int x = 0; x < l.out.width; ++x) {
        window.clear();
        for (int ky = 0; ky < pool.kernel; ++ky)
          for (int kx = 0; kx < pool.kernel; ++kx)
            window.push_back(index(l.in, c, y * pool.stride + ky, x * pool.stride + kx));
        visit(index(l.out, c, y, x), window);
      }
}

/// Returns the index of the maximum; of equal maxima the first, as PyTorch does.
inline std::size_t largest(const Values& in, const std::vector<std::size_t>& window) {
  std::size_t best = window[0];
  for (const std::size_t i : window)
    if (in[i] > in[best]) best = i;
  return best;
}

inline Values forward(const MaxPool2d& pool, const NetworkLayer& l, const LayerParameters&,
                      const Values& in) {
  Values out(l.out.size());
  for_each_window(pool, l, [&](std::size_t to, const auto& w) { out[to] = in[largest(in, w)]; });
  return out;
}

inline Values backward(const MaxPool2d& pool, const NetworkLayer& l, const LayerParameters&,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(l.in.size(), 0.0);
  for_each_window(pool, l, [&](std::size_t to, const auto& w) {
    in_gradient[largest(in, w)] += out_gradient[to];
  });
  return in_gradient;
}

inline Values forward(const AvgPool2d& pool, const NetworkLayer& l, const LayerParameters&,
                      const Values& in) {
  Values out(l.out.size(), 0.0);
  for_each_window(pool, l, [&](std::size_t to, const auto& w) {
    for (const std::size_t from : w) out[to] += in[from] / static_cast<double>(w.size());
  });
  return out;
}

inline Values backward(const AvgPool2d& pool, const NetworkLayer& l, const LayerParameters&,
                       const Values&, const Values& out_gradient) {
  Values in_gradient(l.in.size(), 0.0);
  for_each_window(pool, l, [&](std::size_t to, const auto& w) {
    for (const std::size_t from : w)
      in_gradient[from] += out_gradient[to] / static_cast<double>(w.size());
  });
  return in_gradient;
}

/// Mean and 1 / standard deviation of one group: `count` values from index `first` on.
struct GroupMoments {
  double mean;
  double inverse_std;
};
inline GroupMoments moments(const Values& in, std::size_t first, std::size_t count,
                            double epsilon) {
  double mean = 0.0;
  for (std::size_t i = 0; i < count; ++i) mean += in[first + i] / static_cast<double>(count);
  double variance = 0.0;
  for (std::size_t i = 0; i < count; ++i)
    variance += (in[first + i] - mean) * (in[first + i] - mean) / static_cast<double>(count);
  return {mean, 1.0 / std::sqrt(variance + epsilon)};
}

inline Values forward(const GroupNorm& g, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out(in.size());
  const std::size_t pixels = static_cast<std::size_t>(l.in.height) * l.in.width;
  const std::size_t count = in.size() / g.groups;
  for (std::size_t first = 0; first < in.size(); first += count) {
    const GroupMoments m = moments(in, first, count, g.epsilon);
    for (std::size_t i = first; i < first + count; ++i)
      out[i] = p.weight[i / pixels] * (in[i] - m.mean) * m.inverse_std + p.bias[i / pixels];
  }
  return out;
}

inline Values backward(const GroupNorm& g, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(in.size());
  const std::size_t pixels = static_cast<std::size_t>(l.in.height) * l.in.width;
  const std::size_t count = in.size() / g.groups;
  for (std::size_t first = 0; first < in.size(); first += count) {
    const GroupMoments m = moments(in, first, count, g.epsilon);
    // y = (x - mean) / std has the Jacobian (I - 11'/n - y y'/n) / std.
    double mean_dy = 0.0;
    double mean_dy_y = 0.0;
    for (std::size_t i = first; i < first + count; ++i) {
      const double y = (in[i] - m.mean) * m.inverse_std;
      const double dy = out_gradient[i] * p.weight[i / pixels];
      p.weight_gradient[i / pixels] += out_gradient[i] * y;
      p.bias_gradient[i / pixels] += out_gradient[i];
      mean_dy += dy / static_cast<double>(count);
      mean_dy_y += dy * y / static_cast<double>(count);
    }
    for (std::size_t i = first; i < first + count; ++i) {
      const double y = (in[i] - m.mean) * m.inverse_std;
      const double dy = out_gradient[i] * p.weight[i / pixels];
      in_gradient[i] = (dy - mean_dy - y * mean_dy_y) * m.inverse_std;
    }
  }
  return in_gradient;
}

inline double activate(const Activate& a, double x) {
  if (a.kind == Activation::relu) return x > 0.0 ? x : 0.0;
  if (a.kind == Activation::tanh) return std::tanh(x);
  return a.scale / (1.0 + std::exp(-static_cast<double>(a.temperature) * x)) - a.offset;
}

inline double activation_derivative(const Activate& a, double x) {
  if (a.kind == Activation::relu) return x > 0.0 ? 1.0 : 0.0;
  if (a.kind == Activation::tanh) return 1.0 - std::tanh(x) * std::tanh(x);
  const double s = 1.0 / (1.0 + std::exp(-static_cast<double>(a.temperature) * x));
  return a.scale * a.temperature * s * (1.0 - s);
}

inline Values forward(const Activate& a, const NetworkLayer&, const LayerParameters&,
                      const Values& in) {
  Values out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = activate(a, in[i]);
  return out;
}

inline Values backward(const Activate& a, const NetworkLayer&, const LayerParameters&,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    in_gradient[i] = out_gradient[i] * activation_derivative(a, in[i]);
  return in_gradient;
}

/// Returns the loss of one example's logits; writes its derivative with respect to each logit
/// unless `gradient` is null. answer: the label, or the target. huber: distance at which that loss
/// becomes linear.
inline double loss(Loss kind, const Values& z, double answer, Values* gradient,
                   double huber = 1.0) {
  if (kind == Loss::squared || kind == Loss::huber) {
    const double error = z[0] - answer;
    const bool linear = kind == Loss::huber && std::fabs(error) > huber;
    if (gradient) *gradient = {linear ? std::copysign(huber, error) : error};
    return linear ? huber * (std::fabs(error) - 0.5 * huber) : 0.5 * error * error;
  }
  const int label = static_cast<int>(answer);
  if (kind == Loss::softmax_cross_entropy) {
    const double top = *std::max_element(z.begin(), z.end());
    double sum = 0.0;
    for (const double v : z) sum += std::exp(v - top);
    if (gradient) {
      gradient->resize(z.size());
      for (std::size_t i = 0; i < z.size(); ++i)
        (*gradient)[i] = std::exp(z[i] - top) / sum - (static_cast<int>(i) == label ? 1.0 : 0.0);
    }
    return std::log(sum) + top - z[label];
  }
  const double y = 2.0 * label - 1.0;
  const double margin = y * z[0];
  if (kind == Loss::hinge) {
    if (gradient) *gradient = {margin < 1.0 ? -y : 0.0};
    return std::fmax(0.0, 1.0 - margin);
  }
  if (gradient) *gradient = {-y / (1.0 + std::exp(margin))};
  return margin > 0.0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

/// Returns the label or the target of an example, with which its loss compares the output.
inline double answer_of(const Dataset& data, std::size_t i) {
  return data.has_targets() ? static_cast<double>(data.targets[i]) : data.labels[i];
}

inline int predicted_class(const Network& net, const Values& z) {
  if (net.outputs == 1) return z[0] > 0.0 ? 1 : 0;
  return static_cast<int>(std::max_element(z.begin(), z.end()) - z.begin());
}

/// Writes the dense row of example i of a table to x [features], which must be zeros. Reads its
/// record (kernels/common/coded_rows.hpp) byte by byte.
inline void fill_of_record(const Dataset& data, std::size_t i, Values& x) {
  const RowLayout& layout = *data.layout;
  const auto row_bytes = data.coded.size() / data.labels.size();
  const std::uint8_t* at = data.coded.data() + i * row_bytes;
  for (const std::int32_t feature : layout.number_feature) {
    float number = 0.0f;
    std::memcpy(&number, at, sizeof number);
    x[static_cast<std::size_t>(feature)] = number;
    at += sizeof number;
  }
  at += sizeof(float);  // |x|^2
  const std::size_t bytes = x.size() < 256 ? 1 : x.size() < 65536 ? 2 : 4;
  for (int k = 0; k < layout.codes; ++k) {
    std::size_t code = 0;
    for (std::size_t b = 0; b < bytes; ++b) code |= std::size_t{*at++} << (8 * b);
    if (code < x.size()) x[code] = 1.0;
  }
}

/// Returns example i, as an engine sees it.
inline Input features(const Dataset& data, std::size_t i) {
  const auto d = static_cast<std::size_t>(data.shape.size());
  Input x(Values(d, 0.0));
  if (data.is_text()) {
    x.length = data.lengths[i];
    x.vectors = data.vectors.get();
    for (int t = 0; t < x.length; ++t) x.values[t] = data.tokens[i * d + t];
    return x;
  }
  if (!data.coded.empty()) {
    fill_of_record(data, i, x.values);
    return x;
  }
  for (std::size_t j = 0; j < d; ++j)
    x.values[j] = data.is_bytes()
                      ? static_cast<double>(data.scale) * data.bytes[i * d + j] + data.shift
                      : data.floats[i * d + j];
  return x;
}

/// Returns the trained parameters, [d], followed by the frozen ones, at the offsets of the tensors.
inline Values with_frozen(const Network& net, Values theta) {
  if (net.frozen_values)
    theta.insert(theta.end(), net.frozen_values->begin(), net.frozen_values->end());
  return theta;
}

/// Returns the logits [outputs] at theta [d]. `trace`, unless null, receives every layer's input.
inline Values logits(const Network& net, const Values& theta, const Input& input,
                     std::vector<Values>* trace = nullptr) {
  const Values all = with_frozen(net, theta);
  Values x = input.values;
  for (const NetworkLayer& l : net.layers) {
    if (trace) trace->push_back(x);
    const LayerParameters p = parameters_of(net, l, input, all.data(), nullptr);
    x = std::visit([&](const auto& layer) { return forward(layer, l, p, x); }, l.layer);
  }
  return x;
}

/// Loss of one example and its gradient [d].
struct ExampleGradient {
  double loss = 0.0;
  Values gradient;
};
inline ExampleGradient gradient(const Network& net, const Values& theta, const Input& input,
                                double answer) {
  std::vector<Values> inputs;
  const Values z = logits(net, theta, input, &inputs);
  ExampleGradient out;
  const Values all = with_frozen(net, theta);
  out.gradient.assign(all.size(), 0.0);  // with those of frozen layers, which are left out below
  Values dx;
  out.loss = loss(net.spec.loss, z, answer, &dx, net.spec.huber);
  for (std::size_t k = net.layers.size(); k-- > 0;) {
    const NetworkLayer& l = net.layers[k];
    const LayerParameters p = parameters_of(net, l, input, all.data(), out.gradient.data());
    dx = std::visit([&](const auto& layer) { return backward(layer, l, p, inputs[k], dx); },
                    l.layer);
  }
  out.gradient.resize(net.parameter_count);
  return out;
}

/// Returns the squared norm of the gradient of each parametric layer, [groups].
inline Values squared_norms(const Network& net, const Values& gradient) {
  Values squares(net.groups, 0.0);
  for (const ParameterTensor& t : net.parameters)
    for (std::size_t j = 0; j < t.size; ++j)
      squares[t.group] += gradient[t.offset + j] * gradient[t.offset + j];
  return squares;
}

}  // namespace cudp::reference

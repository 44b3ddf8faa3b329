#pragma once
// The oracle's layers for texts. A sequence is [channels][1][T]; nothing beyond a text's length is
// read.
#include <array>
#include <cmath>

#include "tests/support/reference/layer.hpp"

namespace cudp::reference {

// --- Embedding ---

inline Values forward(const Embedding& e, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out(l.out.size(), 0.0);
  for (int t = 0; t < p.length; ++t) {
    const int word = static_cast<int>(in[t]);
    const bool trained = e.trainable && (e.rows == 0 || word < e.rows);
    for (int c = 0; c < l.out.channels; ++c) {
      const std::size_t at = static_cast<std::size_t>(word) * l.out.channels + c;
      if (trained)
        out[index(l.out, c, 0, t)] = p.weight[at];
      else if (p.vectors != nullptr)
        out[index(l.out, c, 0, t)] = p.vectors->values[at];
    }
  }
  return out;
}

inline Values backward(const Embedding& e, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  for (int t = 0; t < p.length; ++t) {
    const int word = static_cast<int>(in[t]);
    if (!e.trainable || (e.rows > 0 && word >= e.rows)) continue;
    for (int c = 0; c < l.out.channels; ++c)
      p.weight_gradient[static_cast<std::size_t>(word) * l.out.channels + c] +=
          out_gradient[index(l.out, c, 0, t)];
  }
  return Values(l.in.size(), 0.0);
}

// --- MeanOverTime ---

inline Values plain_mean(const NetworkLayer& l, const LayerParameters& p, const Values& in) {
  Values out(l.out.size(), 0.0);
  for (int c = 0; c < l.in.channels; ++c)
    for (int t = 0; t < p.length; ++t) out[c] += in[index(l.in, c, 0, t)] / p.length;
  return out;
}
inline double norm_of(const Values& v) {
  double square = 0.0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

inline Values forward(const MeanOverTime& m, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out = plain_mean(l, p, in);
  const double norm = norm_of(out);
  if (m.unit && norm > 0.0)
    for (double& x : out) x /= norm;
  return out;
}

/// d(m / |m|) = (I - m m^T / |m|^2) / |m|
inline Values backward(const MeanOverTime& m, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  Values of_mean = out_gradient;
  const Values mean = plain_mean(l, p, in);
  const double norm = norm_of(mean);
  if (m.unit && norm > 0.0) {
    double along = 0.0;
    for (std::size_t c = 0; c < mean.size(); ++c) along += out_gradient[c] * mean[c] / norm;
    for (std::size_t c = 0; c < mean.size(); ++c)
      of_mean[c] = (out_gradient[c] - along * mean[c] / norm) / norm;
  }
  Values in_gradient(l.in.size(), 0.0);
  for (int c = 0; c < l.in.channels; ++c)
    for (int t = 0; t < p.length; ++t) in_gradient[index(l.in, c, 0, t)] = of_mean[c] / p.length;
  return in_gradient;
}

// --- Recurrent ---

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// The tensors of one direction, as torch.nn.LSTM and GRU have them: offsets from the layer's
/// first.
struct RecurrentTensors {
  std::size_t weight_ih, weight_hh, bias_ih, bias_hh;
};
inline RecurrentTensors recurrent_tensors(const Recurrent& r, int in, int direction) {
  const std::size_t rows = static_cast<std::size_t>(r.gates()) * r.hidden;
  const std::size_t biases = r.cell == Cell::gru ? 2 * rows : rows;
  const std::size_t first = direction * (rows * (in + r.hidden) + biases);
  const std::size_t bias = first + rows * (in + r.hidden);
  return {first, first + rows * in, bias, bias + rows};
}

/// One step of one direction. Gates in PyTorch's order: i, f, g, o, or r, z, n.
struct RecurrentStep {
  int time;
  Values x, h_before, c_before, h, c;
  std::array<Values, 4> gate;
  Values reset_product;  ///< W_hn h + b_hn; for a GRU only
};

/// Returns row `row` of W x + b of one gate.
inline double product(const double* w, const double* b, int row, const Values& x) {
  double sum = b != nullptr ? b[row] : 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += w[row * x.size() + i] * x[i];
  return sum;
}

inline void take_step(const Recurrent& r, const LayerParameters& p, const RecurrentTensors& at,
                      RecurrentStep& s) {
  const int n = r.hidden;
  for (Values& g : s.gate) g.resize(n);
  s.h.resize(n);
  s.c.resize(n);
  s.reset_product.resize(n);
  const auto input = [&](int gate, int j) {
    return product(p.weight + at.weight_ih, p.weight + at.bias_ih, gate * n + j, s.x);
  };
  const auto state = [&](int gate, int j) {
    return product(p.weight + at.weight_hh, r.cell == Cell::gru ? p.weight + at.bias_hh : nullptr,
                   gate * n + j, s.h_before);
  };
  for (int j = 0; j < n; ++j) {
    if (r.cell == Cell::lstm) {
      s.gate[0][j] = sigmoid(input(0, j) + state(0, j));
      s.gate[1][j] = sigmoid(input(1, j) + state(1, j));
      s.gate[2][j] = std::tanh(input(2, j) + state(2, j));
      s.gate[3][j] = sigmoid(input(3, j) + state(3, j));
      s.c[j] = s.gate[1][j] * s.c_before[j] + s.gate[0][j] * s.gate[2][j];
      s.h[j] = s.gate[3][j] * std::tanh(s.c[j]);
    } else {
      s.gate[0][j] = sigmoid(input(0, j) + state(0, j));
      s.gate[1][j] = sigmoid(input(1, j) + state(1, j));
      s.reset_product[j] = state(2, j);
      s.gate[2][j] = std::tanh(input(2, j) + s.gate[0][j] * s.reset_product[j]);
      s.h[j] = (1.0 - s.gate[1][j]) * s.gate[2][j] + s.gate[1][j] * s.h_before[j];
    }
  }
}

/// Computes all steps of one direction, in their order.
inline std::vector<RecurrentStep> take_steps(const Recurrent& r, const NetworkLayer& l,
                                             const LayerParameters& p, const Values& in,
                                             int direction) {
  const RecurrentTensors at = recurrent_tensors(r, l.in.channels, direction);
  std::vector<RecurrentStep> steps(p.length);
  Values h(r.hidden, 0.0);
  Values c(r.hidden, 0.0);
  for (int k = 0; k < p.length; ++k) {
    RecurrentStep& s = steps[k];
    s.time = direction == 0 ? k : p.length - 1 - k;
    for (int i = 0; i < l.in.channels; ++i) s.x.push_back(in[index(l.in, i, 0, s.time)]);
    s.h_before = h;
    s.c_before = c;
    take_step(r, p, at, s);
    h = s.h;
    c = s.c;
  }
  return steps;
}

/// Calls visit(step, index in the layer's output, weight) for every number of the output that step
/// k of n contributes to.
template <class Visit>
void for_each_output(const Recurrent& r, const NetworkLayer& l, int k, int n, int time,
                     int direction, Visit visit) {
  if (r.output == RecurrentOutput::last && k != n - 1) return;
  for (int j = 0; j < r.hidden; ++j) {
    const int t = r.output == RecurrentOutput::sequence ? time : 0;
    visit(j, index(l.out, direction * r.hidden + j, 0, t),
          r.output == RecurrentOutput::mean ? 1.0 / n : 1.0);
  }
}

inline Values forward(const Recurrent& r, const NetworkLayer& l, const LayerParameters& p,
                      const Values& in) {
  Values out(l.out.size(), 0.0);
  for (int d = 0; d < r.directions(); ++d) {
    const auto steps = take_steps(r, l, p, in, d);
    for (int k = 0; k < p.length; ++k)
      for_each_output(
          r, l, k, p.length, steps[k].time, d,
          [&](int j, std::size_t to, double weight) { out[to] += weight * steps[k].h[j]; });
  }
  return out;
}

/// Backward pass through one product of a gate: adds the parameters' gradients, and the gradient of
/// the input.
inline void product_backward(const double* w, double* w_gradient, double* b_gradient, int row,
                             double delta, const Values& x, Values& x_gradient) {
  if (b_gradient != nullptr) b_gradient[row] += delta;
  for (std::size_t i = 0; i < x.size(); ++i) {
    w_gradient[row * x.size() + i] += delta * x[i];
    x_gradient[i] += delta * w[row * x.size() + i];
  }
}

/// Backward pass of one step. dh, dc: gradients with respect to the step's states, replaced with
/// those of the states before it. Returns dx.
inline Values step_backward(const Recurrent& r, const LayerParameters& p,
                            const RecurrentTensors& at, const RecurrentStep& s, Values& dh,
                            Values& dc) {
  const int n = r.hidden;
  Values dx(s.x.size(), 0.0);
  Values dh_before(n, 0.0);
  const bool gru = r.cell == Cell::gru;
  const auto back = [&](int gate, int j, double input, double state) {
    const int row = gate * n + j;
    product_backward(p.weight + at.weight_ih, p.weight_gradient + at.weight_ih,
                     p.weight_gradient + at.bias_ih, row, input, s.x, dx);
    product_backward(p.weight + at.weight_hh, p.weight_gradient + at.weight_hh,
                     gru ? p.weight_gradient + at.bias_hh : nullptr, row, state, s.h_before,
                     dh_before);
  };
  for (int j = 0; j < n; ++j) {
    if (gru) {
      const double reset = s.gate[0][j], update = s.gate[1][j], candidate = s.gate[2][j];
      const double d_candidate = dh[j] * (1.0 - update) * (1.0 - candidate * candidate);
      const double d_update = dh[j] * (s.h_before[j] - candidate) * update * (1.0 - update);
      const double d_reset = d_candidate * s.reset_product[j] * reset * (1.0 - reset);
      dh_before[j] += dh[j] * update;
      back(0, j, d_reset, d_reset);
      back(1, j, d_update, d_update);
      back(2, j, d_candidate, d_candidate * reset);
    } else {
      const double i = s.gate[0][j], f = s.gate[1][j], g = s.gate[2][j], o = s.gate[3][j];
      const double squashed = std::tanh(s.c[j]);
      dc[j] += dh[j] * o * (1.0 - squashed * squashed);
      const std::array<double, 4> delta{
          dc[j] * g * i * (1.0 - i), dc[j] * s.c_before[j] * f * (1.0 - f),
          dc[j] * i * (1.0 - g * g), dh[j] * squashed * o * (1.0 - o)};
      for (int gate = 0; gate < 4; ++gate) back(gate, j, delta[gate], delta[gate]);
      dc[j] *= f;
    }
  }
  dh = dh_before;
  return dx;
}

inline Values backward(const Recurrent& r, const NetworkLayer& l, const LayerParameters& p,
                       const Values& in, const Values& out_gradient) {
  Values in_gradient(l.in.size(), 0.0);
  for (int d = 0; d < r.directions(); ++d) {
    const RecurrentTensors at = recurrent_tensors(r, l.in.channels, d);
    const auto steps = take_steps(r, l, p, in, d);
    Values dh(r.hidden, 0.0);
    Values dc(r.hidden, 0.0);
    for (int k = p.length; k-- > 0;) {
      for_each_output(
          r, l, k, p.length, steps[k].time, d,
          [&](int j, std::size_t from, double weight) { dh[j] += weight * out_gradient[from]; });
      const Values dx = step_backward(r, p, at, steps[k], dh, dc);
      for (std::size_t i = 0; i < dx.size(); ++i)
        in_gradient[index(l.in, static_cast<int>(i), 0, steps[k].time)] += dx[i];
    }
  }
  return in_gradient;
}

}  // namespace cudp::reference

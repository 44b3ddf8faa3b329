#pragma once
// Reference implementation of a library's LSTM and GRU: plain loops, in double.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/layers/recurrent_batch.hpp"

namespace cudp {

/// Computes a RecurrentBatch. Memory beyond the end of a text, and of examples that do not exist,
/// may hold anything.
inline void recur_plainly(const RecurrentBatch& a, bool tf32) {
  const auto taken = [&](double v) {
    if (!tf32 || !std::isfinite(v)) return v;
    const auto rounded = static_cast<float>(v);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &rounded, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    float result = 0.0f;
    std::memcpy(&result, &bits, sizeof result);
    return double{result};
  };
  const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
  const auto hidden = static_cast<std::size_t>(a.hidden);
  const auto inputs = static_cast<std::size_t>(a.inputs);
  const std::size_t line = static_cast<std::size_t>(a.directions) * hidden;
  std::fill_n(a.y, static_cast<std::size_t>(a.examples) * static_cast<std::size_t>(a.places) * line,
              0.0f);
  std::vector<double> of_input(static_cast<std::size_t>(a.gates()) * hidden);
  std::vector<double> of_state(of_input.size());
  for (int e = 0; e < a.examples; ++e)
    for (int d = 0; d < a.directions; ++d) {
      const DirectionWeights& w = a.weights(d);
      const int length = std::clamp(a.length[e], 1, a.places);
      std::vector<double> h(hidden, 0.0);
      std::vector<double> c(hidden, 0.0);
      for (int s = 0; s < length; ++s) {
        const std::size_t place = static_cast<std::size_t>(e) * static_cast<std::size_t>(a.places) +
                                  static_cast<std::size_t>(d == 0 ? s : length - 1 - s);
        const float* const x = a.x + place * inputs;
        for (std::size_t row = 0; row < of_input.size(); ++row) {
          of_input[row] = w.bias[row];
          of_state[row] = w.state_bias != nullptr ? w.state_bias[row] : 0.0;
          for (std::size_t i = 0; i < inputs; ++i)
            of_input[row] += taken(x[i]) * taken(w.inputs[row * inputs + i]);
          for (std::size_t i = 0; i < hidden; ++i)
            of_state[row] += taken(h[i]) * taken(w.states[row * hidden + i]);
        }
        for (std::size_t j = 0; j < hidden; ++j) {
          const auto sum = [&](std::size_t gate) {
            return of_input[gate * hidden + j] + of_state[gate * hidden + j];
          };
          if (a.is_lstm) {
            c[j] = sigmoid(sum(1)) * c[j] + sigmoid(sum(0)) * std::tanh(sum(2));
            h[j] = sigmoid(sum(3)) * std::tanh(c[j]);
          } else {
            const double z = sigmoid(sum(1));
            const double n =
                std::tanh(of_input[2 * hidden + j] + sigmoid(sum(0)) * of_state[2 * hidden + j]);
            h[j] = (1.0 - z) * n + z * h[j];
          }
          a.y[place * line + static_cast<std::size_t>(d) * hidden + j] = static_cast<float>(h[j]);
        }
      }
    }
}

}  // namespace cudp

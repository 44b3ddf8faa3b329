#pragma once
// LSTM or GRU over a batch of whole texts, as cuDNN computes it: all steps of all texts in one
// call. For CUDA.
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/layers/recurrent.hpp"

namespace cudp {

/// Parameters of one direction of an LSTM or GRU, gate after gate. Order of the gates in an LSTM:
/// i, f, g, o (input, forget, cell, output); in a GRU: r, z, n (reset, update, new).
struct DirectionWeights {
  const float* inputs = nullptr;  ///< W [gates hidden, inputs]
  const float* states = nullptr;  ///< U [gates hidden, hidden]
  const float* bias = nullptr;    ///< biases added to W x, the part of the inputs, [gates hidden]
  /// Biases that are added to U h, the part of the previous state, [gates hidden]; for a GRU only.
  const float* state_bias = nullptr;
};

/// LSTM or GRU of a batch: computes y(e, t), the states of both directions at position t of text e,
/// side by side; 0 past the end of the text.
struct RecurrentBatch {
  const float* x;              ///< [examples, places, inputs], vectors of each text's words
  const std::int32_t* length;  ///< [examples], clamped to 1..places: libraries accept no empty text
  DirectionWeights forth;
  DirectionWeights reverse;  ///< for two directions only: reads each text from its last word
  float* y;                  ///< [examples, places, directions, hidden], written: states
  int examples;
  int places;
  int inputs;
  int hidden;
  int directions;
  bool is_lstm;
  Precision precision = Precision::fp32;

  int gates() const { return is_lstm ? 4 : 3; }
  const DirectionWeights& weights(int direction) const { return direction == 0 ? forth : reverse; }
};

inline void validate(const RecurrentBatch& a) {
  expect(a.x && a.length && a.y && a.examples > 0 && a.places > 0 && a.inputs > 0 && a.hidden > 0 &&
             (a.directions == 1 || a.directions == 2),
         "recurrent batch: expected pointers, sizes > 0 and one direction or two");
  for (int d = 0; d < a.directions; ++d) {
    const DirectionWeights& w = a.weights(d);
    expect(w.inputs && w.states && w.bias && (a.is_lstm || w.state_bias),
           "recurrent batch: expected weights and biases");
  }
}

namespace device {

/// Computes a layer's output, the last state or the mean of the states (StatesOut), from all states
/// of each text; 0 for an empty text.
struct TextStates {
  Batch batch;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  std::int32_t places;         ///< T, number of positions that each text has space for
  std::int32_t hidden;
  std::int32_t directions;
  StatesOut output;
  const float* y;  ///< [capacity, T, directions, hidden], states
  float* out;      ///< [capacity, planes.size()], written: the layer's output
  Planes planes;
};

inline void validate(const TextStates& a) {
  validate(a.batch);
  expect(a.length && a.y && a.out && a.places > 0 && a.hidden > 0 && a.directions > 0 &&
             a.output != StatesOut::sequence,
         "states of texts: expected pointers, sizes > 0 and one state per text");
}
/// Returns a launch shape with one block per example.
inline LaunchShape launch_shape(const TextStates& a) {
  return {.grid = {static_cast<unsigned>(a.batch.capacity)}, .block = {128}, .shared_bytes = 0};
}

}  // namespace device

}  // namespace cudp

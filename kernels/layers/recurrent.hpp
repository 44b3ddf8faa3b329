#pragma once
#include <cstdint>

namespace cudp {

/// One step of an LSTM, of `rows` examples: example m's numbers lie at row[m] (elements) behind
/// each pointer. units: numbers a gate, a multiple of 16. All gates lie one after the other.
/// Forward: replaces gates [4 units], in the order i, f, g, o, by their values, from the
/// pre-activations W x + U h + b; writes c, its tanh, and h.
/// Backward: reads dh [units] = dL/dh_t, replaces dc [units] = dL/dc_t by dL/dc_{t-1}, and
/// overwrites `gates` with the gradients of the pre-activations.
struct LstmStep {
  const std::int32_t* row;  ///< [rows]
  int rows;
  int units;
  float* gates;
  const float* c_before;
  float* c;
  float* c_tanh;
  float* h;
  float* dh;
  float* dc;
};

/// One step of a GRU whose reset gate acts after the product.
/// Forward: gates [4 units] hold W_n x + b_n, the pre-activations of r and of z, and U_n h; bias
/// [3 units], in the order r, z, n, is added to the last three. They are replaced by n, r, z and
/// U_n h + bias_n; h is written.
/// Backward: the gradients of W_n x, of the pre-activations of r and z, and of U_n h overwrite
/// `gates`; dh [units] is replaced by the part that reaches h_{t-1} past the gates, z dh.
struct GruStep {
  const std::int32_t* row;  ///< [rows]
  int rows;
  int units;
  float* gates;
  const float* bias;
  const float* h_before;
  float* h;
  float* dh;
};

}  // namespace cudp

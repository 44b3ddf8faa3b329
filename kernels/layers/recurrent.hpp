#pragma once
#include <cstdint>

namespace cudp {

/// One step of an LSTM, of `rows` examples: example m's numbers lie at row[m] (elements) behind
/// each pointer. units: numbers a gate, a multiple of 16. All gates lie one after the other.
/// Forward: gates [4 units], i, f, g, o: from their sums W x + U h + b to their values; c, its tanh
/// and h are written.
/// Backward: dh [units] is read, by h; dc [units] by c, from what comes after to what comes before;
/// the sums' gradients take the gates' places.
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

/// One step of a GRU whose reset gate acts after the product. Forward: gates [4 units]: W_n x +
/// b_n; the sums of r; of z; U_n h. bias [3 units], r, z, n: to be added to the last three.
/// Afterwards n, r, z, U_n h + bias_n; h is written. Backward: gradients of W_n x, of the sums of r
/// and z, and of U_n h take the gates' places; dh [units] becomes what reaches the state before
/// past the gates, z dh.
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

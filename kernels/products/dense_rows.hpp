#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Forward pass of a dense layer for a matrix of examples: y = x weight' + bias, or y = max(0, x
/// weight' + bias) if relu.
struct DenseRows {
  const float* x;       ///< [rows, inputs], one example per row
  const float* weight;  ///< [outputs, inputs], weights
  const float* bias;    ///< [outputs], bias of each output
  float* y;             ///< [rows, outputs], written
  int rows;
  int inputs;
  int outputs;
  bool relu = false;
  Precision precision = Precision::fp32;
};

inline void validate(const DenseRows& a) {
  expect(a.x && a.weight && a.bias && a.y && a.rows > 0 && a.inputs > 0 && a.outputs > 0,
         "dense rows: expected pointers and sizes > 0");
}

}  // namespace cudp

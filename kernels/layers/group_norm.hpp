#pragma once
#include "kernels/layers/image.hpp"

namespace cudp {

/// y = (x - mean) * inverse_deviation * weight + bias, mean and biased variance over the pixels and
/// channels of each group of one example. Wu & He 2018. Groups divide the channels evenly.
struct GroupNormForward {
  ImageLayout in;
  ImageLayout out;
  int groups;
  float epsilon;
  const float* weight;  ///< [channels]
  const float* bias;
  const float* x;
  float* y;
  float* mean;     ///< [groups], written
  float* inverse;  ///< [groups], 1 / sqrt(variance + epsilon), written
};

/// dweight[c] = sum over pixels of dy x^, dbias[c] = sum of dy, and dx unless null.
struct GroupNormBackward {
  ImageLayout in;
  ImageLayout out;
  int groups;
  const float* weight;
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse;
  float* dx;
  float* dweight;  ///< [channels], written
  float* dbias;
};

}  // namespace cudp

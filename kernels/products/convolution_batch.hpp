#pragma once
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// Forward convolution of a batch of images by cuDNN, without bias. Arrays are dense, without
/// borders around the images.
struct ConvolutionBatch {
  const float* x;       ///< [examples, channels, height, width], input images
  const float* weight;  ///< [columns, channels, kernel, kernel], weights
  float* y;             ///< [examples, columns, out_height(), out_width()], written
  int examples;
  int channels;
  int height;
  int width;
  int columns;
  int kernel;
  int stride;
  int pad;
  Precision precision = Precision::fp32;

  int out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int out_width() const { return (width + 2 * pad - kernel) / stride + 1; }
};

inline void validate(const ConvolutionBatch& a) {
  expect(a.x && a.weight && a.y && a.examples > 0 && a.channels > 0 && a.columns > 0,
         "convolution: expected pointers and sizes > 0");
  expect(a.kernel > 0 && a.stride > 0 && a.pad >= 0 && a.height + 2 * a.pad >= a.kernel &&
             a.width + 2 * a.pad >= a.kernel,
         "convolution: expected a kernel within the image");
}

}  // namespace cudp

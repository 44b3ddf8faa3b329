#pragma once
#include <string>
#include <variant>
#include <vector>

#include "kernels/layers/activation.hpp"
#include "kernels/layers/loss.hpp"

namespace cudp {

/// Shape of one example's activations. A flat vector of n numbers is {n, 1, 1}.
struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;

  int size() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

/// weight [out_channels, in_channels, kernel, kernel], bias [out_channels]; zero padding of `pad`
/// pixels on every side. Output height: (height + 2 pad - kernel) / stride + 1, rounded down.
struct Conv2d {
  std::string name;
  int out_channels = 0;
  int kernel = 0;
  int stride = 1;
  int pad = 0;
};

/// weight [out, in], bias [out]; an image input is flattened channel by channel, row by row.
struct Dense {
  std::string name;
  int out = 0;
};

struct MaxPool2d {
  int kernel = 2;
  int stride = 2;
};

struct AvgPool2d {
  int kernel = 2;
  int stride = 2;
};

/// Normalises each group of channels of one example by that example's own mean and variance, then
/// scales and shifts by weight [channels], bias [channels]. Wu & He 2018.
struct GroupNorm {
  std::string name;
  int groups = 1;
  float epsilon = 1e-5f;
};

/// A layer acts on one example at a time: no layer mixes examples, so per-example gradients exist.
using Layer = std::variant<Conv2d, Dense, MaxPool2d, AvgPool2d, GroupNorm, Activate>;

}  // namespace cudp

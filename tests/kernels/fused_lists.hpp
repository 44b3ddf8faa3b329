#pragma once
// Lists of layers that no model file has, for the tests of fused kernels: other strides, borders
// and channels; three convolutions; with and without pools, of sums in one part and in several.
#include "kernels/fused/network.hpp"

namespace cudp::fused {

/// The first convolution's channels are chunks; the second one's sums are in parts.
struct Odd {
  static constexpr auto kLayers =
      layers(Image{3, 8, 7}, convolution(32, 3, 1, 1), function(), max_pool(2, 1),
             convolution(16, 5, 2, 2), function(), dense(16), function(), dense(3));
};
inline constexpr const char* kOddModel = R"(
name = "odd"
activation = "tanh"
layers = [
  { type = "conv2d", name = "a", out = 32, kernel = 3, pad = 1 },
  { type = "activation" },
  { type = "maxpool", kernel = 2, stride = 1 },
  { type = "conv2d", name = "b", out = 16, kernel = 5, stride = 2, pad = 2 },
  { type = "activation" },
  { type = "dense", name = "c", out = 16 },
  { type = "activation" },
  { type = "dense", name = "d", out = "outputs" },
]
)";

/// Three convolutions, all of sums in parts; the first one's chunks are kernel rows, and it has a
/// pool.
struct Deep {
  static constexpr auto kLayers =
      layers(Image{1, 16, 16}, convolution(16, 5, 2, 0), max_pool(2, 1), function(),
             convolution(16, 2, 1, 0), function(), convolution(48, 3, 3, 2), function(), dense(48),
             function(), dense(32));
};
inline constexpr const char* kDeepModel = R"(
name = "deep"
activation = "tanh"
layers = [
  { type = "conv2d", name = "a", out = 16, kernel = 5, stride = 2 },
  { type = "maxpool", kernel = 2, stride = 1 },
  { type = "activation" },
  { type = "conv2d", name = "b", out = 16, kernel = 2 },
  { type = "activation" },
  { type = "conv2d", name = "c", out = 48, kernel = 3, stride = 3, pad = 2 },
  { type = "activation" },
  { type = "dense", name = "d", out = 48 },
  { type = "activation" },
  { type = "dense", name = "e", out = "outputs" },
]
)";

/// The first convolution's chunks are kernel rows of two channels, and it has no pool; the second
/// one, of sums in parts, has one.
struct Rows {
  static constexpr auto kLayers =
      layers(Image{2, 8, 12}, convolution(16, 4, 1, 2), function(), convolution(16, 3, 2, 1),
             function(), max_pool(2, 1), dense(16), function(), dense(5));
};
inline constexpr const char* kRowsModel = R"(
name = "rows"
activation = "tanh"
layers = [
  { type = "conv2d", name = "a", out = 16, kernel = 4, pad = 2 },
  { type = "activation" },
  { type = "conv2d", name = "b", out = 16, kernel = 3, stride = 2, pad = 1 },
  { type = "activation" },
  { type = "maxpool", kernel = 2, stride = 1 },
  { type = "dense", name = "c", out = 16 },
  { type = "activation" },
  { type = "dense", name = "d", out = "outputs" },
]
)";

}  // namespace cudp::fused

#pragma once
// Networks for which fused kernels are compiled (fused_kernel.cuh). Each network is a list of
// layers, in the order of the model file. The kernels differ in this list only.
#include <array>
#include <cstddef>

namespace cudp::fused {

enum class LayerKind { convolution, function, pool, dense };

/// A layer of a network for which a fused kernel is compiled: its kind, and the sizes that the kind
/// needs. convolution: kernel x kernel pixels, `stride` apart, with `pad` pixels of padding and
/// `out` output channels. function: an activation; no sizes. pool: the maximum over windows of
/// kernel x kernel pixels, `stride` apart. dense: `out` outputs.
struct Layer {
  LayerKind kind;
  int out = 0, kernel = 1, stride = 1, pad = 0;
};
constexpr Layer convolution(int out, int kernel, int stride, int pad) {
  return {LayerKind::convolution, out, kernel, stride, pad};
}
constexpr Layer function() { return {LayerKind::function}; }
constexpr Layer max_pool(int kernel, int stride) { return {LayerKind::pool, 0, kernel, stride}; }
constexpr Layer dense(int out) { return {LayerKind::dense, out}; }

/// Shape of an example's features: `channels` planes of height x width pixels.
struct Image {
  int channels, height, width;
};

/// A network for which a fused kernel is compiled: the shape of its features, and its n layers.
template <std::size_t n>
struct LayerList {
  Image image;
  std::array<Layer, n> layers;
};
template <class... L>
constexpr LayerList<sizeof...(L)> layers(const Image& image, const L&... layer) {
  return {image, {layer...}};
}

/// The model models/cnn.toml on 28x28 grey images: 26,010 parameters.
struct Cnn {
  static constexpr auto kLayers = layers(Image{1, 28, 28}, convolution(16, 8, 2, 3), function(),
                                         max_pool(2, 1), convolution(32, 4, 2, 0), function(),
                                         max_pool(2, 1), dense(32), function(), dense(10));
};

/// The model models/scatter-cnn.toml for 28x28 grey images, whose input is the images' scattering
/// features (81 channels of 7x7): 33,066 parameters.
struct ScatterCnn {
  static constexpr auto kLayers =
      layers(Image{81, 7, 7}, convolution(16, 3, 2, 1), function(), convolution(32, 3, 1, 1),
             function(), dense(32), function(), dense(10));
};

}  // namespace cudp::fused

// Fused kernels for networks of dense layers. They have a file of their own because this file is
// also compiled for compute capability 9.0 (Hopper), as dependent launches require
// (kernels/common/dependent.cuh).
#include <array>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/fused/dense_rows.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/fused.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns the widths of a network of dense layers: the number of features, then the number of
/// outputs of each layer. Writes its activation functions to `functions`. Returns an empty list
/// unless the network consists of dense layers with an activation function after each but the last.
/// net: the network.
std::vector<int> dense_widths(const Network& net, std::array<Activate, 4>& functions) {
  if (net.layers.size() % 2 == 0 || net.layers.size() > 2 * kMaxDenseLayers - 1) return {};
  std::vector<int> widths{net.input.size()};
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i].layer;
    const auto* const dense = std::get_if<Dense>(&layer);
    const auto* const f = std::get_if<Activate>(&layer);
    if (i % 2 == 0 ? dense == nullptr : f == nullptr) return {};
    if (i % 2 == 0)
      widths.push_back(dense->out);
    else
      functions[i / 2] = *f;
  }
  return widths;
}

/// Returns the fused kernel for networks of dense layers. Returns an empty list if the network is
/// of another kind, or if dense_plan() finds no layout that fits the device. transforms: whether
/// the kernel adds transformed gradients. net: the network. limits: limits of the device.
template <bool transforms>
std::vector<FusedKernel> dense_kernels_of(const Network& net, const DeviceLimits& limits) {
  FusedKernel k;
  k.dense = dense_plan(dense_widths(net, k.functions), limits.shared_bytes, transforms);
  const DenseShapes& d = k.dense;
  if (d.tile == 0) return {};
  ensure(net.parameter_count == static_cast<std::size_t>(d.last().end()),
         "the fused kernel has another network's parameters");
  k.shared_bytes = static_cast<std::size_t>(d.tile) * example_bytes(d, transforms);
  k.sum = d.layers > 1        ? fused::dense_rows_kernel<false, true, transforms>
          : d.last().out == 1 ? fused::dense_rows_kernel<true, false, transforms>
                              : fused::dense_rows_kernel<false, false, transforms>;
  return {k};
}

}  // namespace

std::vector<FusedKernel> dense_kernels_for(const Network& net, const DeviceLimits& limits,
                                           bool transforms) {
  return transforms ? dense_kernels_of<true>(net, limits) : dense_kernels_of<false>(net, limits);
}

}  // namespace cudp::cuda::inline CUDP_SIMT

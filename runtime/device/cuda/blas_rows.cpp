#include "runtime/device/cuda/blas_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "runtime/device/cuda/buffer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns whether BLAS gives equal rows the same bits, at any position, in the products of a dense
/// layer, forward and backward (layers/dense.hpp). Requires prepare_blas(). inputs, outputs: size
/// of the layer. precision: precision of the matrix products.
bool blas_rows_agree(Gpu& gpu, int inputs, int outputs, Precision precision) {
  std::mt19937 random(1);
  const auto numbers = [&](std::size_t n) {
    std::vector<float> v(n);
    for (float& x : v)
      x = std::bit_cast<float>(0x3f800000u | (static_cast<std::uint32_t>(random()) >> 9)) - 1.5f;
    return v;
  };
  Buffer<float> weight(gpu, static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs));
  weight.upload(numbers(weight.size()));
  Buffer<float> bias(gpu, static_cast<std::size_t>(outputs));
  bias.upload(numbers(bias.size()));
  const auto agree = [&](int terms, int columns, auto&& multiply) {
    const auto row = static_cast<std::size_t>(columns);
    const std::vector<float> x =
        numbers(static_cast<std::size_t>(kSlab) * static_cast<std::size_t>(terms));
    Buffer<float> from(gpu, x.size());
    Buffer<float> to(gpu, kSlab * row);
    std::vector<std::uint32_t> first;
    for (const std::size_t shift : {0u, 1u, 127u, 255u}) {
      std::vector<float> moved(x.size());
      for (std::size_t e = 0; e < kSlab; ++e)
        std::copy_n(
            x.begin() + static_cast<std::ptrdiff_t>(e * static_cast<std::size_t>(terms)), terms,
            moved.begin() +
                static_cast<std::ptrdiff_t>((e + shift) % kSlab * static_cast<std::size_t>(terms)));
      from.upload(moved);
      to.clear();
      multiply(from.get(), to.get());
      const std::vector<float> y = to.download();
      std::vector<std::uint32_t> bits(y.size());
      for (std::size_t e = 0; e < kSlab; ++e)
        for (std::size_t j = 0; j < row; ++j)
          bits[e * row + j] = std::bit_cast<std::uint32_t>(y[(e + shift) % kSlab * row + j]);
      if (shift == 0) first = bits;
      if (bits != first) return false;
    }
    return true;
  };
  return agree(inputs, outputs,
               [&](const float* x, float* y) {
                 gpu.dense({.x = x,
                            .weight = weight.get(),
                            .bias = bias.get(),
                            .y = y,
                            .rows = kSlab,
                            .inputs = inputs,
                            .outputs = outputs,
                            .precision = precision});
               }) &&
         agree(outputs, inputs, [&](const float* dy, float* dx) {
           gpu.sgemm('N', 'N', inputs, kSlab, outputs, weight.get(), inputs, dy, outputs, 0.0f, dx,
                     inputs);
         });
}

}  // namespace

LayoutChoices with_checked_blas(Gpu& gpu, const Network& network, LayoutChoices choices,
                                const std::function<void(const std::string&)>& say) {
  const CudaLayout layout = build_layout(network, choices);
  if (!layout.storage.uses_blas) return choices;
  gpu.prepare_blas(choices.precision);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& l = network.layers[i];
    if (!layout.layers[i + 1]->uses_blas() ||
        blas_rows_agree(gpu, l.in.size(), l.out.size(), choices.precision))
      continue;
    if (say) say("device: cuBLAS is not used, because a row's bits depend on the other rows");
    choices.large_dense = std::numeric_limits<std::int64_t>::max();
    return choices;
  }
  return choices;
}

}  // namespace cudp::cuda::inline CUDP_SIMT

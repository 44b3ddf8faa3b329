#pragma once
// The matrix products of a network's layers: the kernel that computes each, and the packed weights
// that they need.
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/products/patch_gradient.hpp"
#include "kernels/products/patch_product.hpp"
#include "kernels/products/tiled_product.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/plans.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Function pointers of the kernels of matrix products. A table of type Tiled is indexed by the
/// Precision, then by the width of the result's tile that a block computes (3 choices). A table of
/// type Patched is indexed by the number of output channels that a block computes. The norm and the
/// sum of a layer's gradient must use kernels of the same precision and tile, so that both see
/// identical bits.
struct ProductKernels {
  template <class Args>
  using Kernel = void (*)(Args);
  template <class Args>
  using Tiled = std::array<std::array<Kernel<Args>, 3>, 2>;
  template <class Args>
  using Patched = std::array<Kernel<Args>, 2>;

  Tiled<device::Product> product;
  Patched<device::Product> thin;  ///< indexed by Precision
  Tiled<WeightGradientNorm> norm;
  Tiled<WeightGradientSum> sum;
  /// Number of blocks of each kernel of `sum` that a multiprocessor holds, indexed likewise.
  std::array<std::array<int, 3>, 2> sum_blocks;
  Tiled<WeightGradientRows> rows;
  Kernel<PackWeights> pack;
  Patched<PatchProduct> patch_product;
  Patched<WeightGradientNorm> patch_norm;
  Kernel<WeightGradientSum> patch_sum;
  Kernel<WeightGradientRows> patch_rows;
};

/// Launches the matrix products of a network's layers. It owns the index tables that they read, and
/// the packed copies of the weights.
class CudaProducts {
 public:
  CudaProducts(Gpu& gpu, const CudaStorage& storage);

  Axis axis(const AxisPlan& p) const {
    return {p.table >= 0 ? tables_.get() + p.table : nullptr, p.period, p.outer, p.inner};
  }
  Factor factor(const float* data, const FactorPlan& p) const {
    return {data, axis(p.line), axis(p.term), p.along_terms, p.as};
  }

  void fill_scratch() { packed_.fill_scratch(); }

  /// Makes the copies of the weights that tensor cores read, rounded to TF32 or fp16 and reordered.
  /// Call it when the parameters have changed, before the next product. parameters: the whole
  /// network's parameters, [d], in device memory.
  void pack(const float* parameters);

  /// Returns the arguments of a layer's matrix product, see multiply().
  device::Product product(const Batch& batch, const ProductPlan& p, const float* a,
                          const float* weight, const float* bias, float* out,
                          const Epilogue& epilogue) const;

  /// Launches a layer's matrix product: out = epilogue(a * weight + bias), where the epilogue is an
  /// activation, its derivative or none. out_planes, y_planes: layouts of out and of epilogue.y;
  /// used only if the product is computed from patches of an image (p.patch). name: name of the
  /// kernel in error messages. batch: the micro-batch. p: plan of the product. precision: precision
  /// of the matrix products. logit_gradients: if the product is the gradient of a layer's input,
  /// the derivatives of the examples' losses by their logits, [capacity, outputs] (PatchProduct).
  void multiply(const char* name, const Batch& batch, const ProductPlan& p, Precision precision,
                const float* a, const float* weight, const float* bias, float* out,
                const Epilogue& epilogue = {}, const Planes& out_planes = {},
                const Planes& y_planes = {}, const float* logit_gradients = nullptr,
                std::int32_t outputs = 0);

  /// Returns the arguments of the kernels for a layer's weight gradient. g: the arguments that are
  /// known before memory is allocated. x, dy: the layer's input and the gradient of its output, in
  /// device memory. batch: the micro-batch.
  WeightGradient weight_gradient(const Batch& batch, const GradientPlan& g, const float* x,
                                 const float* dy) const;
  void gradient_norm(const GradientPlan& g, const WeightGradientNorm& args);
  void gradient_sum(const GradientPlan& g, const WeightGradientSum& args);
  void gradient_rows(const GradientPlan& g, const WeightGradientRows& args);
  /// Returns the number of blocks among which gradient_sum() divides `capacity` examples, for each
  /// tile. g: plan of the weight gradient.
  std::int32_t stripes(const GradientPlan& g, int capacity) const;

 private:
  template <class Args>
  using Kernel = ProductKernels::Kernel<Args>;

  template <class Choice>
  static Choice patched(const std::array<Choice, 2>& choices, int columns) {
    return choices[static_cast<std::size_t>(patch_columns(columns) / 64)];
  }
  Kernel<WeightGradientNorm> patch_norm(const GradientPlan& g) const;
  Kernel<PatchProduct> patch_product(int columns) const;
  template <class Choice>
  static Choice tiled(const std::array<std::array<Choice, 3>, 2>& choices, Precision precision,
                      int columns) {
    return choices[static_cast<std::size_t>(precision)]
                  [static_cast<std::size_t>(tile_columns(columns) / 32)];
  }

  Gpu& gpu_;
  const ProductKernels& kernels_;
  Buffer<std::int32_t> tables_;
  Buffer<PackedWeight> weights_;
  Buffer<float> packed_;  // weights packed by pack(), see PackedWeight
  int max_packed_ = 0;    // largest size of a packed weight [floats]
};

}  // namespace cudp::cuda::inline CUDP_SIMT

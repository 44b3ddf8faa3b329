#pragma once
// Base of layers whose weights are shared by all positions of a text.
#include <algorithm>
#include <optional>

#include "kernels/products/sequence_gradient.cuh"
#include "kernels/products/text_product.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Product of all positions of texts with a layer's weights.
struct PositionsPlan {
  ProductPlan product;
  /// Whether four neighbours of a are complete and at a multiple of four floats. The same for b.
  bool a_in_fours = false;
  bool b_in_fours = false;
};

/// Layer whose weights all positions of a text share. Its weight gradients are computed in float32
/// or by tensor cores (kernels/products/sequence_gradient.hpp).
class SequenceLayer : public CudaLayer {
 public:
  void add(MicroBatch& w, FixedPoint* sum, const SumScale* scale) const override {
    const SequenceGradient g = sequence_gradient(w);
    const int blocks =
        by_tile(kSequenceSumBlocks<LowSequenceTile>, kSequenceSumBlocks<ThinSequenceTile>,
                kSequenceSumBlocks<WideSequenceTile>, kSequenceSumBlocks<TensorSequenceTile>);
    launch(w.gpu, "sequence gradient sum",
           by_tile(sequence_gradient_sum_kernel<LowSequenceTile>,
                   sequence_gradient_sum_kernel<ThinSequenceTile>,
                   sequence_gradient_sum_kernel<WideSequenceTile>,
                   sequence_gradient_sum_kernel<TensorSequenceTile>),
           SequenceGradientSum{.gradient = g,
                               .factors = w.factors(group()),
                               .factor_stride = w.groups,
                               .stripes = sequence_stripes(g, blocks, w.gpu.limits()),
                               .sum = sum + offset(),
                               .scale = scale,
                               .transform = w.transform(offset())});
  }

  void store_gradients(MicroBatch& w, float* gradients) const override {
    launch(w.gpu, "sequence gradients",
           by_tile(sequence_gradient_rows_kernel<LowSequenceTile>,
                   sequence_gradient_rows_kernel<ThinSequenceTile>,
                   sequence_gradient_rows_kernel<WideSequenceTile>,
                   sequence_gradient_rows_kernel<TensorSequenceTile>),
           SequenceGradientRows{.gradient = sequence_gradient(w),
                                .gradients = gradients + offset(),
                                .stride = network_parameters()});
  }

  // backward() is a matrix product, so its kernel can also multiply by the derivative of an
  // activation before this layer. The values of that activation have the layout of the input
  // gradient.

  bool takes_input_function(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }
  bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }
  void take_input_function(const Activate& f) override { input_function_ = f; }

 protected:
  /// Minimum number of units of a layer for which tensor cores compute its gradients and, if the
  /// layer is recurrent, its time steps.
  static constexpr int kMinTensorUnits = 64;

  virtual SequenceGradient sequence_gradient(const MicroBatch& w) const = 0;

  Epilogue input_epilogue(const MicroBatch& w) const {
    if (!input_function_) return {.stored_as = input_gradient_as()};
    return {.kind = Epilogue::Kind::derivative,
            .function = *input_function_,
            .y = w.value(in()),
            .stored_as = input_gradient_as()};
  }
  /// Multiplies all positions of the texts by the layer's weights: in float32, or by tensor cores.
  /// forward: whether a is the layer's input, and not the gradient of its output. Other arguments:
  /// as for CudaProducts::multiply().
  void multiply(MicroBatch& w, bool forward, const PositionsPlan& p, Precision precision,
                const float* a, const float* weight, const float* bias, float* out,
                const Epilogue& epilogue = {}) const {
    const char* const name = forward ? "forward" : "input gradient";
    if (precision == Precision::fp32) {
      w.products.multiply(name, w.batch, p.product, precision, a, weight, bias, out, epilogue);
      return;
    }
    const auto is_aligned = [](const float* data) {
      return reinterpret_cast<std::uintptr_t>(data) % sizeof(Four) == 0;
    };
    launch(w.gpu, name, forward ? text_product_kernel<true> : text_product_kernel<false>,
           device::TextProduct{
               .product = w.products.product(w.batch, p.product, a, weight, bias, out, epilogue),
               .length = w.lengths(),
               .logit_gradients = w.logit_gradients(),
               .outputs = w.outputs(),
               .a_in_fours = p.a_in_fours && is_aligned(a),
               .b_in_fours = p.b_in_fours && is_aligned(weight)});
  }
  void take_norms(MicroBatch& w) const {
    launch(w.gpu, "sequence gradient norm",
           by_tile(sequence_gradient_norm_kernel<LowSequenceTile>,
                   sequence_gradient_norm_kernel<ThinSequenceTile>,
                   sequence_gradient_norm_kernel<WideSequenceTile>,
                   sequence_gradient_norm_kernel<TensorSequenceTile>),
           SequenceGradientNorm{.gradient = sequence_gradient(w),
                                .parts = w.parts(first_part_),
                                .transform = w.transform(offset())});
  }
  /// Chooses the size of the tiles into which kernels divide the layer's weight gradients. A
  /// derived class must call it once in reserve(), before tile() is used. rows, columns: size of
  /// the layer's largest weight matrix. precision: precision of the gradients.
  void choose_tile(CudaStorage& s, int rows, int columns, Precision precision) {
    gradient_precision_ = precision;
    tile_ = sequence_tile(rows, columns, precision);
    s.uses_tensor_cores = s.uses_tensor_cores || precision == Precision::tf32;
  }
  /// Reserves the partial sums that add up to an example's squared gradient norm: one for each tile
  /// of the layer's weight matrices. tiles: number of tiles of all matrices together. s: the memory
  /// that the layers reserve.
  void reserve_tiles(CudaStorage& s, int tiles) { first_part_ = reserve_parts(s, tiles); }
  const SequenceTileShape& tile() const { return tile_; }
  /// Returns the arguments of the weight gradient kernels that do not depend on a weight matrix.
  /// The list of weight matrices is empty; the caller adds the layer's matrices.
  SequenceGradient no_gradient(const MicroBatch& w) const {
    return {.batch = w.batch,
            .length = w.lengths(),
            .longest = places(),
            .tile = tile_,
            .part = {},
            .logit_gradients = w.logit_gradients(),
            .outputs = w.outputs()};
  }
  int places() const { return in().value.height; }
  int inputs() const { return in().value.width; }
  /// Returns the offset of the layer's i-th tensor from the layer's first parameter.
  std::int32_t tensor(std::size_t i) const { return narrow(offset_of(i) - offset()); }

 private:
  template <class Choice>
  Choice by_tile(Choice low, Choice thin, Choice wide, Choice tensor) const {
    if (gradient_precision_ == Precision::tf32) return tensor;
    return tile_.rows == 32 ? low : tile_.columns == 32 ? thin : wide;
  }

  SequenceTileShape tile_;
  Precision gradient_precision_ = Precision::fp32;
  std::int32_t first_part_ = 0;
  std::optional<Activate> input_function_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

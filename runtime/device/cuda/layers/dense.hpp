#pragma once
#include <algorithm>

#include "kernels/contribution/clip.cuh"
#include "kernels/contribution/coordinates.cuh"
#include "kernels/products/dense_rows.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layers/product_layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Dense layer. An example's weight gradient is the outer product of the layer's input x and the
/// gradient dy of its output. It is never stored; its norm is computed as |x| |dy|.
class CudaDense final : public ProductLayer {
 public:
  /// Whether forward() can also apply the activation f to the layer's output. If cuBLASLt computes
  /// the product, ReLU is the only activation that can be applied. l: the layer in its network.
  /// choices: options that determine how layers are computed.
  bool takes_output_function(const NetworkLayer& l, const LayoutChoices& choices,
                             const Activate& f) const override {
    return uses_own_kernels(l, choices) || f.kind == Activation::relu;
  }
  /// Whether the kernels that compute the layer's matrix products require inputs that are rounded
  /// to TF32 in memory. BLAS does not require it: it rounds while it multiplies. l: the layer in
  /// its network. choices: options that determine how layers are computed.
  bool reads_rounded(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return choices.precision == Precision::tf32 && uses_own_kernels(l, choices) &&
           gains_from_tensor_cores(l.in.size(), l.out.size());
  }

  bool uses_blas() const override { return uses_blas_; }
  void forward(MicroBatch& w) const override {
    if (!uses_blas_) {
      multiply_forward(w);
      return;
    }
    for_each_slab(w, [&](std::int64_t e) {
      w.gpu.dense({.x = w.value(in()) + e * inputs(),
                   .weight = weight(w),
                   .bias = bias(w),
                   .y = w.value(out()) + e * outputs(),
                   .rows = kSlab,
                   .inputs = inputs(),
                   .outputs = outputs(),
                   .relu = output_function_.has_value(),
                   .precision = precision_});
    });
  }

  void gradient(MicroBatch& w) const override {
    if (w.coordinates != nullptr)
      transformed_norm(w, *w.coordinates);
    else
      launch(w.gpu, "dense gradient norm", dense_gradient_norm_kernel,
             DenseGradientNorm{.batch = w.batch,
                               .x = w.value(in()),
                               .inputs = inputs(),
                               .dy = w.gradient(out()),
                               .outputs = outputs(),
                               .parts = w.parts(first_part_)});
  }

  void backward(MicroBatch& w) const override {
    if (!uses_blas_) {
      multiply_back(w);
      return;
    }
    for_each_slab(w, [&](std::int64_t e) {  // dx = dy weight
      w.gpu.sgemm('N', 'N', inputs(), kSlab, outputs(), weight(w), inputs(),
                  w.gradient(out()) + e * outputs(), outputs(), 0.0f,
                  w.gradient(in()) + e * inputs(), inputs());
    });
  }

  void note_shift(LayerShifts& shifts) const override {
    shifts.add({.first = offset(), .n = parameter_count(), .group = group()});
  }

 protected:
  bool uses_own_kernels(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return std::int64_t{l.in.size()} * l.out.size() < choices.large_dense;
  }

 private:
  void reserve(const LayoutChoices& choices, CudaStorage& s) override {
    const Planes x = in().value;
    const Planes y = out().value;
    const Planes dx = in().gradient;
    const Planes dy = out().gradient;
    const int inputs = x.pixels();
    const int outputs = y.pixels();
    ensure(x.border == 0 && dy.border == 0, "a dense layer takes and gives flat vectors");
    uses_blas_ = std::int64_t{inputs} * outputs >= choices.large_dense && y.border == 0 &&
                 (!gives_input_gradient() || dx.border == 0);
    s.uses_blas = s.uses_blas || uses_blas_;
    forward_ = {.a = {strided(x.size()), strided(1), true},
                .b = {strided(inputs), strided(1), true},
                .out_row = strided(y.size()),
                .out_column = s.flat(y),
                .rows_per_example = 1,
                .terms = inputs,
                .columns = outputs};
    gradient_ = {.x = {strided(1), strided(x.size()), false},
                 .dy = {strided(1), strided(dy.size()), false},
                 .rows = inputs,
                 .columns = outputs,
                 .terms_per_example = 1};
    if (gives_input_gradient())
      input_gradient_.push_back({.a = {strided(dy.size()), strided(1), true},
                                 .b = {strided(1), strided(inputs), false},
                                 .out_row = strided(dx.size()),
                                 .out_column = s.flat(dx),
                                 .y_row = strided(x.size()),
                                 .y_column = s.flat(x),
                                 .rows_per_example = 1,
                                 .terms = outputs,
                                 .columns = inputs});
    // Precision of all matrix products of the layer except the weight gradient, which is summed in
    // float32 (WeightGradientSum).
    if (gains_from_tensor_cores() || uses_blas_) precision_ = choices.precision;
    s.transform_scratch =
        std::max(s.transform_scratch, std::int64_t{inputs} + 2 * std::int64_t{outputs});
    reserve_products(s, 1);
  }

  int inputs() const { return gradient_.rows; }
  int outputs() const { return gradient_.columns; }

  // Returns the number of slabs into which a micro-batch is divided. Each call of BLAS multiplies
  // one slab of kSlab examples. (BLAS expects column-major matrices, so the calls treat our
  // row-major matrices as their transposes.)
  static int slabs(const MicroBatch& w) { return (w.batch.capacity + kSlab - 1) / kSlab; }
  template <class Body>
  static void for_each_slab(const MicroBatch& w, const Body& body) {
    for (int i = 0; i < slabs(w); ++i) body(std::int64_t{i} * kSlab);
  }

  /// Computes the squared norm of each example's transformed gradient, (gradient - m) / scale, from
  /// two matrix products, without forming the gradient. w: the micro-batch. c: arrays of
  /// coordinate-wise clipping.
  void transformed_norm(MicroBatch& w, const CoordinatesView& c) const {
    const auto rows = static_cast<std::int64_t>(w.batch.capacity);
    const float* const x = w.value(in());
    float* const squares = w.scratch();
    float* const u = squares + rows * inputs();
    float* const v = u + rows * outputs();
    launch(w.gpu, "square", square_rows_kernel,
           SquareRows{.x = x, .y = squares, .n = rows * inputs()});
    ProductPlan plan = forward_;
    plan.out_row = strided(outputs());
    plan.out_column = {};
    const float* const square = c.square + offset();
    const float* const product = c.product + offset();
    constexpr Precision kExact = Precision::fp32;  // dense_square_error relies on it
    w.products.multiply("transformed norm", w.batch, plan, kExact, squares, square, bias_of(square),
                        u);
    w.products.multiply("transformed norm", w.batch, plan, kExact, x, product, bias_of(product), v);
    launch(w.gpu, "dense transformed norm", dense_transformed_norm_kernel,
           DenseTransformedNorm{.batch = w.batch,
                                .dy = w.gradient(out()),
                                .u = u,
                                .v = v,
                                .shift = c.shifts + group(),
                                .inputs = inputs(),
                                .outputs = outputs(),
                                .parts = w.parts(first_part_)});
  }

  bool uses_blas_ = false;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

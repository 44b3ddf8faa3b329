#pragma once
// Base of layers that multiply their input by a weight matrix.
#include <optional>

#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Layer that multiplies its input by a matrix of weights: the input is the left matrix of the
/// product, the weights are the right one. It has two tensors, the weights and a bias that follows
/// them.
class ProductLayer : public CudaLayer {
 public:
  bool takes_output_function(const NetworkLayer&, const LayoutChoices&,
                             const Activate&) const override {
    return true;
  }
  bool takes_input_function(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return uses_own_kernels(l, choices);
  }
  bool rounds_output(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return uses_own_kernels(l, choices);
  }
  bool rounds_input_gradient(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return uses_own_kernels(l, choices);
  }
  void take_output_function(const Activate& f) override { output_function_ = f; }
  void take_input_function(const Activate& f) override { input_function_ = f; }

  /// Precision of the matrix products in the forward and backward pass.
  Precision precision() const { return precision_; }
  const GradientPlan& gradient_plan() const { return gradient_; }

  void add(MicroBatch& w, FixedPoint* sum, const SumScale* scale) const override {
    w.products.gradient_sum(gradient_, {.gradient = weight_gradient(w),
                                        .factors = w.factors(group()),
                                        .factor_stride = w.groups,
                                        .stripes = w.products.stripes(gradient_, w.batch.capacity),
                                        .sum = sum + offset(),
                                        .scale = scale,
                                        .transform = w.transform(offset())});
  }

  void store_gradients(MicroBatch& w, float* gradients) const override {
    w.products.gradient_rows(gradient_, {.gradient = weight_gradient(w),
                                         .gradients = gradients + offset(),
                                         .stride = network_parameters()});
  }

 protected:
  /// Whether kernels of this project, and not BLAS or cuDNN, compute the products of forward() and
  /// backward().
  virtual bool uses_own_kernels(const NetworkLayer&, const LayoutChoices&) const { return true; }
  /// Returns the operations that forward() applies to each number before it writes it: the
  /// activation function that follows the layer, if this layer computes it, and rounding to TF32.
  Epilogue output_epilogue() const {
    Epilogue e;
    if (output_function_) e = {.kind = Epilogue::Kind::value, .function = *output_function_};
    e.stored_as = output_as();
    return e;
  }

  void multiply_forward(MicroBatch& w) const {
    w.products.multiply("forward", w.batch, forward_, precision_, w.value(in()), weight(w), bias(w),
                        w.value(out()), output_epilogue(), out().value);
  }
  void multiply_back(MicroBatch& w) const {
    Epilogue epilogue;
    if (input_function_)
      epilogue = {
          .kind = Epilogue::Kind::derivative, .function = *input_function_, .y = w.value(in())};
    epilogue.stored_as = input_gradient_as();
    for (const ProductPlan& p : input_gradient_)
      w.products.multiply("input gradient", w.batch, p, precision_, w.gradient(out()), weight(w),
                          nullptr, w.gradient(in()), epilogue, in().gradient, in().value,
                          w.logit_gradients(), w.outputs());
  }

  WeightGradient weight_gradient(const MicroBatch& w) const {
    WeightGradient g =
        w.products.weight_gradient(w.batch, gradient_, w.value(in()), w.gradient(out()));
    g.logit_gradients = w.logit_gradients();
    g.outputs = w.outputs();
    return g;
  }
  const float* weight(const MicroBatch& w) const { return w.parameters + offset(); }
  const float* bias(const MicroBatch& w) const { return bias_of(weight(w)); }
  /// Returns the address of the layer's bias, which follows the weights. weight: address of the
  /// weights in an array with the layout of the parameters; the array may also be one of gradients.
  const float* bias_of(const float* weight) const {
    return weight + std::int64_t{gradient_.rows} * gradient_.columns;
  }

  /// Reserves memory for `parts` partial sums per example, which add up to the example's squared
  /// gradient norm, and registers the layer's matrix products in `s`. A derived class must call it
  /// in its reserve(), after it has described these products.
  void reserve_products(CudaStorage& s, int parts) {
    first_part_ = reserve_parts(s, parts);
    s.uses_tensor_cores = s.uses_tensor_cores || precision_ == Precision::tf32;
    gradient_.x.as = forward_.a.as = in().value_as;
    gradient_.dy.as = out().gradient_as;
    for (ProductPlan& p : input_gradient_) p.a.as = out().gradient_as;
    if (gradient_.patch.lines > 0) s.patched_gradients.push_back(gradient_);
    std::int64_t rounded = -1;
    const auto pack = [&](ProductPlan& p) {
      if (p.patch.lines > 0) {
        p.packed_at =
            s.pack({.weight = p.b, .weight_at = offset(), .terms = p.terms, .columns = p.columns});
        s.patched_products.push_back(p);
        return;
      }
      if (rounded < 0)
        rounded = s.pack({.weight = {},
                          .weight_at = offset(),
                          .terms = gradient_.rows,
                          .columns = gradient_.columns,
                          .keeps_order = true});
      p.rounded_at = rounded;
    };
    if (precision_ != Precision::tf32) return;
    pack(forward_);
    for (ProductPlan& p : input_gradient_) pack(p);
  }
  /// Returns whether a matrix product of this size is faster with tensor cores. If not, it is
  /// computed in fp32.
  static bool gains_from_tensor_cores(int rows, int columns) {
    return std::min(rows, columns) >= kMinTensorSide;
  }
  bool gains_from_tensor_cores() const {
    return gains_from_tensor_cores(gradient_.rows, gradient_.columns);
  }

  std::optional<Activate> output_function_, input_function_;
  ProductPlan forward_;
  std::vector<ProductPlan> input_gradient_;
  GradientPlan gradient_;
  Precision precision_ = Precision::fp32;
  /// Index of the first of the layer's partial sums in MicroBatch::parts(). They add up to the
  /// squared norm of an example's gradient.
  std::int32_t first_part_ = 0;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

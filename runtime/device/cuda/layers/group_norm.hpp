#pragma once
#include "kernels/common/copy_rows.cuh"
#include "kernels/layers/group_norm.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Group normalisation. Stores the whole parameter gradient of every example: one weight gradient
/// per channel, then one bias gradient per channel.
class CudaGroupNorm final : public CudaLayer {
 public:
  CudaGroupNorm(const GroupNorm& layer) : layer_(layer) {}

  bool rounds_output(const NetworkLayer&, const LayoutChoices&) const override { return true; }
  bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }

  void forward(MicroBatch& w) const override {
    launch(w.gpu, "group norm", group_norm_kernel,
           device::GroupNorm{.batch = w.batch,
                             .groups = layer_.groups,
                             .epsilon = layer_.epsilon,
                             .weight = weight(w),
                             .bias = weight(w) + channels(),
                             .x = w.value(in()),
                             .x_planes = in().value,
                             .y = w.value(out()),
                             .y_planes = out().value,
                             .statistics = w.saved(statistics_),
                             .y_as = output_as()});
  }

  bool backward_needs_gradient() const override { return true; }

  /// Computes the gradient of the parameters, its squared norm and, in the same kernel, the
  /// gradient of the input. w: the micro-batch.
  void gradient(MicroBatch& w) const override {
    launch(w.gpu, "group norm gradient", group_norm_backward_kernel,
           device::GroupNormBackward{.batch = w.batch,
                                     .groups = layer_.groups,
                                     .weight = weight(w),
                                     .x = w.value(in()),
                                     .x_planes = in().value,
                                     .dy = w.gradient(out()),
                                     .dy_planes = out().gradient,
                                     .statistics = w.saved(statistics_),
                                     .dx = gives_input_gradient() ? w.gradient(in()) : nullptr,
                                     .dx_planes = gives_input_gradient() ? in().gradient : Planes{},
                                     .gradient = w.example_gradients(gradients_),
                                     .parts = w.parts(first_part_),
                                     .transform = w.transform(offset()),
                                     .dx_as = input_gradient_as()});
  }

  void add(MicroBatch& w, FixedPoint* sum, const SumScale* scale) const override {
    launch(w.gpu, "group norm sum", weighted_rows_kernel,
           WeightedRows{.batch = w.batch,
                        .rows = w.example_gradients(gradients_),
                        .columns = 2 * channels(),
                        .factors = w.factors(group()),
                        .factor_stride = w.groups,
                        .sum = sum + offset(),
                        .scale = scale,
                        .transform = w.transform(offset())});
  }

  void store_gradients(MicroBatch& w, float* gradients) const override {
    launch(w.gpu, "group norm gradients", copy_rows_kernel,
           CopyRows{.batch = w.batch,
                    .rows = w.example_gradients(gradients_),
                    .columns = 2 * channels(),
                    .to = gradients + offset(),
                    .to_stride = network_parameters()});
  }

 private:
  void reserve(const LayoutChoices&, CudaStorage& s) override {
    statistics_ = CudaStorage::reserve(s.saved, 2 * std::int64_t{layer_.groups});
    gradients_ = CudaStorage::reserve(s.example_gradients, parameter_count());
    first_part_ = reserve_parts(s, layer_.groups);
  }

  int channels() const { return in().value.channels; }
  const float* weight(const MicroBatch& w) const { return w.parameters + offset(); }

  GroupNorm layer_;
  std::int64_t statistics_ = 0;
  std::int64_t gradients_ = 0;
  std::int32_t first_part_ = 0;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

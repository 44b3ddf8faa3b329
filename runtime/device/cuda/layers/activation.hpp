#pragma once
#include "kernels/layers/activation.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class CudaActivation final : public CudaLayer {
 public:
  CudaActivation(const Activate& function) : function_(function) {}

  bool works_in_place() const override { return true; }
  bool reads_own_output() const override { return true; }
  bool rounds_output(const NetworkLayer&, const LayoutChoices&) const override { return true; }
  bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }
  bool writes_output() const override { return has_forward_; }
  bool writes_input_gradient() const override { return has_backward_; }
  void skip_forward() override { has_forward_ = false; }
  void skip_backward() override { has_backward_ = false; }

  void forward(MicroBatch& w) const override {
    if (!has_forward_) return;
    launch(w.gpu, "activation", activation_kernel,
           device::ActivationPass{.batch = w.batch,
                                  .function = function_,
                                  .from = w.value(in()),
                                  .from_planes = in().value,
                                  .y = nullptr,
                                  .y_planes = {},
                                  .to = w.value(out()),
                                  .to_planes = out().value,
                                  .to_as = output_as()});
  }

  void backward(MicroBatch& w) const override {
    if (!has_backward_) return;
    launch(w.gpu, "activation gradient", activation_kernel,
           device::ActivationPass{.batch = w.batch,
                                  .function = function_,
                                  .from = w.gradient(out()),
                                  .from_planes = out().gradient,
                                  .y = w.value(out()),
                                  .y_planes = out().value,
                                  .to = w.gradient(in()),
                                  .to_planes = in().gradient,
                                  .to_as = input_gradient_as()});
  }

 private:
  Activate function_;
  bool has_forward_ = true;
  bool has_backward_ = true;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

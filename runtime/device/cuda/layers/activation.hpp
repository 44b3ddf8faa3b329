#pragma once
#include "kernels/layers/activation.cuh"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda {

class CudaActivation final : public LayerWithoutParameters {
 public:
  CudaActivation(const Activate& function) : function_(function) {}

  bool works_in_place() const override { return true; }
  bool reads_own_output() const override { return true; }

  template <class Gpu>
  void forward(MicroBatch<Gpu>& w) const {
    launch(w.gpu, "activation", activation_kernel,
           device::ActivationPass{.batch = w.batch,
                           .function = function_,
                           .from = w.value(in()),
                           .from_planes = in().value,
                           .y = nullptr,
                           .y_planes = {},
                           .to = w.value(out()),
                           .to_planes = out().value});
  }

  template <class Gpu>
  void backward(MicroBatch<Gpu>& w) const {
    launch(w.gpu, "activation gradient", activation_kernel,
           device::ActivationPass{.batch = w.batch,
                           .function = function_,
                           .from = w.gradient(out()),
                           .from_planes = out().gradient,
                           .y = w.value(out()),
                           .y_planes = out().value,
                           .to = w.gradient(in()),
                           .to_planes = in().gradient});
  }

 private:
  Activate function_;
};

}  // namespace cudp::cuda

#pragma once
#include <optional>

#include "kernels/layers/pool.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Max or average pooling of images, for all examples of a micro-batch.
class CudaPool final : public CudaLayer {
 public:
  CudaPool(const MaxPool2d& p) : is_max_(true), kernel_(p.kernel), stride_(p.stride) {}
  CudaPool(const AvgPool2d& p) : is_max_(false), kernel_(p.kernel), stride_(p.stride) {}

  bool takes_input_function(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }
  bool rounds_output(const NetworkLayer&, const LayoutChoices&) const override { return true; }
  bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const override {
    return true;
  }
  void take_input_function(const Activate& f) override { input_function_ = f; }

  void forward(MicroBatch& w) const override {
    launch(w.gpu, "pool", pool_kernel,
           device::Pool{.batch = w.batch,
                        .is_max = is_max_,
                        .kernel = AnyDivisor(kernel_),
                        .stride = AnyDivisor(stride_),
                        .x = w.value(in()),
                        .x_planes = in().value,
                        .y = w.value(out()),
                        .y_planes = out().value,
                        .argmax = argmax(w),
                        .epilogue = {.stored_as = output_as()}});
  }

  void backward(MicroBatch& w) const override {
    Epilogue epilogue;
    if (input_function_)
      epilogue = {
          .kind = Epilogue::Kind::derivative, .function = *input_function_, .y = w.value(in())};
    epilogue.stored_as = input_gradient_as();
    launch(w.gpu, "pool gradient", pool_backward_kernel,
           device::Pool{.batch = w.batch,
                        .is_max = is_max_,
                        .kernel = AnyDivisor(kernel_),
                        .stride = AnyDivisor(stride_),
                        .x = w.value(in()),
                        .x_planes = in().value,
                        .dy = w.gradient(out()),
                        .dy_planes = out().gradient,
                        .dx = w.gradient(in()),
                        .dx_planes = in().gradient,
                        .cells = device::pool_cells(in().gradient, kernel_, stride_),
                        .argmax = argmax(w),
                        .epilogue = epilogue});
  }

 private:
  void reserve(const LayoutChoices&, CudaStorage& s) override {
    if (!device::stores_argmax(is_max_, kernel_)) return;
    constexpr std::int64_t kBytes = sizeof(float);
    argmax_ = CudaStorage::reserve(s.saved, (out().value.pixels() + kBytes - 1) / kBytes);
  }
  std::uint8_t* argmax(const MicroBatch& w) const {
    if (!device::stores_argmax(is_max_, kernel_)) return nullptr;
    return reinterpret_cast<std::uint8_t*>(w.saved(argmax_));
  }

  bool is_max_;
  int kernel_;
  int stride_;
  /// Offset, among the values saved for the backward pass, of an array with one byte per output:
  /// the index within the pooling window of the pixel with the largest value.
  std::int64_t argmax_ = 0;
  std::optional<Activate> input_function_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

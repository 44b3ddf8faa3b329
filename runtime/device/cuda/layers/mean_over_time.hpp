#pragma once
#include "kernels/layers/mean_over_time.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class CudaMeanOverTime final : public CudaLayer {
 public:
  CudaMeanOverTime(const MeanOverTime& layer) : unit_(layer.unit) {}

  bool reads_own_output() const override { return unit_; }

  void forward(MicroBatch& w) const override {
    launch(w.gpu, "mean", mean_over_time_kernel,
           device::MeanOverTime{.batch = w.batch,
                                .length = w.lengths(),
                                .places = in().value.height,
                                .x = w.value(in()),
                                .y = w.value(out()),
                                .y_planes = out().value,
                                .norm = norm(w)});
  }

  void backward(MicroBatch& w) const override {
    launch(w.gpu, "mean gradient", mean_over_time_backward_kernel,
           device::MeanOverTimeBackward{.batch = w.batch,
                                        .length = w.lengths(),
                                        .places = in().value.height,
                                        .y = w.value(out()),
                                        .y_planes = out().value,
                                        .dy = w.gradient(out()),
                                        .dy_planes = out().gradient,
                                        .norm = norm(w),
                                        .dx = w.gradient(in())});
  }

 private:
  void reserve(const LayoutChoices&, CudaStorage& s) override {
    if (unit_) norm_ = CudaStorage::reserve(s.saved, 1);
  }
  float* norm(const MicroBatch& w) const { return unit_ ? w.saved(norm_) : nullptr; }

  bool unit_;
  std::int64_t norm_ = 0;
};

}  // namespace cudp::cuda::inline CUDP_SIMT

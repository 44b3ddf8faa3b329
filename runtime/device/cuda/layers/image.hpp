#pragma once
// Input layer of networks for images and tables: copies the examples and their labels from the data
// set to the first edge. (Networks for texts begin with the embedding.)
#include "kernels/layers/image.cuh"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class CudaInput final : public CudaLayer {
 public:
  void forward(MicroBatch& w) const override {
    if (w.data.texts.tokens != nullptr) return;
    launch(w.gpu, "load", load_kernel,
           device::Load{.batch = w.batch,
                        .examples = w.examples,
                        .bytes = w.data.bytes,
                        .floats = w.data.floats,
                        .coded = w.data.coded,
                        .labels = w.data.labels,
                        .scale = w.data.scale,
                        .shift = w.data.shift,
                        .planes = out().value,
                        .x = w.value(out()),
                        .x_label = w.labels(),
                        .x_as = output_as()});
  }
};

}  // namespace cudp::cuda::inline CUDP_SIMT

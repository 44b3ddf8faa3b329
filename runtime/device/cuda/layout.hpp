#pragma once
// Layout of a network for the CUDA engine: its layers, the edges (arrays of activations) between
// them, and the tables of offsets that the layers read.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/model.hpp"
#include "runtime/device/cuda/layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The layers of a network on a CUDA device, the edges between them, and the sizes of the memory
/// that they need.
struct CudaLayout {
  std::vector<CudaEdge> edges;  ///< edges between the layers; the last one has the logits
  std::vector<std::unique_ptr<CudaLayer>> layers;  ///< the input, then the network's
  CudaStorage storage;
  Precision loss_gradient_as = Precision::fp32;  ///< whether the loss's gradient is rounded to TF32

  /// Returns the granularity of micro-batches: the number of examples of a micro-batch must be a
  /// multiple of it.
  int example_group() const { return storage.uses_blas ? kSlab : 32; }
  /// Returns the number of floats of device memory that each example of a micro-batch needs.
  /// groups: number of layers with trained parameters. outputs: number of logits.
  std::int64_t floats_per_example(int groups, int outputs) const {
    std::int64_t floats = storage.saved + storage.example_gradients + storage.parts() +
                          storage.unread_parts + outputs + 2;
    floats += 2 * std::int64_t{groups} + storage.library_scratch;
    for (const CudaEdge& e : edges)
      floats += e.value.size() + (e.has_gradient ? e.gradient.size() : 0);
    return floats;
  }
};

/// Builds the memory layout of the network for CUDA. The result points into `network`, which must
/// outlive it. Throws Error if a buffer is too large for 32-bit offsets. choices: options that
/// determine how layers are computed.
CudaLayout build_layout(const Network& network, const LayoutChoices& choices = {});

}  // namespace cudp::cuda::inline CUDP_SIMT

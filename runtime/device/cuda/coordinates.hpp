#pragma once
// What coordinate-wise clipping (coordinates.hpp) keeps on the device.
#include <cstdint>
#include <vector>

#include "kernels/clipping/coordinates.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda {

/// What the passes of a network read of it.
struct CoordinatesView {
  const float* centre;   ///< [d], m shortened
  const float* inverse;  ///< [d], 1 / scale
  const float* square;   ///< [d], 1 / scale^2
  const float* product;  ///< [d], m / scale^2
  const double* shifts;  ///< by op of the graph, c of dense_square

  Transform of(const Op& op) const { return {centre + op.parameters, inverse + op.parameters}; }
};

template <class Gpu>
class DeviceCoordinates {
 public:
  /// d parameters; 0 where gradients are clipped as they are.
  DeviceCoordinates(Gpu& gpu, std::size_t d, std::size_t ops)
      : gpu_(gpu),
        mean_(gpu, d),
        deviation_(gpu, d),
        centre_(gpu, d),
        inverse_(gpu, d),
        square_(gpu, d),
        product_(gpu, d),
        parts_(gpu, d > 0 ? 2 * launch_shape(sums()).grid.x : 0),
        scale_(gpu, d > 0 ? 1 : 0),
        shifts_(gpu, d > 0 ? ops : 0) {
    mean_.clear();
    deviation_.clear();
  }

  Buffer<Gpu, float>& mean() { return mean_; }
  Buffer<Gpu, float>& deviation() { return deviation_; }
  const CoordinateScale* scale() const { return scale_.get(); }
  CoordinatesView view() const {
    return {centre_.get(), inverse_.get(), square_.get(), product_.get(), shifts_.get()};
  }

  /// Launches what makes the view from m and s.
  void refresh(const DeviceGraph& graph) {
    const auto n = static_cast<std::int64_t>(mean_.size());
    start("coordinate sums", coordinate_sums_kernel, sums());
    start("coordinate scale", finish_coordinate_sums_kernel,
          FinishCoordinateSums{parts_.get(), static_cast<int>(parts_.size() / 2), scale_.get()});
    start("coordinate arrays", coordinate_arrays_kernel,
          CoordinateArrays{mean_.get(), deviation_.get(), scale_.get(), n, centre_.get(),
                           inverse_.get(), square_.get(), product_.get()});
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      const Op& op = graph.ops[i];
      if (std::holds_alternative<Dense>(op.layer->layer))
        start("layer shift", layer_shift_kernel,
              LayerShift{centre_.get() + op.parameters, square_.get() + op.parameters,
                         op.parameter_count, shifts_.get() + i});
    }
  }

 private:
  CoordinateSums sums() const {
    return {mean_.get(), deviation_.get(), static_cast<std::int64_t>(mean_.size()), parts_.get()};
  }
  template <class Args>
  void start(const char* name, void (*kernel)(Args), const Args& args) {
    validate(args);
    gpu_.launch(name, kernel, launch_shape(args), args);
  }

  Gpu& gpu_;
  Buffer<Gpu, float> mean_;  // [d], and so the next five
  Buffer<Gpu, float> deviation_;
  Buffer<Gpu, float> centre_;
  Buffer<Gpu, float> inverse_;
  Buffer<Gpu, float> square_;
  Buffer<Gpu, float> product_;
  Buffer<Gpu, double> parts_;
  Buffer<Gpu, CoordinateScale> scale_;
  Buffer<Gpu, double> shifts_;
};

}  // namespace cudp::cuda

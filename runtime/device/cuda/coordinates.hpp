#pragma once
// The state of coordinate-wise clipping (kernels/contribution/coordinates_math.hpp) on the device.
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/contribution/coordinates.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class DeviceCoordinates {
 public:
  /// d parameters; 0 where gradients are clipped as they are.
  DeviceCoordinates(Gpu& gpu, std::size_t d, int groups)
      : gpu_(gpu),
        mean_(gpu, d),
        deviation_(gpu, d),
        centre_(gpu, d),
        inverse_(gpu, d),
        square_(gpu, d),
        product_(gpu, d),
        parts_(gpu, d > 0 ? 2 * launch_shape(sums(nullptr, nullptr)).grid.x : 0),
        scale_(gpu, d > 0 ? 1 : 0),
        shifts_(gpu, d > 0 ? static_cast<std::size_t>(groups) : 0) {
    mean_.clear();
    deviation_.clear();
  }

  Buffer<float>& mean() { return mean_; }
  Buffer<float>& deviation() { return deviation_; }
  const CoordinateScale* scale() const { return scale_.get(); }

  /// Launches what makes the view from m and s, for the cursor's step; of its shifts nothing.
  CoordinatesView refresh(const StepCursor* cursor) {
    const CoordinateSums summed = sums(cursor, parts_.get());
    launch(gpu_, "coordinate sums", coordinate_sums_kernel, summed);
    launch(gpu_, "coordinate arrays", coordinate_arrays_kernel,
           CoordinateArrays{.active = &cursor->active,
                            .mean = mean_.get(),
                            .deviation = deviation_.get(),
                            .parts = parts_.get(),
                            .count = static_cast<int>(launch_shape(summed).grid.x),
                            .scale = scale_.get(),
                            .n = static_cast<std::int64_t>(mean_.size()),
                            .centre = centre_.get(),
                            .inverse = inverse_.get(),
                            .square = square_.get(),
                            .product = product_.get()});
    return {.centre = centre_.get(),
            .inverse = inverse_.get(),
            .square = square_.get(),
            .product = product_.get(),
            .shifts = shifts_.get()};
  }

  /// The same with the shifts, which norms take layer by layer.
  CoordinatesView refresh(const CudaLayout& layout, const StepCursor* cursor) {
    const CoordinatesView view = refresh(cursor);
    LayerShifts shifts{
        .centre = view.centre, .square = view.square, .shifts = view.shifts, .layer = {}};
    const auto sum_up = [&] {
      if (shifts.count > 0) launch(gpu_, "layer shifts", layer_shifts_kernel, shifts);
      shifts.count = 0;
    };
    for (const AnyCudaLayer& layer : layout.layers) {
      if (shifts.count == LayerShifts::kMax) sum_up();
      base(layer).note_shift(shifts);
    }
    sum_up();
    return view;
  }

 private:
  CoordinateSums sums(const StepCursor* cursor, double* parts) const {
    return {.active = &cursor->active,
            .mean = mean_.get(),
            .deviation = deviation_.get(),
            .n = static_cast<std::int64_t>(mean_.size()),
            .parts = parts};
  }

  Gpu& gpu_;
  Buffer<float> mean_;  // [d], and so the next five
  Buffer<float> deviation_;
  Buffer<float> centre_;
  Buffer<float> inverse_;
  Buffer<float> square_;
  Buffer<float> product_;
  Buffer<double> parts_;
  Buffer<CoordinateScale> scale_;
  Buffer<double> shifts_;  // [groups]
};

}  // namespace cudp::cuda::inline CUDP_SIMT

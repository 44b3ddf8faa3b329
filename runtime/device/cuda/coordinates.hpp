#pragma once
// The state of coordinate-wise clipping (kernels/contribution/coordinates_math.hpp) on the device.
#include <cstdint>
#include <vector>

#include "kernels/contribution/coordinates.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

class DeviceCoordinates {
 public:
  /// d parameters; 0 where gradients are clipped as they are.
  DeviceCoordinates(Gpu& gpu, std::size_t d, int groups);

  Buffer<float>& mean() { return mean_; }
  Buffer<float>& deviation() { return deviation_; }
  const Buffer<float>& mean() const { return mean_; }
  const Buffer<float>& deviation() const { return deviation_; }
  const CoordinateScale* scale() const { return scale_.get(); }

  /// Launches what makes the view from m and s, for the cursor's step; of its shifts nothing.
  CoordinatesView refresh(const StepCursor* cursor);

  /// The same with the shifts, which norms take layer by layer.
  CoordinatesView refresh(const CudaLayout& layout, const StepCursor* cursor);

 private:
  CoordinateSums sums(const StepCursor* cursor, double* parts) const;

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

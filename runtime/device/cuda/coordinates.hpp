#pragma once
// State of coordinate-wise clipping (kernels/contribution/coordinates_math.hpp) on the device.
#include <cstdint>
#include <vector>

#include "kernels/contribution/coordinates.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The arrays of coordinate-wise clipping, which clips (gradient - m) / scale, in device memory. m
/// and scale are computed from the mean and the standard deviation of each gradient coordinate. d
/// is the number of trained parameters.
class DeviceCoordinates {
 public:
  /// Allocates the arrays. gpu: the device. d: number of trained parameters; 0 if clipping is not
  /// coordinate-wise, so that no arrays are needed. groups: number of layers with trained
  /// parameters.
  DeviceCoordinates(Gpu& gpu, std::size_t d, int groups);

  Buffer<float>& mean() { return mean_; }
  Buffer<float>& deviation() { return deviation_; }
  const Buffer<float>& mean() const { return mean_; }
  const Buffer<float>& deviation() const { return deviation_; }
  /// Returns the array of 1 / scale, one number per gradient coordinate, [d].
  const Buffer<float>& inverse() const { return inverse_; }
  const CoordinateScale* scale() const { return scale_.get(); }

  /// Launches the kernels that compute the arrays of coordinate-wise clipping, except `shifts`,
  /// from the mean and the standard deviation of each gradient coordinate. Returns the arrays'
  /// addresses. The kernels do nothing if cursor->active is 0 (no step is running).
  CoordinatesView refresh(const StepCursor* cursor);

  /// Launches the kernels that compute all arrays of coordinate-wise clipping, `shifts` included,
  /// which is needed for the gradient norms of a network that is computed layer by layer. Returns
  /// the arrays' addresses. The kernels do nothing if cursor->active is 0 (no step is running).
  /// layout: the network's memory layout.
  CoordinatesView refresh(const CudaLayout& layout, const StepCursor* cursor);

 private:
  CoordinateSums sums(const StepCursor* cursor, double* parts) const;

  Gpu& gpu_;
  Buffer<float> mean_;  // [d], like the next five
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

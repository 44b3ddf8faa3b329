#pragma once
#include <vector>

#include "kernels/contribution/coordinates_math.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

/// Computes and owns the arrays of coordinate-wise clipping (AdaCliP), which clips (gradient - m) /
/// scale. coordinate_scale() computes m and scale from the mean and the standard deviation of each
/// gradient coordinate. The arrays are in the order of the packed weights.
class PackedCoordinates {
 public:
  explicit PackedCoordinates(const CpuLayout& layout);

  /// Computes the arrays of coordinate-wise clipping from the mean m and the standard deviation s
  /// of each gradient coordinate, [d]. The result does not depend on the number of threads. team:
  /// threads that compute.
  Coordinates refresh(const std::vector<float>& mean, const std::vector<float>& deviation,
                      ThreadTeam& team);

  const CoordinateScale& scale() const { return scale_; }

 private:
  const CpuLayout& layout_;
  CoordinateScale scale_;
  // Arrays in the order of the packed weights, [Storage::packed] each; 0 in the padding.
  AlignedVector<float> mean_;
  AlignedVector<float> inverse_;
  AlignedVector<float> square_;
  AlignedVector<float> product_;
  std::vector<double> shifts_;
};

}  // namespace cudp::cpu

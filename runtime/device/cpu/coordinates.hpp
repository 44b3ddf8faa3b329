#pragma once
#include <vector>

#include "kernels/contribution/coordinates_math.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

/// The numbers that coordinate-wise clipping needs of m and s, packed as the weights are.
class PackedCoordinates {
 public:
  explicit PackedCoordinates(const CpuLayout& layout);

  /// Makes the coordinates from m and s, [d]. They do not depend on the number of threads.
  Coordinates refresh(const std::vector<float>& mean, const std::vector<float>& deviation,
                      ThreadTeam& team);

  const CoordinateScale& scale() const { return scale_; }

 private:
  const CpuLayout& layout_;
  CoordinateScale scale_;
  // [Storage::packed] each; 0 beside the parameters.
  AlignedVector<float> mean_;
  AlignedVector<float> inverse_;
  AlignedVector<float> square_;
  AlignedVector<float> product_;
  std::vector<double> shifts_;
};

}  // namespace cudp::cpu

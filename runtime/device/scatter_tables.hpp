#pragma once
#include <vector>

#include "kernels/features/scatter.hpp"
#include "models/layer.hpp"

namespace cudp {

/// Tables for a Fourier transform of n numbers: the radix of each stage (their product is n), the
/// twiddle factors, and the roots of unity for radices without unrolled code. Owns the memory to
/// which plan() points.
class FourierTables {
 public:
  explicit FourierTables(int n);
  const FourierPlan& plan() const { return plan_; }

 private:
  FourierPlan plan_;
  std::vector<float> numbers_;
};

/// Filters and Fourier tables of the scattering transform (fixed wavelet features) for images of
/// one size, as Kymatio 0.3 computes them in filter_bank.py of its scattering2d. They are computed
/// in double and stored as float. The filters are Morlet wavelets with sigma 0.8 2^j, xi 3 pi / 4 /
/// 2^j and slant 1/2, at angles (3 - l) pi / 8, for scales j = 0, 1 and l = 0..7, and a Gaussian
/// low-pass filter of sigma 1.6. As in Kymatio, their norms use the value 3.1415 for pi, so that
/// features agree.
class ScatterBank {
 public:
  /// Computes the tables for images of height x width pixels. Throws std::invalid_argument if one
  /// of the two is below 4.
  ScatterBank(int height, int width);
  ScatterBank(const ScatterBank&) = delete;
  ScatterBank& operator=(const ScatterBank&) = delete;
  ~ScatterBank() = default;

  const ScatterTables& tables() const { return tables_; }

 private:
  std::vector<std::int32_t> row_from_, column_from_;
  std::vector<float> psi_;
  std::vector<float> low_[2][2];  // [level][rows, columns]
  std::vector<FourierTables> plans_;
  ScatterTables tables_;
};

/// Returns the shape of the scattering features of an image with shape `image`.
Shape scattered_shape(const Shape& image);

}  // namespace cudp

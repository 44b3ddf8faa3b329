#pragma once
#include <vector>

namespace cudp {

struct Eigenpairs {
  std::vector<double> values;  ///< [count]
  std::vector<float> vectors;  ///< [count, d]
};

/// The `count` largest eigenvalues of a symmetric matrix [d, d], largest first, with their
/// eigenvectors: orthonormal, the largest number of each positive. By LAPACK's dsyevr. Throws Error
/// where that fails.
Eigenpairs leading_eigenvectors(std::vector<double> matrix, int d, int count);

}  // namespace cudp

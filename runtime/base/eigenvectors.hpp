#pragma once
#include <vector>

namespace cudp {

struct Eigenpairs {
  std::vector<double> values;  ///< [count], largest first
  std::vector<float> vectors;  ///< [count, d], one eigenvector a row
};

/// Returns the `count` largest eigenvalues of a symmetric matrix [d, d], largest first, with their
/// eigenvectors, by Eigen's SelfAdjointEigenSolver. The eigenvectors are orthonormal; the entry of
/// largest absolute value of each is positive. Throws Error if the solver does not converge.
Eigenpairs leading_eigenvectors(std::vector<double> matrix, int d, int count);

}  // namespace cudp

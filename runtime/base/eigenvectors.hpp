#pragma once
#include <vector>

namespace cudp {

/// The `count` largest eigenvalues of a matrix [d, d], and their eigenvectors.
struct Eigenpairs {
  std::vector<double> values;  ///< the eigenvalues, [count], largest first
  std::vector<float> vectors;  ///< the eigenvectors, [count, d], one per row
};

/// Returns the `count` largest eigenvalues of a symmetric matrix [d, d], largest first, with their
/// eigenvectors, computed by Eigen's SelfAdjointEigenSolver. Eigenvectors are orthonormal, and the
/// entry with the largest absolute value in each is positive. Throws Error if the solver does not
/// converge.
Eigenpairs leading_eigenvectors(std::vector<double> matrix, int d, int count);

}  // namespace cudp

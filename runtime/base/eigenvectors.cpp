#include "runtime/base/eigenvectors.hpp"

#include <algorithm>
#include <cmath>

#define EIGEN_MPL2_ONLY
#include <Eigen/Eigenvalues>

#include "runtime/base/error.hpp"

namespace cudp {

Eigenpairs leading_eigenvectors(std::vector<double> matrix, int d, int count) {
  const auto n = static_cast<std::size_t>(d);
  const auto k = static_cast<std::size_t>(count);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::Map<const Eigen::MatrixXd>(matrix.data(), d, d));
  if (solver.info() != Eigen::Success)
    throw Error(
        "the eigenvectors of the covariance were not found: Eigen's solver did not converge");
  // Eigen returns the eigenvalues in ascending order, so the last `count` are the largest.
  const double* const values = solver.eigenvalues().data() + (n - k);
  const double* const vectors = solver.eigenvectors().data() + (n - k) * n;  // column-major
  Eigenpairs leading{.values = std::vector<double>(k), .vectors = std::vector<float>(k * n)};
  for (std::size_t c = 0; c < k; ++c) {
    leading.values[c] = values[k - 1 - c];
    const double* v = vectors + (k - 1 - c) * n;
    const double largest =
        *std::max_element(v, v + n, [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    for (std::size_t i = 0; i < n; ++i)
      leading.vectors[c * n + i] = static_cast<float>(largest < 0.0 ? -v[i] : v[i]);
  }
  return leading;
}

}  // namespace cudp

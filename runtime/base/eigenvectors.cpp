#include "runtime/base/eigenvectors.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#define LAPACK_COMPLEX_CPP
#include <lapacke.h>

#include "runtime/base/error.hpp"

namespace cudp {

Eigenpairs leading_eigenvectors(std::vector<double> matrix, int d, int count) {
  const auto n = static_cast<std::size_t>(d);
  const auto k = static_cast<std::size_t>(count);
  std::vector<double> values(n);
  std::vector<double> vectors(n * k);  // column-major [d, count], values ascending
  std::vector<lapack_int> support(2 * n);
  lapack_int found = 0;
  const lapack_int failed =
      LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', d, matrix.data(), d, 0.0, 0.0, d - count + 1,
                     d, 0.0, &found, values.data(), vectors.data(), d, support.data());
  if (failed != 0 || found != count)
    throw Error("the eigenvectors of the covariance were not found (dsyevr: " +
                std::to_string(failed) + ")");
  Eigenpairs leading{.values = std::vector<double>(k), .vectors = std::vector<float>(k * n)};
  for (std::size_t c = 0; c < k; ++c) {
    leading.values[c] = values[k - 1 - c];
    const double* v = vectors.data() + (k - 1 - c) * n;
    const double largest =
        *std::max_element(v, v + n, [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    for (std::size_t i = 0; i < n; ++i)
      leading.vectors[c * n + i] = static_cast<float>(largest < 0.0 ? -v[i] : v[i]);
  }
  return leading;
}

}  // namespace cudp

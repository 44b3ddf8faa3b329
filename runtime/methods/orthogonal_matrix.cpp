#include "runtime/methods/orthogonal_matrix.hpp"

#include <cstddef>
#include <string>

#define LAPACK_COMPLEX_CPP
#include <lapacke.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

void check(lapack_int failed, const char* function) {
  if (failed != 0)
    throw Error(std::string("no orthogonal matrix was found (") + function + ": " +
                std::to_string(failed) + ")");
}

}  // namespace

void make_orthogonal(std::vector<double>& matrix, int rows, int columns) {
  const auto n = static_cast<std::size_t>(columns);
  std::vector<double> reflectors(n);
  check(LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, rows, columns, matrix.data(), columns, reflectors.data()),
        "dgeqrf");
  std::vector<double> signs(n);
  for (std::size_t c = 0; c < n; ++c) signs[c] = matrix[c * n + c] < 0.0 ? -1.0 : 1.0;
  check(LAPACKE_dorgqr(LAPACK_ROW_MAJOR, rows, columns, columns, matrix.data(), columns,
                       reflectors.data()),
        "dorgqr");
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] *= signs[i % n];
}

}  // namespace cudp

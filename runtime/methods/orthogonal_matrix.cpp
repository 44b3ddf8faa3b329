#include "runtime/methods/orthogonal_matrix.hpp"

#define EIGEN_MPL2_ONLY
#include <Eigen/QR>

namespace cudp {

void make_orthogonal(std::vector<double>& matrix, int rows, int columns) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix> values(matrix.data(), rows, columns);
  const Eigen::HouseholderQR<Matrix> qr(values);
  values = qr.householderQ() * Matrix::Identity(rows, columns);
  for (int c = 0; c < columns; ++c)
    if (qr.matrixQR()(c, c) < 0.0) values.col(c) = -values.col(c);
}

}  // namespace cudp

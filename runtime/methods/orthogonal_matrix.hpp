#pragma once
#include <vector>

namespace cudp {

/// Makes the columns of a matrix orthonormal, one after the other: Q of its QR decomposition with
/// the diagonal of R positive (Saxe, McClelland, Ganguli 2014, from normal numbers).
/// matrix [rows, columns], row-major, rows >= columns >= 1, of full rank.
/// Throws Error where LAPACK fails.
void make_orthogonal(std::vector<double>& matrix, int rows, int columns);

}  // namespace cudp

#pragma once
#include <vector>

namespace cudp {

/// Makes the columns of a matrix orthonormal, one after another: Q of its QR decomposition with
/// positive diagonal of R (Saxe, McClelland, Ganguli 2014, from normal numbers). matrix [rows,
/// columns], row-major. Requires rows >= columns >= 1 and full rank.
void make_orthogonal(std::vector<double>& matrix, int rows, int columns);

}  // namespace cudp

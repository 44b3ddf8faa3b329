#pragma once
#include <vector>

namespace cudp {

/// Makes the columns of a matrix orthonormal (Gram-Schmidt): the Q of its QR decomposition whose R
/// has a positive diagonal (Saxe, McClelland, Ganguli 2014, from normal numbers). matrix: [rows,
/// columns], row-major, replaced. Requires rows >= columns >= 1 and full rank.
void make_orthogonal(std::vector<double>& matrix, int rows, int columns);

}  // namespace cudp

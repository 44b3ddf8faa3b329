#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/eigenvectors.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

// Differentially private principal components: Dwork, Talwar, Thakurta, Zhang 2014, "Analyze
// Gauss", Algorithm 1. Every row x is clipped to norm 1; the sum of x x^T is released with Gaussian
// noise; its leading eigenvectors, a function of what was released, are the directions that rows
// are projected on. Rows are not centred: the number of rows is not needed, and nothing else is
// paid for.
//
// Sensitivity: one row added or removed changes the sum by x x^T, of Frobenius norm |x|^2 <= 1. It
// is exactly that, rounding included: rows are cut to whole numbers of 2^-row_bits (towards zero,
// and their norm is checked in those units), so that sums are exact.
//
// Departs from the paper: its noise has variance sigma^2 in every entry of the upper triangle. In
// Frobenius norm an entry off the diagonal counts twice, so variance sigma^2 / 2 is enough there,
// at the same privacy. The gate releases the diagonal and what is above it one after the other: two
// standard deviations, two steps of one stream. Together they are one Gaussian mechanism of
// noise multiplier sigma, since the squares of what a row moves them by, the second one's counted
// twice, add up to at most 1.

/// Throws InputError unless examples have at least `dimensions` numbers, and no more than fit.
void check_pca(const Dataset& data, std::int64_t dimensions);

/// 13, or fewer where sums of up to `max_examples` products would not fit 2^53, or noise of sigma
/// would be more than 2^40 of their units, 2^(-2 bits). max_examples: a public bound on the number
/// of rows.
int row_bits(double max_examples, double sigma = 1.0);

/// Sum of x x^T over rows clipped to whole numbers of 2^-bits, [d, d] with d = data.shape.size(),
/// symmetric: multiples of 2^(-2 bits), exact where bits are row_bits. A row that is not finite
/// contributes nothing. Does not depend on the number of threads (0: every core).
std::vector<double> clipped_second_moments(const Dataset& data, int bits, int threads);

/// matrix [d, d] += E, symmetric: entries on the diagonal N(0, sigma^2), off it N(0, sigma^2 / 2),
/// rounded as the gate does. sigma in units of the sensitivity, 1; entries are multiples of
/// 2^(-2 bits).
void add_symmetric_noise(std::vector<double>& matrix, int d, int bits, double sigma, Gate& gate);

/// Scales the vectors so that rows projected on them have the same second moment along each, and
/// the same sum of them as before: by sqrt(mean eigenvalue / eigenvalue). Noise can make an
/// eigenvalue small or negative: one counts as at least a thousandth of the largest, and where that
/// is not positive nothing is scaled.
void whiten(Eigenpairs& pairs);

/// The sum, its noise and its directions: a release of the Gaussian mechanism with noise multiplier
/// sigma. Whitening is a function of what was released. Returns [dimensions, d].
/// max_examples: as above. Of ranks `data` is this one's range.
std::vector<float> dp_pca(const Dataset& data, double max_examples, int dimensions, bool whitened,
                          double sigma, Gate& gate, int threads, Ranks& ranks = alone());

/// Examples become their products with the rows of projection [k, data.shape.size()]: shape {k}.
/// A function of each example alone, once the projection is there.
void project(Dataset& data, const std::vector<float>& projection, int threads);

}  // namespace cudp

#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/eigenvectors.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

// Differentially private principal components: Dwork, Talwar, Thakurta, Zhang 2014, "Analyze
// Gauss", Algorithm 1. Every row x is clipped to norm 1. The sum of x x^T is released with Gaussian
// noise. Its leading eigenvectors, which are post-processing of the release, are the directions
// that rows are projected on. Rows are not centred, so the number of rows is not needed and nothing
// else spends privacy.
//
// Sensitivity: adding or removing one row changes the sum by x x^T, whose Frobenius norm is |x|^2
// <= 1. The bound holds exactly, rounding included: entries of rows are rounded towards zero to
// multiples of 2^-row_bits, and their norm is checked in those units, so that sums are exact.
//
// Difference from the paper: its noise has variance sigma^2 in every entry of the upper triangle.
// In the Frobenius norm an entry off the diagonal counts twice, so variance sigma^2 / 2 suffices
// there for the same privacy. The gate releases the diagonal first and the entries above it next:
// they have different standard deviations, and are two steps of one random stream. Together they
// are one Gaussian mechanism with noise multiplier sigma: the squared changes that a row makes,
// those off the diagonal counted twice, add up to at most 1.

/// Throws InputError if examples have fewer features than the `dimensions` principal components to
/// compute, or so many that their covariance matrix would be too large.
void check_pca(const Dataset& data, std::int64_t dimensions);

/// Returns b, the number of bits after the binary point to which the entries of clipped rows are
/// rounded: 13, or fewer so that, in multiples of 2^(-2b), a sum of `max_examples` products stays
/// below 2^53, and noise with standard deviation sigma below 2^40. max_examples: public upper bound
/// on the number of rows.
int row_bits(double max_examples, double sigma = 1.0);

/// Returns the sum of x x^T over all rows, each clipped to norm 1 by clip_row with `bits`: a
/// symmetric matrix [d, d], d = data.shape.size(). Entries are multiples of 2^(-2 bits). They are
/// exact if `bits` is at most the result of row_bits(). A row with a NaN or an infinity adds
/// nothing. The result does not depend on the number of threads (0: every core).
std::vector<double> clipped_second_moments(const Dataset& data, int bits, int threads);

/// Adds symmetric Gaussian noise to a matrix [d, d], drawn by `gate`: N(0, sigma^2) on the
/// diagonal, N(0, sigma^2 / 2) off it, rounded to multiples of a power of two. Requires that the
/// matrix's entries are multiples of 2^(-2 bits), and that its sensitivity is 1: adding or removing
/// one row of the data changes it by a matrix of Frobenius norm at most 1.
void add_symmetric_noise(std::vector<double>& matrix, int d, int bits, double sigma, Gate& gate);

/// Scales the eigenvectors so that projected rows have the same mean square along each of them,
/// with an unchanged total: multiplies each by sqrt(mean eigenvalue / its eigenvalue). Noise can
/// make an eigenvalue too small or negative, so each is first raised to at least a thousandth of
/// the largest one. Does nothing if the largest one is not positive.
void whiten(Eigenpairs& pairs);

/// Computes differentially private principal components of the data: [dimensions, d], one direction
/// a row, with d numbers per example. The privacy cost is that of one Gaussian mechanism with noise
/// multiplier sigma; `gate` draws its noise. whitened: whether components are scaled to equal
/// variance, which costs no privacy. max_examples: public upper bound on the number of rows. If
/// several ranks (processes) train together, all of them call this, each with its own range of the
/// data.
std::vector<float> dp_pca(const Dataset& data, double max_examples, int dimensions, bool whitened,
                          double sigma, Gate& gate, int threads, Ranks& ranks = alone());

/// Replaces each example by its inner products with the k rows of `projection` [k,
/// data.shape.size()], e.g. principal components; the shape of an example becomes {k}. Given the
/// projection, the result for an example depends on this example alone.
void project(Dataset& data, const std::vector<float>& projection, int threads);

}  // namespace cudp

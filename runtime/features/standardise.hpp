#pragma once
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

// Differentially private standardisation of scattering features: Tramer & Boneh 2021,
// "Differentially Private Learning Needs Better Features (or Much More Data)", data normalisation.
// An example contributes one row: for each channel the mean over its pixels, and the mean of the
// squares, both in units of the channel's usual size (without which the noise would exceed the
// channels of order 2). Rows are divided by 2 sqrt(channels) and clipped to norm 1; their sum is
// released with Gaussian noise. By what was released channels are shifted to mean 0, those of
// orders 0 and 1 scaled to variance 1, and those of order 2 to a smaller one: they are the most and
// the weakest, and at variance 1 would have most of a gradient's norm.
//
// Sensitivity: one example more or less changes the sum by a vector of norm at most 1, rounding
// included (clipped_row.hpp).

/// Throws InputError unless the examples have scattering features.
void check_standardise(const Dataset& data);

/// 24, or fewer where sums of up to `max_examples` rows would not fit 2^53, or noise of sigma would
/// be more than 2^40 of its units. max_examples: a public bound on the number of rows.
int moment_bits(double max_examples, double sigma = 1.0);

/// Sum of the clipped rows in whole numbers of 2^-bits: [2 channels], exact where bits are
/// moment_bits. Does not depend on the number of threads (0: every core).
std::vector<double> clipped_moments(const Dataset& data, int bits, int threads);

/// Scale and shift of every channel, [2, channels]: a release of the Gaussian mechanism with noise
/// multiplier sigma. size: number of examples as it is known to the public, max_examples: a bound
/// on the real one. second_order: standard deviation that channels of order 2 get; all others
/// get 1. Of ranks `data` is this one's range.
std::vector<float> dp_channel_scaling(const Dataset& data, double size, double max_examples,
                                      double sigma, double second_order, Gate& gate, int threads,
                                      Ranks& ranks = alone());

/// x <- scale x + shift in every channel of every example.
void scale_channels(Dataset& data, const std::vector<float>& scaling, int threads);

}  // namespace cudp

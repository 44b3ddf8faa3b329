#pragma once
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

// Differentially private standardisation of scattering features: Tramer & Boneh 2021,
// "Differentially Private Learning Needs Better Features (or Much More Data)", data normalisation.
// An example contributes one row with two numbers per channel: the mean over its pixels, and the
// mean of the squares. Both are in units of the channel's typical size; without these units the
// noise would exceed the channels of order 2. Rows are divided by 2 sqrt(channels) and clipped to
// norm 1, and their sum is released with Gaussian noise. With the released moments, channels are
// shifted to mean 0. Channels of orders 0 and 1 are scaled to variance 1, those of order 2 to a
// smaller one: they are the most numerous and the weakest, and with variance 1 they would dominate
// the norm of a gradient.
//
// Sensitivity: adding or removing one example changes the sum by a vector of norm at most 1,
// rounding included (clipped_row.hpp).

/// Throws InputError unless the examples have scattering features.
void check_standardise(const Dataset& data);

/// Returns the number of fraction bits to which clipped rows of statistics are rounded: 24, or
/// fewer, so that sums of up to `max_examples` rows stay below 2^53, and noise with standard
/// deviation sigma below 2^40, both in multiples of 2^-bits. max_examples: public upper bound on
/// the number of rows.
int moment_bits(double max_examples, double sigma = 1.0);

/// Returns the sum of one clipped row per example, [2 channels], in multiples of 2^-bits. A row has
/// the mean and the mean square of each channel over the pixels (see the head of this file). The
/// sum is exact if bits are moment_bits. The result does not depend on the number of threads (0:
/// every core).
std::vector<double> clipped_moments(const Dataset& data, int bits, int threads);

/// Computes the differentially private scale and shift of every channel, [2, channels]: one release
/// of the Gaussian mechanism with noise multiplier sigma. size: number of examples; the noisy one
/// if it is private. max_examples: upper bound on the true number. second_order: standard deviation
/// to which scattering channels of order 2 are scaled; all others get 1. With several ranks `data`
/// is this rank's range.
std::vector<float> dp_channel_scaling(const Dataset& data, double size, double max_examples,
                                      double sigma, double second_order, Gate& gate, int threads,
                                      Ranks& ranks = alone());

/// Replaces each value x by scale x + shift of its channel, in every example. scaling: [2,
/// channels].
void scale_channels(Dataset& data, const std::vector<float>& scaling, int threads);

}  // namespace cudp

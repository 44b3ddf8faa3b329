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

/// Throws InputError unless the examples' features are scattering coefficients of images.
void check_standardise(const Dataset& data);

/// Returns the number of bits after the binary point to which each example's clipped row of means
/// and mean squares is rounded: 24, or fewer so that, in multiples of 2^-bits, sums of up to
/// `max_examples` rows stay below 2^53, and noise with standard deviation sigma below 2^40.
/// max_examples: public upper bound on the number of rows.
int moment_bits(double max_examples, double sigma = 1.0);

/// Returns the sum over all examples of one row per example, [2 channels], in multiples of 2^-bits.
/// The row of an example has the mean and the mean square of each channel over the image's pixels,
/// clipped to norm 1. The sum is exact if `bits` is the result of moment_bits(). The result does
/// not depend on the number of threads (0: every core).
std::vector<double> clipped_moments(const Dataset& data, int bits, int threads);

/// Computes a differentially private scale and shift for every channel, [2, channels]. The privacy
/// cost is that of one Gaussian mechanism with noise multiplier sigma; `gate` draws its noise.
/// size: number of examples, or its noisy estimate if it is private. max_examples: public upper
/// bound on the true number. second_order: standard deviation to which channels with second-order
/// scattering coefficients are scaled; all others get 1. If several ranks (processes) train
/// together, all of them call this, each with its own range of the data.
std::vector<float> dp_channel_scaling(const Dataset& data, double size, double max_examples,
                                      double sigma, double second_order, Gate& gate, int threads,
                                      Ranks& ranks = alone());

/// Replaces each value x of each example by scale * x + shift, where scale and shift are those of
/// the value's channel. scaling: scales and shifts of the channels, [2, channels].
void scale_channels(Dataset& data, const std::vector<float>& scaling, int threads);

}  // namespace cudp

#pragma once
#include <cstddef>
#include <vector>

#include "models/layer.hpp"
#include "runtime/config/normalise.hpp"

namespace cudp {

/// Normalises each example's features, in place: divides its channels into `groups` groups of
/// neighbouring channels, and normalises each group by its mean and variance in that example. This
/// is group norm (Wu & He 2018) without weights, which Tramer & Boneh 2021 put before their models.
/// The result depends on each example alone, so no privacy is spent. values: [examples, shape].
/// Throws std::invalid_argument unless groups >= 1 divides the number of channels.
void normalise_groups(std::vector<float>& values, const Shape& shape, int groups, int threads);

/// Normalises each row of a matrix, in place. A row's result depends on this row alone, so no
/// privacy is spent. values: the matrix, [rows, width]. how:
///   unit: divides by the L2 norm; a row of zeros stays as it is
///   layer: (x - mean) / sqrt(variance + 1e-5)
/// Sums are in double, so that no finite row overflows. A row with a NaN or an infinity becomes all
/// zeros.
void normalise_rows(std::vector<float>& values, std::size_t width, Normalise how, int threads);

}  // namespace cudp

#pragma once
#include <vector>

#include "models/layer.hpp"

namespace cudp {

/// Normalises each group of neighbouring channels of each example by that example's own mean and
/// variance: group norm (Wu & He 2018) without weights, as Tramer & Boneh 2021 put it before their
/// models. An example's result depends on that example alone, so it costs no privacy.
/// values: [examples, shape]; groups >= 1 divides the channels. Throws std::invalid_argument.
void normalise_groups(std::vector<float>& values, const Shape& shape, int groups, int threads);

}  // namespace cudp

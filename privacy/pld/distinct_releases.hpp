#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/pld/composed_loss.hpp"

namespace cudp::privacy::pld {

/// The releases' dominating losses, equal releases together. Of more than max_groups different
/// ones, Gaussian, Poisson-sampled and fixed-size releases are grouped by noise and sampling rate:
/// a group counts from above as its least noise and highest rate, from below as the opposite. The
/// loss grows with the rate and falls with the noise: less noise is undone by adding some, a higher
/// rate by leaving examples out.
std::vector<DistinctLoss> distinct_losses(std::span<const Release> releases, Change change,
                                          std::uint64_t k, std::size_t max_groups);

}  // namespace cudp::privacy::pld

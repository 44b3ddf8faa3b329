#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/pld/composed_loss.hpp"

namespace cudp::privacy::pld {

/// Returns the dominating losses of the releases, with equal releases merged. If there are more
/// than max_groups different ones, Gaussian and Poisson-sampled releases are grouped by noise and
/// sampling rate: from above a group counts with its least noise and highest rate, from below with
/// the opposite. The loss increases with the rate and decreases with the noise: less noise can be
/// undone by adding some, a higher rate by leaving examples out.
std::vector<DistinctLoss> distinct_losses(std::span<const Release> releases, Change change,
                                          std::uint64_t k, std::size_t max_groups);

}  // namespace cudp::privacy::pld

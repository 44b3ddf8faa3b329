#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/pld/allocation.hpp"
#include "privacy/pld/composed_loss.hpp"

namespace cudp::privacy::pld {

/// Returns bounds on the privacy loss of each different release, with the number of times it
/// occurs. change, k: k examples are changed in this way. If there are more than max_groups
/// different ones, Gaussian and Poisson-sampled releases are grouped by noise and sampling rate: in
/// the upper bound a group counts with its least noise and highest rate, in the lower bound with
/// its most noise and lowest rate. The loss increases with the rate and decreases with the noise:
/// less noise can be undone by adding some, a higher rate by leaving examples out. Epochs of random
/// allocation (AllocatedGaussian) are merged only if they are equal. grid: accuracy of the tables
/// that bound these epochs. from_below: whether lower bounds on the losses of these epochs are
/// computed; otherwise such an epoch counts as no loss in the lower bound.
std::vector<DistinctLoss> distinct_losses(std::span<const Release> releases, Change change,
                                          std::uint64_t k, std::size_t max_groups,
                                          const AllocationGrid& grid = {}, bool from_below = true);

/// Returns how many of the releases are epochs of more than one step under random allocation (each
/// example in one random step of the epoch).
double allocated_epochs(std::span<const Release> releases);

}  // namespace cudp::privacy::pld

#pragma once
#include <optional>
#include <span>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// Returns the noise multiplier of the release that features need (principal components, or moments
/// of the channels); 0 if they need none. It is a function of public settings. unit_rows: see
/// TrainingSize.
double feature_noise(const TrainConfig& config, std::uint64_t unit_rows);

/// Returns the releases from a method's budget before its own: the number of examples, if that is
/// private and has no part of its own in a split, and the release that features need. Both have
/// Gaussian noise.
std::vector<privacy::Release> releases_before(const TrainConfig& config, const TrainingSize& size,
                                              const std::optional<privacy::CountSplit>& split);

/// Returns the mu of such releases together: for one example they are like one release with
/// Gaussian noise 1 / mu (Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 3.3). 0 if there are
/// none. Throws std::invalid_argument for any other mechanism.
double mu_of(std::span<const privacy::Release> releases);

}  // namespace cudp

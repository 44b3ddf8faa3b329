#pragma once
#include <optional>
#include <span>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// Noise multiplier of the release that features rest on (principal components, or the channels'
/// moments); 0 where they rest on none. A function of public settings. unit_rows: those of a unit,
/// TrainingSize.
double feature_noise(const TrainConfig& config, std::uint64_t unit_rows);

/// The releases before a method's own, of its budget: the number of examples, where that is private
/// and has no part of its own in a split, and what features rest on, where they do. Gaussian noise
/// both.
std::vector<privacy::Release> releases_before(const TrainConfig& config, const TrainingSize& size,
                                              const std::optional<privacy::CountSplit>& split);

/// Such releases together are, for one example, as one of Gaussian noise 1 / mu (Dong, Roth, Su
/// 2019, arXiv:1905.02383, Corollary 3.3). 0 where there are none. Throws std::invalid_argument for
/// any other mechanism.
double mu_of(std::span<const privacy::Release> releases);

}  // namespace cudp

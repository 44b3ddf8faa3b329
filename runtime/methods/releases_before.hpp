#pragma once
#include <optional>
#include <span>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// Returns the noise multiplier of the statistics from which features are computed (principal
/// components, or means and variances of channels); 0 if features need none of these. Depends on
/// public settings only. unit_rows: maximum number of examples of one unit of privacy.
double feature_noise(const TrainConfig& config, std::uint64_t unit_rows);

/// Returns the Gaussian releases that are charged to a method's budget before training. These are
/// the number of examples, if it is private and has no part of the budget of its own (split is
/// empty), and the statistics from which features are computed.
std::vector<privacy::Release> releases_before(const TrainConfig& config, const TrainingSize& size,
                                              const std::optional<privacy::CountSplit>& split);

/// Returns mu of the single Gaussian mechanism (Gaussian DP) that is equivalent to all of
/// `releases` together, for neighbours that differ by one example: a release with noise multiplier
/// 1 / mu (Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 3.3). Returns 0 if there are no
/// releases. Throws std::invalid_argument if a release is not of the Gaussian mechanism.
double mu_of(std::span<const privacy::Release> releases);

}  // namespace cudp

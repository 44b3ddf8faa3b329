#pragma once
#include <cstdint>
#include <set>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/findings.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

// Numbers of the random streams, as in kernels/random/random.hpp.
inline constexpr std::uint32_t kSampling = 1;
inline constexpr std::uint32_t kNoise = 2;
inline constexpr std::uint32_t kSize = 4;
inline constexpr std::uint32_t kNormTotal = 6;
inline constexpr std::uint32_t kLargestNorms = 7;
inline constexpr std::uint32_t kSelection = 8;
inline constexpr std::uint32_t kCovariance = 9;
inline constexpr std::uint32_t kMoments = 10;
inline constexpr std::uint32_t kCount = 11;
inline constexpr std::uint32_t kHoldout = 12;

/// Kinds of releases that a run makes; they follow from its training method, and determine which
/// checks apply.
struct Kinds {
  bool known = false;  ///< whether the method's name is known
  /// Whether the method releases noisy sums of clipped gradients over random batches and updates
  /// the parameters by an optimizer, as DP-SGD does. Such releases are made by the trainer's
  /// engine, all others by its host code.
  bool engine = false;
  /// Random streams whose noise is added by host code, outside of the engine.
  std::set<std::uint32_t> host_streams;
  bool choices = false;  ///< whether the method releases noisy choices, e.g. of the best score
};
/// Returns the kinds of releases that the certificate's training method makes.
Kinds kinds_of(const StatedNumbers& certificate);

/// Returns the number of steps of an epoch: number of examples / batch size, rounded, at least 1.
std::uint64_t steps_per_epoch(const StatedNumbers& certificate, const Settings& settings);

/// Checks the numbers that a certificate states against each other, the ledger and the settings,
/// and that its method is known. Adds an entry to `findings` for each difference. charges: entries
/// of the ledger; null if there is no ledger. kinds: releases of the method. bounds: cache of the
/// accountant's results.
void check_certificate(const StatedNumbers& certificate, const Charges* charges,
                       const Settings& settings, const Kinds& kinds, Bounds& bounds,
                       Findings& findings);

}  // namespace cudp::verify

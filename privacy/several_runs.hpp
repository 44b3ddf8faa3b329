#pragma once
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

// Neighbours differ by one unit of privacy, of up to `group` examples.

/// A training whose releases were all fixed before the first of them.
struct PlannedRun {
  std::vector<Release> releases;
};
/// A training whose releases were chosen on the way, each by looking at those before: that of a
/// noisy number of examples and of steps that follow from it. An odometer counts them as they were;
/// no bound of releases that are fixed ahead holds.
struct ChosenRun {
  std::vector<Release> releases;
};
/// A training whose releases went through a filter (filter.hpp): whatever they were, their
/// divergence is at most `divergence` at `order` and at all orders below, as divergences never fall
/// with order.
struct RenyiFilteredRun {
  double order = 0.0;       ///< > 1
  double divergence = 0.0;  ///< nats
};
/// A training with a zCDP filter: its divergence is at most rho times the order, at every order.
struct ZcdpFilteredRun {
  double rho = 0.0;
};
/// A training of which nothing but (epsilon, delta)-DP is known.
struct StatedRun {
  double epsilon = 0.0, delta = 0.0;
};

/// A training on private data as an accountant sees it: what it spends, for adding or removing one
/// unit. A planned or chosen run's releases are those of single examples; what a filter allowed,
/// and what a run states, is for units already.
struct RunSpending {
  std::variant<PlannedRun, ChosenRun, RenyiFilteredRun, ZcdpFilteredRun, StatedRun> run;
  /// A probability beside it, with which nothing is promised: the part of a certificate's delta
  /// that is for rounding.
  double failure = 0.0;
};

/// Epsilon at `delta` of all the runs together, where each may have been chosen by looking at those
/// before it: its method, its settings, whether there was one at all, and when to stop.
///
/// The odometer (odometer.hpp) at its fixed orders, on half of delta. The other half is for deltas
/// that only add up: those of stated runs, and `failure`. Both halves are fixed ahead; they do not
/// depend on the runs. A stated run's epsilon enters as a divergence at every order.
///
/// Throws std::invalid_argument where a number is out of range, std::domain_error where a run has
/// no bound, where the deltas of the runs exceed their half, or no order is finite.
double epsilon_as_chosen(std::span<const RunSpending> runs, double delta, std::uint64_t group = 1);

/// Epsilon where every run was fixed before the first one began: the least that privacy loss
/// distributions of all their releases, or their Renyi divergences, give. Runs with filters count
/// by their divergences alone; beside a chosen run that is epsilon_as_chosen. Never above
/// epsilon_as_chosen. Throws what that throws, but for deltas, which may add up to nearly all of
/// delta.
double epsilon_fixed_ahead(std::span<const RunSpending> runs, double delta,
                           std::uint64_t group = 1);

}  // namespace cudp::privacy

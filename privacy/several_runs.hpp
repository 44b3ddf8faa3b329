#pragma once
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/stopping.hpp"

namespace cudp::privacy {

// Composition of several trainings. Neighbours differ by one unit of privacy, of up to `group`
// examples.

/// Training whose releases (mechanisms, noise and number) were all fixed before the first of them
/// was made.
struct PlannedRun {
  std::vector<Release> releases;
};
/// Training whose releases were chosen adaptively, each after looking at the earlier ones: for
/// example a noisy number of examples and steps that depend on it. An odometer counts the actual
/// releases; a bound for releases fixed in advance does not hold.
struct ChosenRun {
  std::vector<Release> releases;
};
/// Training whose releases went through a filter (filter.hpp). Whatever they were, their divergence
/// is at most `divergence` at `order` and at all lower orders, because divergences never decrease
/// with the order.
struct RenyiFilteredRun {
  double order = 0.0;       ///< > 1
  double divergence = 0.0;  ///< bound on the divergence [nats]
};
/// Training whose releases a zCDP filter admitted: its Renyi divergence of every order alpha is at
/// most rho alpha.
struct ZcdpFilteredRun {
  double rho = 0.0;
};
/// Training of which only an (epsilon, delta) guarantee is known.
struct StatedRun {
  double epsilon = 0.0, delta = 0.0;
};

struct RunSpending;
/// Trainings of which only the best is released, out of a random number of them (selection.hpp).
struct TunedRun {
  StoppingLaw law;
  /// Privacy that each candidate spends: one entry for the training of every candidate, and one for
  /// the score of every candidate on held-out rows. A unit of privacy has its rows either in the
  /// training set or among the held-out rows. No entry may be a ChosenRun or a TunedRun.
  std::vector<RunSpending> candidates;
};

/// Privacy that one training spends, for adding or removing one unit of privacy. A PlannedRun or
/// ChosenRun has releases that are stated for single examples, so a unit of several examples counts
/// as a group; the bounds of a filtered run or a StatedRun are for whole units.
struct RunSpending {
  std::variant<PlannedRun, ChosenRun, RenyiFilteredRun, ZcdpFilteredRun, StatedRun, TunedRun> run;
  /// Probability of an event on which there is no guarantee, e.g. that the sampler's rounding
  /// changes a result. It is added to the delta that follows from `run`.
  double failure = 0.0;
};

/// Cost of a training, for a filter that adds up Renyi divergences of one order.
struct RunCost {
  /// Renyi divergence of all the training's releases [nats]; may be infinite.
  double divergence = 0.0;
  double failure = 0.0;  ///< probability of an event on which there is no guarantee
};
/// Returns the cost of a training: its Renyi divergence at this order, and its probability of
/// failure. group: maximum number of examples of a unit of privacy. Throws std::invalid_argument if
/// a number is out of range, std::domain_error if no bound is known for one of its mechanisms.
RunCost cost_at(const RunSpending& run, double order, std::uint64_t group = 1);

/// Returns epsilon at `delta` for all the runs together, if each may have been chosen after looking
/// at the earlier ones: its method, its settings, whether to run it at all, and when to stop.
///
/// Uses the odometer (odometer.hpp) at its fixed orders, with half of delta. The other half is for
/// deltas that simply add: those of stated runs, and `failure`. Both halves are fixed in advance;
/// they do not depend on the runs. A stated run counts with its epsilon as Renyi divergence at
/// every order.
///
/// group: maximum number of examples of a unit of privacy. Throws std::invalid_argument if a number
/// is out of range, std::domain_error if no bound is known for a run, if the deltas of the runs
/// exceed their half, or if the divergence is infinite at every order.
double epsilon_as_chosen(std::span<const RunSpending> runs, double delta, std::uint64_t group = 1);

/// Returns whether the run used random allocation (AllocatedGaussian), which has no Renyi
/// divergence: its cost is infinite at every order, and epsilon_as_chosen refuses it. It can be a
/// StatedRun instead.
bool allocates(const RunSpending& run);

/// Returns epsilon if every run was fixed before the first one started: the smaller of two bounds,
/// by privacy loss distributions and by Renyi divergences. Filtered runs have only a Renyi
/// divergence, runs with random allocation only a loss distribution. If one of the runs is a
/// ChosenRun, the result is epsilon_as_chosen. Never above epsilon_as_chosen. Throws
/// std::invalid_argument if a number is out of range, std::domain_error if no bound is known for a
/// run, or if the runs' own deltas use up all of delta.
double epsilon_fixed_ahead(std::span<const RunSpending> runs, double delta,
                           std::uint64_t group = 1);

}  // namespace cudp::privacy

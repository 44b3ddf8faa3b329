#pragma once
// Empirical audits: from runs with and without one example, a lower bound on the epsilon that they
// really have, to be held against the epsilon that a certificate claims.
#include <cstdint>
#include <functional>
#include <vector>

namespace cudp::audit {

/// Under sanitizers runs are slow and few. What must hold for any number of runs is tested all the
/// same (no bound is above its certificate); how close a bound comes is not.
#if defined(CUDP_SANITIZED)
inline constexpr bool kFewRuns = true;
#else
inline constexpr bool kFewRuns = false;
#endif
inline constexpr int kRuns = kFewRuns ? 100 : 20'000;

/// The probability that a bound is wrong.
inline constexpr double kError = 1e-6;
inline constexpr double kDelta = 1e-2;

/// One run, with the example or without it: a number that should be large where the example was
/// there, by all that is released. May be called from several threads.
using Trial = std::function<double(bool with, std::uint64_t run)>;

/// Bounds on a probability from `hits` of `runs`, each wrong with probability `error`.
/// Source: Clopper, Pearson 1934.
double at_least(double hits, double runs, double error);
double at_most(double hits, double runs, double error);

/// What a threshold shows of epsilon, of sorted numbers: the example is guessed to be there at or
/// above it, or, the other way round, not to be there below it.
double shown(const std::vector<double>& with, const std::vector<double>& without, double threshold,
             bool there, double delta, double error);

/// A lower bound on the trial's epsilon at delta, wrong with probability kError. Half of the runs
/// are with the example, half without; of either, thresholds are chosen on the first half and
/// measured on the second.
double epsilon_lower(const Trial& trial, double delta, int runs = kRuns);

/// The log odds of x where the example adds 1 with probability q to noise of standard deviation
/// sigma.
double log_odds(double x, double q, double sigma);

}  // namespace cudp::audit

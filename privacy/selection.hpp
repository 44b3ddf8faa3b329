#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "privacy/several_runs.hpp"
#include "privacy/stopping.hpp"

namespace cudp::privacy {

// Selection of the best of a random number of trainings. Q draws one of finitely many public
// candidates, trains it and scores it. A draws K, runs Q K times with fresh noise, and releases the
// result of the run with the best score alone; a public rule decides between equal scores. Neither
// K nor anything of the other runs is released. The bounds and their proofs: privacy/README.md.

/// Bound on the privacy of A at one (epsilon, delta).
struct SelectionEpsilon {
  enum class By : std::uint8_t {
    profile,  ///< hockey-stick divergences of Q
    renyi     ///< Renyi divergences of Q
  };
  double epsilon = 0.0, delta = 0.0;
  By by = By::profile;
  double order = 0.0;  ///< order of a Renyi bound; 0 for the other
};

/// Bound on the hockey-stick divergence of one repetition, for adding and for removing a unit.
struct ProfileAt {
  double add = 0.0, remove = 0.0;
};

/// What is known of Q.
struct RepetitionBounds {
  /// Returns delta at each epsilon >= 0, which are in ascending order.
  std::function<std::vector<ProfileAt>(std::span<const double> epsilons)> profile;
  /// Renyi divergence at an order [nats], for both directions; infinite if it is not known. May be
  /// empty.
  std::function<double(double order)> divergence = {};
  /// Probability of an event on which `divergence` does not hold. `profile` includes it.
  double failure = 0.0;
  std::vector<double> orders = {};  ///< orders that are good for `divergence`
};

/// Returns the bounds of a Q with these candidates: the maximum of theirs. Which candidate is
/// drawn, and with which public probability, does not matter. Throws std::invalid_argument for a
/// ChosenRun or a TunedRun.
RepetitionBounds bounds_of(std::span<const RunSpending> candidates, std::uint64_t group = 1);

/// Bounds on A. All values are rounded up, and hold for adding and for removing a unit.
class Selection {
 public:
  /// cells: number of intervals of the probability of better results. More are slower and give
  /// slightly lower bounds.
  Selection(const StoppingLaw& law, RepetitionBounds q, std::size_t cells = 16384);
  explicit Selection(const TunedRun& run, std::uint64_t group = 1);
  ~Selection();
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;

  const Stopping& stopping() const;

  /// Returns the least epsilon at delta, in (0, 1), that either bound gives. Throws
  /// std::domain_error if neither gives a finite one.
  SelectionEpsilon epsilon(double delta);
  /// Returns delta at epsilon >= 0 by profiles, or by Renyi divergences; 1 if there are none.
  ProfileAt profile(double epsilon);  ///< delta by profiles for each direction
  double delta_by_profile(double epsilon);
  double delta_by_renyi(double epsilon);
  /// Returns the Renyi divergence of A at an order [nats]; infinite if there is no bound. It holds
  /// except on an event of probability failure().
  double divergence(double order);
  double failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Renyi divergence of A for an uncapped D(eta, gamma) by Papernot, Steinke 2022
/// (arXiv:2110.03620), Theorem 2, from that of Q at `order` and at `second_order`. Never below
/// Selection::divergence with both orders; it exists to be compared with.
double selection_divergence_papernot_steinke(double eta, double gamma, double mean, double order,
                                             double divergence, double second_order,
                                             double second_divergence);

/// Budget of one candidate in a selection.
struct SelectionBudget {
  double epsilon = 0.0, delta = 0.0;  ///< budget of each candidate, as of any training
  SelectionEpsilon whole;             ///< guarantee of A with these candidates
};

/// Returns the spending of every candidate, if each is planned for this budget: its training and,
/// if there is one, its score.
using PlanCandidates = std::function<std::vector<RunSpending>(double epsilon, double delta)>;

/// Finds the budget of each candidate for which A is (epsilon, delta)-DP, within 0.1 % of epsilon
/// from below. The delta of a candidate is 0.9 delta / E[K]. `plan` is called a few times; A's
/// guarantee is computed for the spendings that the last call returned. Throws std::domain_error if
/// no budget fits.
SelectionBudget calibrate_selection(const StoppingLaw& law, double epsilon, double delta,
                                    const PlanCandidates& plan, std::uint64_t group = 1);

}  // namespace cudp::privacy

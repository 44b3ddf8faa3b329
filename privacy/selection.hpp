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

// Selection of the best of a random number of trainings. Mechanism Q draws one of finitely many
// public candidates, trains it and scores it. Mechanism A, the whole selection, draws a number K,
// runs Q K times with fresh noise, and releases the result of the run with the best score alone; a
// public rule decides between equal scores. Neither K nor anything of the other runs is released.
// The bounds and their proofs: privacy/README.md.

/// Privacy at one (epsilon, delta) of a whole selection, i.e. training a random number of
/// candidates and releasing the best; and the kind of bound that gave it.
struct SelectionEpsilon {
  enum class By : std::uint8_t {
    profile,  ///< bound from deltas (hockey-stick divergences) of one training with its score
    renyi     ///< bound from Renyi divergences of one training with its score
  };
  double epsilon = 0.0, delta = 0.0;
  By by = By::profile;
  double order = 0.0;  ///< order of a Renyi bound; 0 for a bound from deltas
};

/// Upper bounds on a mechanism's delta at one epsilon: if a unit of privacy is added, and if it is
/// removed.
struct ProfileAt {
  double add = 0.0, remove = 0.0;
};

/// Known privacy bounds of Q, the mechanism that a selection repeats: it draws one candidate at
/// random, trains it and scores it.
struct RepetitionBounds {
  /// Function that returns upper bounds on the delta of Q, one training with its score, at each
  /// epsilon. It is called with epsilons >= 0 in ascending order.
  std::function<std::vector<ProfileAt>(std::span<const double> epsilons)> profile;
  /// Function that returns a bound on the Renyi divergence of this order [nats] of Q, one training
  /// with its score, for adding and removing; infinite if no bound is known. May be empty.
  std::function<double(double order)> divergence = {};
  /// Probability of an event on which the bound `divergence` does not hold. The bounds of `profile`
  /// include it.
  double failure = 0.0;
  std::vector<double> orders = {};  ///< Renyi orders at which to try `divergence`
};

/// Returns the privacy bounds of training and scoring one random candidate (Q): the maximum of the
/// candidates' bounds. Which candidate is drawn, and with which public probability, does not
/// matter. Throws std::invalid_argument if a candidate is a ChosenRun or a TunedRun.
RepetitionBounds bounds_of(std::span<const RunSpending> candidates, std::uint64_t group = 1);

/// Computes privacy bounds of a whole selection (run Q a random number of times, release the best
/// result) from those of Q (train and score one random candidate). All values are rounded up, and
/// hold for adding and for removing a unit of privacy.
class Selection {
 public:
  /// Prepares the bounds of a selection. law: distribution of the number of trainings. q: privacy
  /// bounds of one training with its score. cells: number of intervals into which the probability
  /// of a better score is divided; more are slower and give slightly smaller bounds.
  Selection(const StoppingLaw& law, RepetitionBounds q, std::size_t cells = 16384);
  explicit Selection(const TunedRun& run, std::uint64_t group = 1);
  ~Selection();
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;

  const Stopping& stopping() const;

  /// Returns a bound on the selection's epsilon at delta, in (0, 1): the smaller one of those that
  /// follow from the deltas and from the Renyi divergences of one training with its score. Throws
  /// std::domain_error if neither is finite.
  SelectionEpsilon epsilon(double delta);
  /// Returns bounds on the selection's delta at epsilon >= 0, for adding and for removing a unit,
  /// computed from the deltas of one training with its score (RepetitionBounds::profile).
  ProfileAt profile(double epsilon);
  /// Returns a bound on the selection's Renyi divergence of this order [nats]; infinite if there is
  /// none. The bound holds except on an event of probability failure().
  double divergence(double order);
  double failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Budget of each candidate in a selection, and the resulting guarantee of the selection.
struct SelectionBudget {
  double epsilon = 0.0, delta = 0.0;  ///< budget to plan each candidate's training with
  SelectionEpsilon whole;  ///< guarantee of the whole selection among candidates with this budget
};

/// Function that plans the training of every candidate with the budget (epsilon, delta), and
/// returns what each candidate spends: on its training and, if it has one, on its score.
using PlanCandidates = std::function<std::vector<RunSpending>(double epsilon, double delta)>;

/// Finds how much each candidate may spend so that the whole selection is (epsilon, delta)-DP. The
/// selection's epsilon is then at most 0.1 % below `epsilon`. Each candidate has a delta of 0.9
/// delta / E[K], with K the number of trainings. `plan` is called a few times; the guarantee is
/// computed for what its last call returned. Throws std::domain_error if no budget fits.
SelectionBudget calibrate_selection(const StoppingLaw& law, double epsilon, double delta,
                                    const PlanCandidates& plan, std::uint64_t group = 1);

}  // namespace cudp::privacy

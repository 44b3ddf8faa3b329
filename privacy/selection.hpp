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

/// Privacy of a whole selection (mechanism A) at one (epsilon, delta), and the bound that gave it.
struct SelectionEpsilon {
  enum class By : std::uint8_t {
    profile,  ///< hockey-stick divergences of Q
    renyi     ///< Renyi divergences of Q
  };
  double epsilon = 0.0, delta = 0.0;
  By by = By::profile;
  double order = 0.0;  ///< order of a Renyi bound; 0 for the other
};

/// Upper bounds on delta at one epsilon, if a unit of privacy is added and if it is removed.
struct ProfileAt {
  double add = 0.0, remove = 0.0;
};

/// Known privacy bounds of Q: training and scoring one random candidate.
struct RepetitionBounds {
  /// Returns upper bounds on delta at each epsilon >= 0; the epsilons are in ascending order.
  std::function<std::vector<ProfileAt>(std::span<const double> epsilons)> profile;
  /// Returns a bound on the Renyi divergence of this order [nats], for both directions; infinite if
  /// none is known. May be empty.
  std::function<double(double order)> divergence = {};
  /// Probability of an event on which `divergence` does not hold. `profile` includes it.
  double failure = 0.0;
  std::vector<double> orders = {};  ///< Renyi orders at which to try `divergence`
};

/// Returns the privacy bounds of training and scoring one random candidate (Q): the maximum of the
/// candidates' bounds. Which candidate is drawn, and with which public probability, does not
/// matter. Throws std::invalid_argument if a candidate is a ChosenRun or a TunedRun.
RepetitionBounds bounds_of(std::span<const RunSpending> candidates, std::uint64_t group = 1);

/// Computes privacy bounds of a whole selection (mechanism A) from those of one training (Q). All
/// values are rounded up, and hold for adding and for removing a unit.
class Selection {
 public:
  /// law: distribution of the number of trainings. q: bounds of one training. cells: number of
  /// intervals into which the probability of a better score is divided. More are slower and give
  /// slightly smaller bounds.
  Selection(const StoppingLaw& law, RepetitionBounds q, std::size_t cells = 16384);
  explicit Selection(const TunedRun& run, std::uint64_t group = 1);
  ~Selection();
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;

  const Stopping& stopping() const;

  /// Returns the smaller of the epsilons at delta, in (0, 1), that delta_by_profile() and
  /// delta_by_renyi() give. Throws std::domain_error if neither gives a finite one.
  SelectionEpsilon epsilon(double delta);
  /// Returns bounds on the selection's delta at epsilon >= 0 for adding and for removing a unit,
  /// computed from Q's deltas (RepetitionBounds::profile).
  ProfileAt profile(double epsilon);
  /// Returns the larger of the two bounds of profile().
  double delta_by_profile(double epsilon);
  /// Returns a bound on the selection's delta at epsilon >= 0, computed from Q's Renyi divergences;
  /// 1 if none is known.
  double delta_by_renyi(double epsilon);
  /// Returns a bound on the selection's Renyi divergence of this order [nats]; infinite if there is
  /// none. The bound holds except on an event of probability failure().
  double divergence(double order);
  double failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the bound of Papernot, Steinke 2022 (arXiv:2110.03620), Theorem 2, on the Renyi
/// divergence of a selection. The number of trainings has distribution D(eta, gamma) without a cap,
/// and this mean. divergence, second_divergence: Renyi divergences of one training (Q) at `order`
/// and at `second_order`. Never below Selection::divergence with these two orders; only for
/// comparison.
double selection_divergence_papernot_steinke(double eta, double gamma, double mean, double order,
                                             double divergence, double second_order,
                                             double second_divergence);

/// Budget of one candidate in a selection.
struct SelectionBudget {
  double epsilon = 0.0, delta = 0.0;  ///< budget of each candidate, as of any training
  SelectionEpsilon whole;             ///< guarantee of A with these candidates
};

/// Function that plans every candidate for this budget and returns what each will spend: its
/// training and, if there is one, its score.
using PlanCandidates = std::function<std::vector<RunSpending>(double epsilon, double delta)>;

/// Finds the budget of each candidate for which the whole selection is (epsilon, delta)-DP; its
/// epsilon is at most 0.1 % below. The delta of a candidate is 0.9 delta / E[K]. `plan` is called a
/// few times; the guarantee is computed for the spendings that the last call returned. Throws
/// std::domain_error if no budget fits.
SelectionBudget calibrate_selection(const StoppingLaw& law, double epsilon, double delta,
                                    const PlanCandidates& plan, std::uint64_t group = 1);

}  // namespace cudp::privacy

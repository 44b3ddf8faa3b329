#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "privacy/mechanism.hpp"

namespace cudp::privacy {

/// Which bound is asked for. The Gaussian-DP estimate is not one: gaussian.hpp.
enum class Accountant : std::uint8_t {
  pld,       ///< privacy loss distributions
  rdp,       ///< Renyi divergences
  best,      ///< the least of all that apply: those two, and the exact Gaussian
  advanced,  ///< advanced composition (advanced.hpp): to reproduce papers
};
std::string_view name(Accountant accountant);

/// What is released, to whom it is compared, and how to bound it.
struct Question {
  std::vector<Step> steps = {};
  std::uint64_t group = 1;  ///< how many examples the neighbours differ by; at most 1000
  Neighbours relation = Neighbours::add_or_remove;
  Accountant accountant = Accountant::best;
  /// Of the privacy losses' grid; 0 takes 1e-4 where that adds less than 2e-4 to epsilon, and
  /// chooses otherwise. It is doubled where that costs less than 1e-4 of epsilon, or the memory
  /// demands it; the answer says what it was.
  double interval = 0.0;
  double looseness = 1.0;  ///< a coarser, faster look: how many times more that may all add
  std::vector<double> orders = {};  ///< Renyi orders; empty: all, of which the best is searched
  /// Most different steps that are composed as they are. Of more, similar ones are grouped, each as
  /// the least noisy and most sampled of its group; the answer's epsilon_lower takes the most
  /// noisy.
  std::size_t classes = 256;
};

/// An (epsilon, delta) statement that holds, and how far it may be above the truth.
struct Answer {
  double epsilon = 0.0;
  double delta = 0.0;
  /// Below the truth: epsilon_lower for the given delta, or delta_lower for the given epsilon. 0
  /// where the accountant has no lower bound.
  double epsilon_lower = 0.0;
  double delta_lower = 0.0;
  /// By direction, where both were looked at; the larger one is the answer.
  std::optional<double> epsilon_add = {}, epsilon_remove = {}, delta_add = {}, delta_remove = {};
  double interval = 0.0;  ///< of the grid that was used, the coarser direction; 0 without one
  Accountant accountant = Accountant::best;  ///< whose bound it is
  double order = 0.0;                        ///< of a Renyi bound
  std::uint64_t group = 1;
};

/// The name of the bound that gave an answer: "pld", "rdp", "advanced", or "gaussian" for the exact
/// one.
std::string_view bound_name(const Answer& answer);

/// Answers questions about one composition; what is costly is kept between them.
///
/// Sources: privacy loss distributions: Koskela, Jalko, Honkela 2020 (arXiv:1906.03049), and what
/// pld/ names; the Renyi bound: rdp_curve.hpp; dominating pairs and groups: dominating_pair.hpp.
///
/// Throws std::invalid_argument for what is out of range, and std::domain_error where the theory
/// has no bound for such a step, group or relation, or none can be computed. Answers are never
/// approximate, infinite or NaN.
class Account {
 public:
  explicit Account(Question question);
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;
  Account(Account&&) noexcept;
  Account& operator=(Account&&) noexcept;

  /// delta in (0, 1).
  Answer epsilon(double delta);
  /// epsilon >= 0, finite.
  Answer delta(double epsilon);
  /// A curve; as the above, but that one grid serves neighbouring points.
  std::vector<Answer> epsilons(std::span<const double> deltas);
  std::vector<Answer> deltas(std::span<const double> epsilons);

  const Question& question() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Epsilon of groups of 1, 2, ... largest, or of those listed (Ganesh 2024, arXiv:2401.10294).
std::vector<Answer> group_epsilons(const Question& question, std::uint64_t largest, double delta);
std::vector<Answer> group_epsilons(const Question& question, std::span<const std::uint64_t> sizes,
                                   double delta);

/// What one gets for a group of k from the bound for one example alone: the least k epsilon_1 with
/// delta_1(epsilon_1) (e^(k epsilon_1) - 1) / (e^epsilon_1 - 1) <= delta; nothing where that
/// exists only past the numbers' range.
/// Source: Vadhan 2017, "The Complexity of Differential Privacy", Lemma 2.2.
std::optional<double> vadhan_epsilon(const Question& question, std::uint64_t k, double delta);

}  // namespace cudp::privacy

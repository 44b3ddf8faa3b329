#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/random/random.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/noisy_min.hpp"

namespace cudp {

/// Parameters of method DP-AGD: gradient descent on linear models with noisy gradients, noisy
/// choices of step sizes, and a budget per iteration that adapts (Lee and Kifer 2018). Symbols are
/// those of the paper.
struct DpAgdSettings {
  double rho_gradient = 0.0;   ///< rho_ng, zCDP cost of a noisy gradient in the first iteration
  double rho_selection = 0.0;  ///< rho_nmax, zCDP cost of a noisy choice of a step size
  /// Factor 1 + gamma by which rho_gradient, the cost of a noisy gradient, grows whenever no step
  /// size reduces the objective.
  double gamma = 0.1;
  double gradient_clip = 3.0;  ///< C_grad, norm that gradients are clipped to
  double loss_clip = 3.0;      ///< C_obj, maximum that losses are clipped to
  double l2 = 0.001;           ///< lambda, weight of the regulariser
  SelectionNoise selection = SelectionNoise::gumbel;

  /// Number m of step sizes among which a noisy choice is made. One of them is 0.
  int step_sizes = 20;
  double first_largest = 2.0;  ///< alpha_max, largest step size, in the first iteration
  int window = 10;             ///< tau, number of steps after which alpha_max is set again
  /// The paper's eta: after every tau steps (`window`), alpha_max, the largest step size on offer,
  /// becomes (1 + eta) times the largest step size that was chosen in them.
  double window_growth = 0.1;
  /// Factor by which alpha_max, the largest step size, is multiplied whenever no step size reduces
  /// the objective; 1 in the paper.
  double shrink = 1.0;
  /// Sampling rate of the mini-batches, times 2^32; 0: every step uses all examples.
  std::uint64_t threshold = 0;
  /// Public upper bound on the number of examples. The LinearEngine that computes the sums must
  /// have been made with the same bound.
  double max_examples = 1.0;
};

/// State of DP-AGD after an iteration; a checkpoint stores it.
struct DpAgdState {
  std::vector<float> w;
  double rho_gradient = 0.0;
  double largest = 0.0;          ///< alpha_max, largest of the step sizes to choose from
  std::vector<double> chosen;    ///< chosen step sizes since alpha_max was last set
  std::uint64_t iterations = 0;  ///< t, number of iterations so far
  std::uint64_t releases = 0;    ///< number of noisy releases so far, of gradients and of choices
  double rho = 0.0;              ///< total zCDP cost of these releases
};

/// Method DP-AGD for linear models: gradient descent in which each iteration releases a noisy
/// gradient, chooses its step size with noise, and adapts the privacy budget of the next
/// iterations. Lee and Kifer 2018, "Concentrated Differentially Private Gradient Descent with
/// Adaptive per-Iteration Privacy Budget", Algorithm 2.
///
/// Differences from the paper:
/// - Algorithm 2 normalises the noisy gradient and then averages the unit vector with a second
///   measurement that is not normalised. Here measurements are averaged first, then normalised.
/// - Algorithm 2 lets the budget go below zero and discards the result of that release. Here the
///   gate checks a zCDP filter before every release, and a refused release is not made.
/// - The noisy choice of a step size has noise of scale C_obj / epsilon only (C_obj: largest
///   clipped loss), because an added example can only raise clipped losses. With Gumbel noise a
///   choice has a zCDP cost of epsilon^2/8 instead of epsilon^2/2. The paper's Laplace noise is
///   available.
/// - The budget is converted to rho by the theorem of Canonne, Kamath and Steinke 2020; the
///   classical conversion is available (dp_agd_method.hpp).
/// - If no step size helps, the largest step size alpha_max is multiplied by a public factor
///   `shrink`. If it were not, a run in which even the smallest step size is too long would spend
///   its whole budget on one gradient. Shrinking costs no privacy, because it follows from a
///   released choice. With the factor 1, alpha_max does not change, as in the paper.
/// - The regulariser does not depend on the data, so its gradient is added after the noise.
///
/// Mini-batches: an iteration draws its examples, each with the same probability, and uses them for
/// all its releases. These are charged as if they used all examples, without privacy amplification
/// by sampling. That is valid, because a divergence of mixtures is at most the largest divergence
/// of the parts.
class DpAgd {
 public:
  /// Makes the algorithm. settings: its parameters. engine: computes the sums over the data.
  /// examples: number N of examples, noisy if it is private. gate: charges releases and adds noise.
  /// The random streams are selected by the index of the release (noise) and of the iteration
  /// (batches), so a repeated iteration repeats its releases exactly.
  DpAgd(const DpAgdSettings& settings, LinearEngine& engine, double examples, Gate& gate);

  DpAgdState begin(std::vector<float> w) const;

  /// Makes one iteration: measures a gradient, chooses a step size and updates `state`. Returns
  /// false, with state.w unchanged, if the privacy filter refused a release because the budget is
  /// spent.
  bool iterate(DpAgdState& state);

 private:
  /// Charges a release to the budget, through the gate. Returns whether the budget suffices; if so,
  /// also counts the release in `state`. release: its mechanism. rho: its zCDP cost.
  bool admitted(DpAgdState& state, const privacy::Mechanism& release, double rho);
  /// Releases a sum of clipped gradients with Gaussian noise, sum + N(0, C^2/(2 rho) I), where C is
  /// the clipping norm; its zCDP cost is rho. Counts the release in `state`. Returns nullopt if the
  /// budget is spent.
  std::optional<std::vector<double>> measure(DpAgdState& state, const std::vector<double>& sum,
                                             double rho);
  std::vector<float> direction(const DpAgdState& state, const std::vector<double>& measured) const;
  std::vector<float> step_sizes(const DpAgdState& state) const;
  /// Returns the training objective, with clipped losses, for each step size s in `steps`: its
  /// value at the weights state.w - s * direction, without a constant that is the same for all.
  std::vector<double> objective(const DpAgdState& state, const std::vector<float>& direction,
                                const std::vector<float>& steps);
  void accept(DpAgdState& state, double step, const std::vector<float>& direction) const;

  /// Returns the description (name, noise, charge) of the release of a noisy sum of clipped
  /// gradients, for the gate. sigma: noise multiplier of the sum. number: index of the release
  /// among those of the run.
  GaussianRelease gradient_release(double sigma, std::uint64_t number) const;

  DpAgdSettings settings_;
  LinearEngine& engine_;
  /// Expected number of training examples in the batch of one gradient sum. It is computed from the
  /// number of training examples that the plan uses, which is noisy unless that number is public.
  double examples_;
  Gate& gate_;
};

}  // namespace cudp

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

struct DpAgdSettings {
  double rho_gradient = 0.0;   ///< rho_ng at the start
  double rho_selection = 0.0;  ///< rho_nmax
  double gamma = 0.1;          ///< rho_ng grows by 1 + gamma where no step size helps
  double gradient_clip = 3.0;  ///< C_grad
  double loss_clip = 3.0;      ///< C_obj
  double l2 = 0.001;           ///< lambda
  SelectionNoise selection = SelectionNoise::gumbel;

  int step_sizes = 20;          ///< m, 0 among them
  double first_largest = 2.0;   ///< alpha_max at the start
  int window = 10;              ///< tau
  double window_growth = 0.1;   ///< eta
  double shrink = 1.0;          ///< of alpha_max where no step size helps; 1: the paper's
  std::uint64_t threshold = 0;  ///< mini-batches of rate threshold / 2^32; 0: all examples
  double max_examples = 1.0;    ///< a public bound on N, as the engine has it
};

/// Everything that an iteration changes.
struct DpAgdState {
  std::vector<float> w;
  double rho_gradient = 0.0;
  double largest = 0.0;          ///< alpha_max
  std::vector<double> chosen;    ///< step sizes since alpha_max was last set
  std::uint64_t iterations = 0;  ///< t
  std::uint64_t releases = 0;    ///< made so far; the next one's number
  double rho = 0.0;              ///< what they cost
};

/// DP-AGD: Lee and Kifer 2018, "Concentrated Differentially Private Gradient Descent with Adaptive
/// per-Iteration Privacy Budget", Algorithm 2, for linear models.
///
/// Departs from the paper:
/// - Algorithm 2 normalises the noisy gradient and then averages the unit vector with a second
///   measurement that is not normalised. Here measurements are averaged, then normalised.
/// - Algorithm 2 lets the budget go below zero and discards what that bought. Here a zCDP filter is
///   asked, through the gate, before every release, and what it refuses is not made.
/// - Clipped losses only grow with an example more, so NoisyMin needs noise of scale
///   C_obj / epsilon alone, and with Gumbel noise costs epsilon^2/8 instead of epsilon^2/2. Laplace
///   noise, the paper's, is selectable.
/// - The budget in rho is that of the conversion of Canonne, Kamath and Steinke 2020; the classical
///   one is selectable (dp_agd_method.hpp).
/// - Where no step size helps, alpha_max shrinks too: where even the smallest step is too long, no
///   budget makes a direction good, and a run would spend itself on one gradient. Free, as it
///   follows from a released choice; 1 is the paper's.
/// The regulariser does not depend on the data: its gradient joins after the noise.
///
/// Mini-batches: an iteration draws its examples, each with the same probability, and uses them for
/// all its releases. They are charged as releases of all examples: no loss of privacy, as a
/// divergence of mixtures is at most the largest of the parts', and no gain either.
class DpAgd {
 public:
  /// Noise is addressed by the number of the release, batches by the iteration, so that repeating
  /// an iteration repeats what it released. examples: N, or what may be known of it.
  DpAgd(const DpAgdSettings& settings, LinearEngine& engine, double examples, Gate& gate);

  DpAgdState begin(std::vector<float> w) const;

  /// One iteration. False, with w unchanged, where the filter refused a release.
  bool iterate(DpAgdState& state);

 private:
  /// Asks for the release and counts it.
  bool admitted(DpAgdState& state, const privacy::Mechanism& release, double rho);
  /// sum + N(0, C^2/(2 rho) I), for rho, on the sum's grid or a finer one; empty if refused.
  std::optional<std::vector<double>> measure(DpAgdState& state, const std::vector<double>& sum,
                                             double rho);
  std::vector<float> direction(const DpAgdState& state, const std::vector<double>& measured) const;
  std::vector<float> step_sizes(const DpAgdState& state) const;
  /// The objective after each step, but for the regulariser's constant part.
  std::vector<double> objective(const DpAgdState& state, const std::vector<float>& direction,
                                const std::vector<float>& steps);
  void accept(DpAgdState& state, double step, const std::vector<float>& direction) const;

  /// Release `number` of the sum of gradients with noise multiplier sigma.
  GaussianRelease gradient_release(double sigma, std::uint64_t number) const;

  DpAgdSettings settings_;
  LinearEngine& engine_;
  double examples_;  ///< expected in a sum
  Gate& gate_;
};

}  // namespace cudp

#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "kernels/linear/sign_weights.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

using Extended = long double;

/// Settings of the empirical risk (sum of losses) of a linear two-class model.
struct RiskSettings {
  Loss loss = Loss::logistic;  ///< logistic, or hinge, which is smoothed
  /// Number R by which examples are scaled: features x and a label y, -1 or 1, become the vector v
  /// = y (x, 1) / max(R, |(x, 1)|), whose norm is at most 1. With R <= 1, every example has norm 1.
  double max_norm = 1.0;
  double huber = 0.5;  ///< h: half the width of the part of the hinge loss that is rounded off
  double max_examples = 1.0;  ///< public upper bound on the number of examples
  int threads = 1;  ///< number of threads; 0: one per core; the result does not depend on it
  /// Factors on the losses of the two classes, in 0..1. As no factor exceeds 1, the bounds on the
  /// loss's derivatives hold with them, too.
  SignWeights weights = {};
};

/// Returns an upper bound on the second derivative of an example's loss phi(m), where m = v . w is
/// the margin, v the example and w the weights: 1/4 for logistic loss, and 1 / (2 h) for hinge loss
/// with its corner rounded over 1 - h .. 1 + h (Chaudhuri, Monteleoni, Sarwate 2011, section
/// 3.4.3). It holds with class weights too. For both losses -1 <= phi' <= 0 and phi'' >= 0.
double loss_curvature(const RiskSettings& settings);

/// Empirical risk of a linear two-class model: the sum of the weighted losses over a training set.
/// It is convex, with a continuous gradient. Examples are vectors v = y (x, 1), scaled to norm at
/// most 1 (RiskSettings::max_norm); a row with a feature that is not finite is ignored. Adding or
/// removing an example changes the risk's gradient, at any weights, by a vector of norm at most 1.
///
/// The data must outlive this object. Throws InputError unless there are two classes.
class LinearRisk {
 public:
  LinearRisk(const Dataset& data, const RiskSettings& settings);

  /// Returns d, the number of features + 1.
  std::size_t dimension() const { return dimension_; }

  /// Returns the gradient of the risk at w, [d]. Later calls of curvature_product() use this w.
  std::vector<double> gradient(std::span<const double> w);
  /// Returns the product of a vector p with the Hessian at the weights of the last gradient() call,
  /// [d].
  std::vector<double> curvature_product(std::span<const double> p);

  /// Returns the gradient of the risk at w, [d], like gradient() but in the widest floating-point
  /// type of the processor: 64 binary digits on x86-64, where double has 53. Several times slower.
  std::vector<Extended> extended_gradient(std::span<const Extended> w);

  const RiskSettings& settings() const { return settings_; }

 private:
  /// Returns the sum over the training examples of factor(row) v, [d], where v = y (x, 1) / max(R,
  /// |(x, 1)|) is the example's scaled vector: x its features, y its label, R =
  /// RiskSettings::max_norm.
  template <class Real, class Factor>
  std::vector<Real> weighted_sum(const Factor& factor);
  /// Returns the features of row i. If the row is not stored as floats, they are written to
  /// `buffer`, and the result points into it.
  std::span<const float> row(std::size_t i, std::vector<float>& buffer) const;

  const Dataset& data_;
  RiskSettings settings_;
  std::size_t dimension_;
  /// Factor by which (x, 1) is multiplied to give the example's vector v, [examples]: y / max(R,
  /// |(x, 1)|); 0 for a row that is left out.
  std::vector<double> scales_;
  std::vector<double> curvatures_;
  ThreadTeam team_;
};

/// Returns an upper bound on the L2 norm of the rounding error of the risk's gradient, as computed
/// by LinearRisk, at weights w with |w| = norm. It holds for every data set of at most
/// settings.max_examples examples with d = dimension. unit: unit roundoff of the number type, 2^-53
/// for LinearRisk::gradient().
double risk_rounding(const RiskSettings& settings, std::size_t dimension, double norm, double unit);

/// Objective to be minimised: J(w) = risk(w) + regulariser / 2 |w|^2 + linear . w, where the risk
/// is the sum of losses.
struct RiskProblem {
  double regulariser = 0.0;         ///< > 0
  std::vector<double> linear = {};  ///< [d], d the number of weights; empty for 0
  /// Public upper bound on |linear|. It is exceeded with a tiny probability, which is part of
  /// delta.
  double linear_bound = 0.0;
  double tolerance = 0.0;  ///< norm of the gradient of J at which a solver may stop
};

/// Returns how many iterations of gradient descent are enough, on every data set that `settings`
/// allow, to reach a gradient of J of norm at most problem.tolerance, rounding included. Returns
/// nullopt if this cannot be proved, or if more than 10^7 iterations are needed. Depends on public
/// numbers only.
///
/// Proof: with at most settings.max_examples examples, J's gradient has Lipschitz constant L =
/// curvature max_examples + regulariser, and J's minimum w* is at most W from 0, because J(w*) <=
/// J(0). Descent from 0 makes steps of gradient / L. Its gradients have a rounding error of at most
/// e, and its steps are rounded in the type Extended, whose unit roundoff is u. Each step reduces
/// the distance to w* by the factor 1 - 1 / kappa, kappa = L / regulariser, up to e / L and 10 u W.
/// After kappa ln(4 L W / tolerance) steps the gradient is at most tolerance / 4 + kappa e + 10 u
/// kappa L W. The measured gradient is at most 2 e more, and 3 L W 2^-53 more because weights are
/// rounded to double at the end.
std::optional<std::uint64_t> iterations_for_all_data(const RiskSettings& settings,
                                                     std::size_t dimension,
                                                     const RiskProblem& problem);

/// Approximate minimum of the objective J of a RiskProblem.
struct RiskMinimum {
  std::vector<double> w;
  double gradient_norm = 0.0;  ///< bound on the norm of J's gradient at w, rounding error included
};

enum class RiskSolver { fastest, descent };

/// Minimises the objective J, starting from 0, until the norm of its gradient is at most the
/// tolerance, rounding included. The exact minimum is then at most tolerance / regulariser away,
/// because J is strongly convex. Throws Error if no solver converged.
///
/// RiskSolver::fastest is Newton's method, first in double. Its linear systems are solved
/// inexactly, by a few iterations of conjugate gradients, and each step is halved until the
/// gradient gets shorter (Dembo, Eisenstat, Steihaug 1982, "Inexact Newton methods"). There is no
/// proof that Newton's method converges for all data. If it does not, gradient descent follows. It
/// converges on every data set if iterations_for_all_data() returns a number; a failure can then
/// not reveal anything about the rows.
RiskMinimum minimise_risk(LinearRisk& risk, const RiskProblem& problem,
                          RiskSolver solver = RiskSolver::fastest);

}  // namespace cudp

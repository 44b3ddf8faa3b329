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

/// How an example enters a linear model's risk.
struct RiskSettings {
  Loss loss = Loss::logistic;  ///< logistic, or hinge, which is smoothed
  /// R: an example is v = y (x, 1) / max(R, |(x, 1)|), so |v| <= 1. R <= 1 makes every |v| = 1.
  double max_norm = 1.0;
  double huber = 0.5;         ///< h: half the width of the part of the hinge loss that is smoothed
  double max_examples = 1.0;  ///< a public bound on the number of examples
  int threads = 1;            ///< 0 takes every core; the result does not depend on it
  SignWeights weights = {};   ///< of the losses: 0..1, so that the bounds below hold with them
};

/// Bounds on the loss phi(m), weighted or not, at the margin m = v . w: -1 <= phi' <= 0 and 0 <=
/// phi'' <= curvature. Logistic: 1/4. Hinge with its corner rounded over 1 - h .. 1 + h (Chaudhuri,
/// Monteleoni, Sarwate 2011, section 3.4.3): 1 / (2 h).
double loss_curvature(const RiskSettings& settings);

/// The sum of the weighted losses of a training set of two classes: convex, with a continuous
/// gradient. Its examples v are what settings make of a row in real arithmetic; a row with a
/// feature that is not finite is no part of it. An example more or less changes the gradient by a
/// vector no longer than 1 anywhere.
///
/// The data must outlive it. Throws InputError unless there are two classes.
class LinearRisk {
 public:
  LinearRisk(const Dataset& data, const RiskSettings& settings);

  /// d: the features and a constant.
  std::size_t dimension() const { return dimension_; }

  /// At w [d], which curvature_product then refers to.
  std::vector<double> gradient(std::span<const double> w);
  /// The second derivative times p [d].
  std::vector<double> curvature_product(std::span<const double> p);

  /// gradient(w) in the widest numbers that the processor has: 64 digits on x86-64 where double has
  /// 53. Several times slower.
  std::vector<Extended> extended_gradient(std::span<const Extended> w);

  const RiskSettings& settings() const { return settings_; }

 private:
  /// sum over rows of factor(row) v(row)
  template <class Real, class Factor>
  std::vector<Real> weighted_sum(const Factor& factor);
  /// Features of row i; `room` is for those that are not in memory as floats.
  std::span<const float> row(std::size_t i, std::vector<float>& room) const;

  const Dataset& data_;
  RiskSettings settings_;
  std::size_t dimension_;
  std::vector<double> scales_;  ///< y / max(R, |(x, 1)|), 0 for a row left out
  std::vector<double> curvatures_;
  ThreadTeam team_;
};

/// Bound on the rounding error of a gradient, in L2, for |w| = norm and any data set of at most
/// settings.max_examples examples in `dimension` numbers; unit: 2^-53 for LinearRisk::gradient.
double risk_rounding(const RiskSettings& settings, std::size_t dimension, double norm, double unit);

/// The objective to be minimised: J(w) = risk + regulariser / 2 |w|^2 + linear . w.
struct RiskProblem {
  double regulariser = 0.0;         ///< > 0
  std::vector<double> linear = {};  ///< [d], or empty for none
  double linear_bound =
      0.0;                 ///< no `linear` is longer, but for a probability that is part of delta
  double tolerance = 0.0;  ///< on the gradient of J
};

/// Most iterations of gradient descent after which the tolerance is met, rounding counted, whatever
/// the data are within `settings`; empty where that is not proved, or would take more than 10^7. A
/// function of public numbers.
///
/// With n <= settings.max_examples examples J is L-smooth, L = curvature max_examples +
/// regulariser, and its minimum no farther from 0 than W, as J(w*) <= J(0). Descent from 0 by
/// gradient / L, whose gradients are off by at most e and whose steps are rounded in Extended,
/// comes closer by the factor 1 - 1 / kappa, kappa = L / regulariser, but for e / L and 10 u W:
/// after kappa ln(4 L W / tolerance) steps the gradient is at most tolerance / 4 + kappa e + 10 u
/// kappa L W, and what is measured of it at most 2 e more, and 3 L W 2^-53 where weights are
/// rounded to double in the end.
std::optional<std::uint64_t> iterations_for_all_data(const RiskSettings& settings,
                                                     std::size_t dimension,
                                                     const RiskProblem& problem);

/// The minimum of J.
struct RiskMinimum {
  std::vector<double> w;
  double gradient_norm = 0.0;  ///< of J at w, at most: rounding is in it
};

enum class RiskSolver { fastest, descent };

/// Minimises J to a gradient of norm at most the tolerance, rounding counted, from 0 on. The
/// minimum is then no farther than tolerance / regulariser, as J is strongly convex.
///
/// fastest: Newton's method, its linear systems solved by conjugate gradients only as far as it
/// pays, each step halved until the gradient gets shorter (Dembo, Eisenstat, Steihaug 1982,
/// "Inexact Newton methods"), first in double. Nothing proves that it arrives, on whatever data:
/// where it does not, gradient descent follows, which does wherever iterations_for_all_data says
/// so. So whether there is a result does not depend on the data. Throws Error where nothing
/// arrived.
RiskMinimum minimise_risk(LinearRisk& risk, const RiskProblem& problem,
                          RiskSolver solver = RiskSolver::fastest);

}  // namespace cudp

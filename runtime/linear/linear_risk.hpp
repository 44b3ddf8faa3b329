#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/loss.hpp"
#include "runtime/dataset.hpp"
#include "runtime/threads.hpp"

namespace cudp {

/// How an example enters a linear model's risk.
struct RiskSettings {
  Loss loss = Loss::logistic;  ///< logistic, or hinge, which is smoothed
  /// R: an example is v = y (x, 1) / max(R, |(x, 1)|), so |v| <= 1. R <= 1 makes every |v| = 1.
  double max_norm = 1.0;
  double huber = 0.5;  ///< h: half the width of the part of the hinge loss that is smoothed
  int threads = 1;     ///< 0 takes every core; the result does not depend on it
};

/// Bounds on the loss phi(m) at the margin m = v . w: -1 <= phi' <= 0 and 0 <= phi'' <= curvature.
/// Logistic: 1/4. Hinge with its corner rounded over 1 - h .. 1 + h (Chaudhuri, Monteleoni, Sarwate
/// 2011, section 3.4.3): 1 / (2 h).
double loss_curvature(const RiskSettings& settings);

/// The sum of the losses of a training set of two classes, in double: convex, with a continuous
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

  /// By how much gradient(w) may be off through rounding, in L2, for |w| = norm.
  double rounding(double norm) const;

 private:
  /// sum over rows of factor(row) v(row)
  template <class Factor>
  std::vector<double> weighted_sum(const Factor& factor);
  float feature(std::size_t at) const {
    return data_.is_bytes() ? data_.scale * static_cast<float>(data_.bytes[at]) + data_.shift
                            : data_.floats[at];
  }

  const Dataset& data_;
  RiskSettings settings_;
  std::size_t dimension_;
  std::vector<double> scales_;  ///< y / max(R, |(x, 1)|), 0 for a row left out
  std::vector<double> curvatures_;
  ThreadTeam team_;
};

/// Where J(w) = risk + regulariser / 2 |w|^2 + slope . w is least.
struct RiskMinimum {
  std::vector<double> w;
  double gradient_norm = 0.0;  ///< of J at w, at most: rounding is in it
};

/// Minimises J to a gradient of norm at most `tolerance`, rounding counted, from 0 on: Newton's
/// method, its linear systems solved by conjugate gradients only as far as it pays, each step
/// halved until the gradient gets shorter (Dembo, Eisenstat, Steihaug 1982, "Inexact Newton
/// methods"). The minimum is then no farther than tolerance / regulariser, as J is strongly convex.
///
/// regulariser > 0; slope [d], or empty for none. Throws Error where it gets no closer: there is
/// then no result that a proof would cover.
RiskMinimum minimise_risk(LinearRisk& risk, double regulariser, std::span<const double> slope,
                          double tolerance);

}  // namespace cudp

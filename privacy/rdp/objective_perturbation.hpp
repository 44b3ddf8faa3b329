#pragma once

namespace cudp::privacy {

/// Objective perturbation of a linear model: releases the minimum w of
///   J(w) = sum over i of phi(v_i . w) + Lambda / 2 |w|^2 + b . w,   b ~ N(0, (1 / mu)^2 I).
/// v_i: example i, with its label's sign; |v_i| <= 1. phi: loss function, with -1 <= phi' <= 0,
/// 0 <= phi'' <= beta, and phi' continuous. Lambda: weight of the regulariser. b: the noise.
/// Neighbours: one v_i is added or removed.
///
/// kappa: ln(1 + beta / Lambda).
struct ObjectivePerturbation {
  double mu = 0.0;     ///< > 0, finite
  double kappa = 0.0;  ///< >= 0, finite
};

/// Returns an upper bound on delta at epsilon, for adding and for removing one example, of
/// objective perturbation together with other Gaussian releases, made before it or from its result.
/// others: sensitivity / noise std of these releases together; 0 for none. The bound is
///
///   delta(epsilon) = delta_G(hypot(mu, others), epsilon - kappa)
///                    + delta_G(others, epsilon - kappa) / 2,
///
/// with delta_G the delta of the Gaussian mechanism (gaussian_delta); 1 if epsilon < kappa.
/// Requires epsilon >= 0.
///
/// Proof. w is the minimum if b = -(sum of phi' v_i + Lambda w): one w for each b. So the density
/// of w is that of b times the determinant of the second derivative A of sum + Lambda / 2 |w|^2.
/// Let one data set have v in addition to the other's examples; at w let a = -phi'(v . w), in [0,
/// 1]. The two b differ by a v, the determinants by the factor 1 + phi'' v . A^-1 v, which is in
/// [1, 1 + beta / Lambda] (the matrices differ by one of rank one: nothing depends on the
/// dimension). So the privacy loss, with the density of either data set in the numerator, is at
/// most
///   mu^2 (a t + a^2 |v|^2 / 2) + kappa,   t = b . v or -b . v, for the b that was drawn.
/// With u = mu t / |v|, a standard normal number even if a is chosen by looking at it, and a |v| in
/// [0, 1], this is convex in a |v|, so at most max(0, mu u + mu^2 / 2) + kappa: the Gaussian
/// mechanism's loss, cut off at 0, plus kappa. delta(epsilon) = E[(1 - exp(epsilon - loss))+]
/// increases with the loss, and losses below 0 do not contribute if epsilon >= kappa. With other
/// Gaussian releases the losses add. If this release's loss is cut off, which has probability below
/// 1/2, theirs alone must exceed epsilon - kappa.
///
/// Because phi' never changes its sign, the factor of 2 of the general case is not needed. Sources:
/// Chaudhuri, Monteleoni, Sarwate 2011 (arXiv:0912.0071); Kifer, Smith, Thakurta 2012, who correct
/// its determinant, use Gaussian noise, and show that phi'' may jump; Redberg, Koskela, Wang 2023
/// (arXiv:2401.00583), for the loss as a random variable.
///
/// Throws std::invalid_argument if a number is out of range.
double objective_perturbation_delta(const ObjectivePerturbation& release, double others,
                                    double epsilon);

/// Returns the largest mu of objective perturbation with which it and other Gaussian releases
/// together are (epsilon, delta)-DP. kappa: as computed for ObjectivePerturbation. fixed:
/// sensitivity / noise std of all earlier releases together. The noisy result is released, too,
/// with sensitivity / noise std = share mu, share > 0. Rounded down by less than 1e-9 relatively.
/// Throws std::domain_error if no mu > 0 is small enough.
double objective_perturbation_mu(double kappa, double fixed, double share, double epsilon,
                                 double delta);

}  // namespace cudp::privacy

#include "privacy/rdp/poisson_laplace.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "privacy/math/constants.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "privacy/rdp/excess.hpp"
#include "privacy/rdp/pure.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Returns log A at an integer order, where A = E[(1 - q + q L)^alpha] and L is the likelihood
/// ratio of the two Laplace distributions. A - 1 is summed instead of A, to avoid cancellation
/// (excess.hpp). Because the binomial weights sum to 1, it is the sum of each weight times (moment
/// of L - 1), and the terms of orders 0 and 1 are 0. scale: scale of the Laplace noise.
double log_laplace_moment(double q, double scale, std::uint64_t alpha) {
  if (alpha == 1) return 0.0;
  const double log_q = std::log(q), log_p = std::log1p(-q);
  const auto n = static_cast<double>(alpha);
  LogSum sum;
  double log_binomial = std::log(n), magnitude = 0.0;
  for (std::uint64_t i = 2; i <= alpha; ++i) {
    const auto m = static_cast<double>(i);
    log_binomial += std::log((n - m + 1.0) / m);
    const double log_moment_of_m = (m - 1.0) * rdp_laplace(scale, m);
    if (log_moment_of_m == 0.0) continue;
    sum.add(log_binomial + m * log_q + (n - m) * log_p + log_expm1(log_moment_of_m));
    magnitude = std::fmax(magnitude, (m + 1.0) * std::fabs(log_binomial) - m * log_q -
                                         (n - m) * log_p + log_moment_of_m);
  }
  return log_moment(sum.value(), magnitude);
}

}  // namespace

double rdp_poisson_laplace(double q, double scale, double alpha) {
  check(PoissonGaussian{.q = q, .sigma = 1.0});
  if (!(alpha > 1.0 && alpha <= largest_order))
    throw std::invalid_argument("order: expected a Renyi order in (1, 1e6], found " +
                                number(alpha));
  const double laplace = rdp_laplace(scale, alpha);
  if (q == 0.0) return 0.0;
  if (q == 1.0) return laplace;
  q = std::fmax(q, 1e-100);
  scale = std::fmin(scale, 1e100);
  const double below = std::floor(alpha), share = alpha - below;
  const auto n = static_cast<std::uint64_t>(below);
  double log_a = log_laplace_moment(q, scale, n);
  if (share > 0.0) log_a = (1.0 - share) * log_a + share * log_laplace_moment(q, scale, n + 1);
  return std::fmin(laplace, log_a / (alpha - 1.0) * (1.0 + 8.0 * rounding));
}

}  // namespace cudp::privacy

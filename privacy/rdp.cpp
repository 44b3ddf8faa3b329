#include "privacy/rdp.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace cudp::privacy {

Guarantee epsilon_from_rdp(std::span<const double> orders, std::span<const double> rdp,
                           double delta) {
  if (orders.size() != rdp.size())
    throw std::invalid_argument("rdp: orders and rdp differ in length");
  if (!(delta > 0.0 && delta < 1.0)) throw std::invalid_argument("rdp: delta must be in (0, 1)");
  Guarantee best{std::numeric_limits<double>::infinity(), delta, 0.0};
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const double a = orders[i];
    if (!(a > 1.0 && rdp[i] >= 0.0))
      throw std::invalid_argument("rdp: every order must be > 1 and every rdp >= 0");
    const double epsilon = rdp[i] + std::log1p(-1.0 / a) - std::log(delta * a) / (a - 1.0);
    if (epsilon < best.epsilon) best = {epsilon, delta, a};
  }
  if (!std::isfinite(best.epsilon))
    throw std::invalid_argument("rdp: no order gives a finite epsilon");
  best.epsilon = std::fmax(best.epsilon, 0.0);
  return best;
}

}  // namespace cudp::privacy

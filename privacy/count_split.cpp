#include "privacy/count_split.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

/// Returns `all` minus `part`, rounded down, so that both together are at most `all`.
double rest(double all, double part) {
  return (all - part) * (1.0 - std::numeric_limits<double>::epsilon());
}

void check_budget(const std::string& what, double epsilon, double delta) {
  if (!(epsilon > 0.0 && std::isfinite(epsilon)))
    throw std::invalid_argument(what + " epsilon: expected a finite number > 0, found " +
                                number(epsilon));
  if (!(delta > 0.0 && delta < 1.0))
    throw std::invalid_argument(what + " delta: expected a number in (0, 1), found " +
                                number(delta));
}

void check_sum(const std::string& what, double count, double training, double all) {
  // The rounded sum may be `all` although the exact sum is half a unit in the last place larger. So
  // the rounded difference is compared, too.
  if (!(training <= all - count && count + training <= all))
    throw std::invalid_argument(what + ": expected parts of at most " + number(all) +
                                " together, found " + number(count) + " and " + number(training));
}

/// Returns the delta of the noisy number of examples at its epsilon, given its noise. s: how the
/// budget is split.
double count_delta(const CountSplit& s) {
  return gaussian_delta(static_cast<double>(s.group) / s.sigma, s.count_epsilon);
}

}  // namespace

CountSplit split_for_count(double epsilon, double delta, std::uint64_t group) {
  check_budget("the whole", epsilon, delta);
  check_group(group);
  CountSplit s{.epsilon = epsilon,
               .delta = delta,
               .count_epsilon = kCountEpsilonShare * epsilon,
               .count_delta = kCountDeltaShare * delta,
               .group = group};
  s.training_epsilon = rest(epsilon, s.count_epsilon);
  s.training_delta = rest(delta, s.count_delta);
  check_budget("the count's", s.count_epsilon, s.count_delta);
  // Adds a little noise, because mathematical functions may be rounded differently on the machine
  // that checks the split. count_delta() is a difference of Gaussian tails. Its relative rounding
  // error is larger if it is small, so `more` grows until the computed delta is safely below its
  // limit.
  const double mu = gaussian_mu(s.count_epsilon, s.count_delta);
  for (double more = 1e-9; more < 1.0; more *= 4.0) {
    s.sigma = std::fmax(kMinCountNoise, static_cast<double>(group) / mu * (1.0 + more));
    if (count_delta(s) <= s.count_delta * (1.0 - 0.5 * more)) break;
  }
  check(s);
  return s;
}

CountSplit split_with_count_of(const CountSplit& larger, double epsilon, double delta) {
  CountSplit s = larger;
  s.epsilon = epsilon;
  s.delta = delta;
  s.training_epsilon = rest(epsilon, s.count_epsilon);
  s.training_delta = rest(delta, s.count_delta);
  check(s);
  return s;
}

void check(const CountSplit& s) {
  check_budget("the whole", s.epsilon, s.delta);
  check_budget("the count's", s.count_epsilon, s.count_delta);
  check_budget("the training's", s.training_epsilon, s.training_delta);
  check_sum("epsilon", s.count_epsilon, s.training_epsilon, s.epsilon);
  check_sum("delta", s.count_delta, s.training_delta, s.delta);
  check_group(s.group);
  if (!(s.sigma >= kMinCountNoise && std::isfinite(s.sigma)))
    throw std::invalid_argument("the count's sigma: expected a finite number of at least " +
                                number(kMinCountNoise) + ", found " + number(s.sigma));
  const double delta = count_delta(s);
  if (!(delta <= s.count_delta))
    throw std::invalid_argument("the count's delta: expected at least " + number(delta) +
                                " with noise " + number(s.sigma) + ", found " +
                                number(s.count_delta));
}

}  // namespace cudp::privacy

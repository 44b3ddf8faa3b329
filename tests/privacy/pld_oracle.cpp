#include "tests/privacy/pld_oracle.hpp"

#include <algorithm>
#include <cmath>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/erf.hpp>

namespace cudp::privacy::oracle {

Wide Mixture::density(Wide x) const {
  Wide sum = 0;
  for (const auto& [centre, weight] : parts) {
    const Wide z = (x - centre) / sigma;
    sum += weight * std::exp(-z * z / 2);
  }
  return sum;
}

Wide Mixture::above(Wide x) const {
  Wide sum = 0;
  for (const auto& [centre, weight] : parts)
    sum += weight * boost::math::erfc(Wide((x - centre) / (sigma * std::sqrt(Wide(2))))) / 2;
  return sum;
}

Wide delta_of_one(const Mixture& p, const Mixture& q, Wide epsilon) {
  const Wide sigma = p.sigma;
  const auto loss = [&](const Wide& x) -> Wide { return std::log(p.density(x) / q.density(x)); };
  Wide low = -60 * sigma - 3, high = 60 * sigma + 10;
  const bool rising = loss(high) > loss(low);
  for (int i = 0; i < 80; ++i) {
    const Wide middle = (low + high) / 2;
    ((loss(middle) < epsilon) == rising ? low : high) = middle;
  }
  const Wide x = (low + high) / 2;
  // P(above) - e^epsilon Q(above), or of what is below where the loss falls.
  if (rising) return (std::max)(Wide(p.above(x) - std::exp(epsilon) * q.above(x)), Wide(0));
  const auto below = [&](const Mixture& m) {
    Mixture mirrored = m;
    for (auto& part : mirrored.parts) part.first = -part.first;
    return mirrored.above(-x);
  };
  return (std::max)(Wide(below(p) - std::exp(epsilon) * below(q)), Wide(0));
}

double delta_of_two(const Mixture& p, const Mixture& q, double epsilon) {
  using Rule = boost::math::quadrature::gauss<double, 20>;
  const double scale = 1.0 / (p.sigma * std::sqrt(2.0 * 3.14159265358979323846));
  const auto loss = [&](double x) -> Wide {
    return std::log(p.density(Wide(x)) / q.density(Wide(x)));
  };
  const auto integrand = [&](double x) {
    const Wide density = p.density(Wide(x));
    return static_cast<double>(density * delta_of_one(p, q, Wide(epsilon) - loss(x))) * scale;
  };
  const bool mixed_first = p.parts.size() > 1;
  const double edge = std::log((mixed_first ? p : q).parts.front().second) * (mixed_first ? 1 : -1);
  const double begin = -9.0 * p.sigma, end = p.parts.back().first + 9.0 * p.sigma;
  double low = begin, high = end;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    ((loss(middle) < epsilon - edge) == mixed_first ? low : high) = middle;
  }
  double sum = 0.0;
  const int panels = 24;
  for (const auto& [from, to] : {std::pair(begin, low), std::pair(low, end)})
    for (int i = 0; i < panels; ++i)
      sum += Rule::integrate(integrand, from + (to - from) * i / panels,
                             from + (to - from) * (i + 1) / panels);
  return sum;
}

}  // namespace cudp::privacy::oracle

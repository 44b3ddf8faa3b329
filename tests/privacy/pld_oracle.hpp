#pragma once
#include <utility>
#include <vector>

// Judges of privacy/pld that share no code with it: hockey-stick divergences of one and of two
// steps from their definition, in nineteen digits.

namespace cudp::privacy::oracle {

using Wide = long double;

/// sum w_i N(c_i, sigma^2)
struct Mixture {
  std::vector<std::pair<double, double>> parts;  // (centre, weight)
  double sigma = 1.0;

  Wide density(Wide x) const;
  Wide above(Wide x) const;
};

/// E[(P - e^epsilon Q)+] for two mixtures whose ratio is monotone.
Wide delta_of_one(const Mixture& p, const Mixture& q, Wide epsilon);

/// The same for two independent steps: the mean of delta_of_one(epsilon - loss) over the first,
/// which has a kink where epsilon - loss is the end of the loss's range, log(first weight) or minus
/// that.
double delta_of_two(const Mixture& p, const Mixture& q, double epsilon);

}  // namespace cudp::privacy::oracle

#include "privacy/rdp/dominating_pair.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "privacy/rdp/binomial.hpp"

namespace cudp::privacy {
namespace {

GaussianPair pair_of(ScalarMixture mixture, double sigma, Change change, double probability = 1.0) {
  ScalarMixture zero{.centres = {0.0}, .weights = {1.0}};
  GaussianPair pair{.probability = probability, .first = {}, .second = {}, .sigma = sigma};
  pair.first = change == Change::add ? zero : mixture;
  pair.second = change == Change::add ? std::move(mixture) : std::move(zero);
  return pair;
}

/// Returns the mixture of Gaussians in which centre j * spacing has the weight weights[j], j = 0,
/// 1, ...; centres with weight 0 are left out.
ScalarMixture mixture_of(const std::vector<double>& weights, double spacing) {
  ScalarMixture mixture;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (!(weights[j] > 0.0)) continue;
    mixture.centres.push_back(static_cast<double>(j) * spacing);
    mixture.weights.push_back(weights[j]);
  }
  return mixture;
}

[[noreturn]] void unknown(const Mechanism& mechanism, const std::string& expected) {
  throw std::domain_error(std::string(name(mechanism)) + ": expected " + expected);
}

struct Dominating {
  const Mechanism& mechanism;
  Change change;
  std::uint64_t k;

  std::vector<GaussianPair> operator()(const Gaussian& m) const {
    const ScalarMixture moved{.centres = {static_cast<double>(k)}, .weights = {1.0}};
    return {pair_of(moved, m.sigma, change)};
  }
  std::vector<GaussianPair> operator()(const PoissonGaussian& m) const {
    return {pair_of(mixture_of(binomial_weights(k, m.q), 1.0), m.sigma, change)};
  }
  std::vector<GaussianPair> operator()(const FixedSizeGaussian& m) const {
    return {pair_of(mixture_of(hypergeometric_weights(m.batch, m.n, k), 2.0), m.sigma, change)};
  }
  std::vector<GaussianPair> operator()(const TruncatedPoissonGaussian& m) const {
    if (k > 1)
      unknown(mechanism, "groups of 1 (no pair is known for more), found " + std::to_string(k));
    const auto n = static_cast<double>(m.n);
    const double full = binomial_tail(m.n - 1, m.q, m.max_batch);
    const PoissonGaussian plain{.q = m.q, .sigma = m.sigma};
    std::vector<GaussianPair> pairs = dominating_pairs(plain, change, 1);
    if (full == 0.0) return pairs;
    // Rounds both probabilities up: binomial_tail() rounds `full` up by at most 1e-9 of its value.
    // The sum of both exceeds 1 by 2e-9 of `full`.
    pairs[0].probability = std::fmin(1.0, 1.0 - full * (1.0 - 2e-9));
    const double p_included = binomial_tail(m.n, m.q, m.max_batch + 1) *
                              (static_cast<double>(m.max_batch) / n) / (full * (1.0 - 1e-9));
    pairs.push_back(pair_of(mixture_of(binomial_weights(1, std::fmin(p_included, 1.0)), 2.0),
                            m.sigma, change, full));
    return pairs;
  }
  std::vector<GaussianPair> operator()(const AllocatedGaussian& m) const {
    if (m.steps > 1) unknown(mechanism, "pld/allocation: an epoch has no pair on the line");
    return dominating_pairs(Gaussian{m.sigma}, change, k);
  }
  std::vector<GaussianPair> operator()(const GaussianMixture& m) const {
    if (k > 1)
      unknown(mechanism, "groups of 1 (give the group's own mixture), found " + std::to_string(k));
    std::vector<std::size_t> order(m.sensitivities.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return m.sensitivities[a] < m.sensitivities[b];
    });
    ScalarMixture mixture;
    double sum = 0.0;
    for (const std::size_t i : order) {
      if (!(m.probabilities[i] > 0.0)) continue;
      sum += m.probabilities[i];
      if (!mixture.centres.empty() && mixture.centres.back() == m.sensitivities[i]) {
        mixture.weights.back() += m.probabilities[i];
        continue;
      }
      mixture.centres.push_back(m.sensitivities[i]);
      mixture.weights.push_back(m.probabilities[i]);
    }
    for (double& weight : mixture.weights) weight /= sum;
    return {pair_of(mixture, m.sigma, change)};
  }
  template <class Other>
  std::vector<GaussianPair> operator()(const Other&) const {
    unknown(mechanism, "Gaussian noise");
  }
};

std::vector<GaussianPair> replacing(const Mechanism& mechanism, std::uint64_t k) {
  if (const auto* gaussian = std::get_if<Gaussian>(&mechanism)) {
    const ScalarMixture moved{.centres = {2.0 * static_cast<double>(k)}, .weights = {1.0}};
    return {pair_of(moved, gaussian->sigma, Change::remove)};
  }
  const auto* poisson = std::get_if<PoissonGaussian>(&mechanism);
  if (poisson == nullptr || k > 1)
    unknown(mechanism,
            "a mechanism and a group for which a replacing pair is known (gaussian, or "
            "poisson-gaussian with a group of 1)");
  const double q = poisson->q;
  if (q == 0.0 || q == 1.0) {
    const ScalarMixture moved{.centres = {2.0 * q}, .weights = {1.0}};
    return {pair_of(moved, poisson->sigma, Change::remove)};
  }
  return {{.probability = 1.0,
           .first = {.centres = {0.0, 1.0}, .weights = {1.0 - q, q}},
           .second = {.centres = {-1.0, 0.0}, .weights = {q, 1.0 - q}},
           .sigma = poisson->sigma}};
}

}  // namespace

std::vector<GaussianPair> dominating_pairs(const Mechanism& mechanism, Change change,
                                           std::uint64_t k) {
  check(mechanism);
  check_group(k);
  if (change == Change::replace) return replacing(mechanism, k);
  return std::visit(Dominating{mechanism, change, k}, mechanism);
}

}  // namespace cudp::privacy

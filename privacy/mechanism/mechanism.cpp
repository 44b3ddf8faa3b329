#include "privacy/mechanism/mechanism.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "privacy/math/constants.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

constexpr std::uint64_t max_examples = std::uint64_t{1} << 53;
constexpr std::uint64_t max_epoch = std::uint64_t{1} << 32;  // steps

[[noreturn]] void refuse(const char* what, const char* expected, double found) {
  throw std::invalid_argument(std::string(what) + ": expected " + expected + ", found " +
                              number(found));
}

void check_sigma(double sigma) {
  if (!(sigma > 0.0 && sigma < infinity)) refuse("sigma", "a finite noise multiplier > 0", sigma);
}

void check_rate(double q) {
  if (!(q >= 0.0 && q <= 1.0)) refuse("q", "a sampling rate in [0, 1]", q);
}

void check_scale(double scale) {
  if (!(scale > 0.0 && scale < infinity)) refuse("scale", "a finite number > 0", scale);
}

struct Check {
  void operator()(const Gaussian& m) const { check_sigma(m.sigma); }
  void operator()(const PoissonGaussian& m) const {
    check_rate(m.q);
    check_sigma(m.sigma);
  }
  void operator()(const FixedSizeGaussian& m) const {
    if (!(m.batch >= 1)) refuse("batch", "at least 1", static_cast<double>(m.batch));
    if (!(m.n >= m.batch && m.n <= max_examples))
      refuse("n", "at least the batch and at most 2^53", static_cast<double>(m.n));
    check_sigma(m.sigma);
  }
  void operator()(const TruncatedPoissonGaussian& m) const {
    if (!(m.n >= 1 && m.n <= max_examples))
      refuse("n", "1 to 2^53 examples", static_cast<double>(m.n));
    if (!(m.max_batch >= 1)) refuse("max_batch", "at least 1", static_cast<double>(m.max_batch));
    check_rate(m.q);
    check_sigma(m.sigma);
  }
  void operator()(const AllocatedGaussian& m) const {
    if (!(m.steps >= 1 && m.steps <= max_epoch))
      refuse("steps of an epoch", "1 to 2^32", static_cast<double>(m.steps));
    check_sigma(m.sigma);
  }
  void operator()(const GaussianMixture& m) const {
    if (m.sensitivities.empty() || m.sensitivities.size() != m.probabilities.size())
      throw std::invalid_argument(
          "probabilities: expected one for each of " + std::to_string(m.sensitivities.size()) +
          " sensitivities (at least 1), found " + std::to_string(m.probabilities.size()));
    double sum = 0.0;
    for (const double c : m.sensitivities)
      if (!(c >= 0.0 && c < infinity)) refuse("sensitivities", "finite numbers >= 0", c);
    for (const double p : m.probabilities) {
      if (!(p >= 0.0 && p <= 1.0 + 1e-9)) refuse("probabilities", "numbers in [0, 1]", p);
      sum += p;
    }
    if (!(std::fabs(sum - 1.0) <= 1e-9)) refuse("probabilities", "a sum of 1", sum);
    check_sigma(m.sigma);
  }
  void operator()(const Laplace& m) const { check_scale(m.scale); }
  void operator()(const PoissonLaplace& m) const {
    check_rate(m.q);
    check_scale(m.scale);
  }
  void operator()(const BoundedRange& m) const { check_epsilon(m.epsilon); }
  void operator()(const ApproximateDp& m) const {
    check_epsilon(m.epsilon);
    if (!(m.delta >= 0.0 && m.delta < 1.0)) refuse("delta", "a number in [0, 1)", m.delta);
  }
  static void check_epsilon(double epsilon) {
    if (!(epsilon >= 0.0 && epsilon < infinity)) refuse("epsilon", "a finite number >= 0", epsilon);
  }
};

struct Idle {
  bool operator()(const Gaussian&) const { return false; }
  bool operator()(const PoissonGaussian& m) const { return m.q == 0.0; }
  bool operator()(const FixedSizeGaussian&) const { return false; }
  bool operator()(const TruncatedPoissonGaussian& m) const { return m.q == 0.0; }
  bool operator()(const AllocatedGaussian&) const { return false; }
  bool operator()(const GaussianMixture& m) const {
    for (std::size_t i = 0; i < m.sensitivities.size(); ++i)
      if (m.sensitivities[i] > 0.0 && m.probabilities[i] > 0.0) return false;
    return true;
  }
  bool operator()(const Laplace&) const { return false; }
  bool operator()(const PoissonLaplace& m) const { return m.q == 0.0; }
  bool operator()(const BoundedRange& m) const { return m.epsilon == 0.0; }
  bool operator()(const ApproximateDp& m) const { return m.epsilon == 0.0 && m.delta == 0.0; }
};

struct Name {
  std::string_view operator()(const Gaussian&) const { return "gaussian"; }
  std::string_view operator()(const PoissonGaussian&) const { return "poisson-gaussian"; }
  std::string_view operator()(const FixedSizeGaussian&) const { return "fixed-size-gaussian"; }
  std::string_view operator()(const TruncatedPoissonGaussian&) const {
    return "truncated-poisson-gaussian";
  }
  std::string_view operator()(const AllocatedGaussian&) const { return "allocated-gaussian"; }
  std::string_view operator()(const GaussianMixture&) const { return "gaussian-mixture"; }
  std::string_view operator()(const Laplace&) const { return "laplace"; }
  std::string_view operator()(const PoissonLaplace&) const { return "poisson-laplace"; }
  std::string_view operator()(const BoundedRange&) const { return "bounded-range"; }
  std::string_view operator()(const ApproximateDp&) const { return "approximate-dp"; }
};

}  // namespace

Mechanism sampled_gaussian_mechanism(double q, double sigma) {
  const PoissonGaussian sampled{.q = q, .sigma = sigma};
  check(sampled);
  if (q == 1.0) return Gaussian{sigma};
  return sampled;
}

std::span<const Change> changes_of(NeighbouringRelation relation) {
  static constexpr Change kAddOrRemove[] = {Change::add, Change::remove};
  static constexpr Change kReplace[] = {Change::replace};
  const std::span<const Change> both(kAddOrRemove);
  switch (relation) {
    case NeighbouringRelation::add:
      return both.first(1);
    case NeighbouringRelation::remove:
      return both.last(1);
    case NeighbouringRelation::add_or_remove:
      return both;
    case NeighbouringRelation::replace_one:
      return kReplace;
  }
  return {};
}

void check_group(std::uint64_t group) {
  if (group < 1 || group > kMaxGroup)
    throw std::invalid_argument("group: expected 1 to " + std::to_string(kMaxGroup) +
                                " examples, found " + std::to_string(group));
}

std::string_view name(NeighbouringRelation relation) {
  switch (relation) {
    case NeighbouringRelation::add:
      return "add";
    case NeighbouringRelation::remove:
      return "remove";
    case NeighbouringRelation::add_or_remove:
      return "add_or_remove";
    case NeighbouringRelation::replace_one:
      return "replace_one";
  }
  return "unknown";
}

std::string_view name(const Mechanism& mechanism) { return std::visit(Name{}, mechanism); }

void check(const Mechanism& mechanism) { std::visit(Check{}, mechanism); }

void check(const Release& release) { check(release.mechanism); }

bool releases_nothing(const Release& release) {
  return release.count == 0 || std::visit(Idle{}, release.mechanism);
}

}  // namespace cudp::privacy

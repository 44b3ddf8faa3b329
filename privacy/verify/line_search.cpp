#include "privacy/verify/line_search.hpp"

#include <algorithm>
#include <cmath>

#include "privacy/text/number.hpp"

namespace cudp::verify {
namespace {

/// Of a direction that was added up in double in another order.
constexpr double kDirectionError = 1e-12;

std::string expected(const std::string& what, double wanted, double found) {
  return what + ": expected " + privacy::number(wanted) + ", found " + privacy::number(found);
}

}  // namespace

void LineSearch::begin(std::uint64_t step) {
  measured_.clear();
  chosen_.clear();
  const auto known = after_.find(step);
  sizes_ = known != after_.end() ? known->second : Sizes{};
}

std::string LineSearch::check(const State& before, const Update& u, double regularisation) {
  const std::size_t n = u.parameters.size();
  if (u.optimizer != "dp-agd") return "expected dp-agd, found " + u.optimizer;
  if (measured_.empty() || measured_.size() != chosen_.size())
    return "expected a choice after every gradient";
  if (before.parameters.size() != n) return "another number of parameters";
  if (!(std::fabs(u.weight_decay - regularisation) <= kDirectionError * regularisation))
    return expected("regularisation", regularisation, u.weight_decay);
  const std::vector<double>& last = chosen_.back();
  if (last.size() != 1 || !(last[0] > 0.0 && last[0] < kStepSizes)) return "no step was chosen";
  const auto step =
      static_cast<double>(static_cast<float>(sizes_.largest * last[0] / (kStepSizes - 1)));
  if (u.learning_rate != step) return expected("step size", step, u.learning_rate);

  std::vector<double> g(n, 0.0);
  double weights = 0.0;
  for (const Release& r : measured_) {
    if (r.values.size() != n) return "a gradient of another length";
    const double weight = std::pow(r.sensitivity / r.noise_std, 2.0);
    for (std::size_t j = 0; j < n; ++j) g[j] += weight * r.values[j];
    weights += weight;
  }
  double square = 0.0;
  for (std::size_t j = 0; j < n; ++j) {
    g[j] = g[j] / weights + regularisation * static_cast<double>(before.parameters[j]);
    square += g[j] * g[j];
  }
  for (std::size_t j = 0; j < n; ++j) {
    const double unit = square > 0.0 ? g[j] / std::sqrt(square) : 0.0;
    const double wanted = static_cast<double>(before.parameters[j]) - step * unit;
    const auto found = static_cast<double>(u.parameters[j]);
    // Directions and parameters are floats.
    const double error = step * (0x1p-24 * std::fabs(unit) + kDirectionError) +
                         0x1p-24 * std::fabs(wanted) + 0x1p-126;
    if (!(std::fabs(found - wanted) <= error * (1.0 + 0x1p-20)))
      return expected("parameter " + std::to_string(j), wanted, found);
  }
  return "";
}

std::string LineSearch::follows(const State& before, const Update& after, double regularisation,
                                double shrink) {
  for (std::size_t i = 0; i + 1 < chosen_.size(); ++i) sizes_.largest *= shrink;
  std::string wrong = check(before, after, regularisation);
  for (std::size_t i = 0; wrong.empty() && i + 1 < chosen_.size(); ++i)
    if (chosen_[i] != std::vector<double>{0.0}) wrong = "a step was chosen and not taken";
  sizes_.steps.push_back(after.learning_rate);
  if (sizes_.steps.size() == kWindow) {
    sizes_.largest = (1.0 + kWindowGrowth) * *std::ranges::max_element(sizes_.steps);
    sizes_.steps.clear();
  }
  after_[after.step + 1] = sizes_;
  measured_.clear();
  chosen_.clear();
  return wrong;
}

}  // namespace cudp::verify

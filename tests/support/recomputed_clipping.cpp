// Gradients that an oracle makes in double, and what becomes of them: how far each is clipped, what
// it adds, and how far their sum is from the one that ran.
#include <algorithm>
#include <cmath>
#include <random>

#include <spdlog/fmt/fmt.h>

#include "tests/support/recomputer.hpp"

namespace cudp::recomputing {

Values Recomputer::gradient(std::uint32_t i, double answer, const Values& theta) const {
  return reference::gradient(net(), theta, reference::features(train(), i), answer).gradient;
}

double Recomputer::other_answer(std::uint32_t i) const {
  if (train().has_targets()) return answer(i) + 1.0;
  return (train().labels[i] + 1) % net().classes;
}

Measured Recomputer::measure(std::uint32_t i, const Values& theta) {
  ++found_.examples;
  Measured m;
  m.gradient = gradient(i, answer(i), theta);
  // This gradient is as large as the terms of the gradient, which nearly cancel if the label is the
  // prediction.
  const Values other = gradient(i, other_answer(i), theta);
  Values squares = reference::squared_norms(net(), m.gradient);
  const Values of_other = reference::squared_norms(net(), other);
  double square = 0.0;
  double error = 0.0;
  for (std::size_t g = 0; g < squares.size(); ++g) {
    const double size = std::sqrt(std::fmax(squares[g], of_other[g]));
    m.norms.push_back(std::sqrt(squares[g]));
    m.errors.push_back(kGradientError * size);
    square += squares[g];
    error += m.errors[g] * m.errors[g];
    m.sane = m.sane && size < kLargest;
  }
  m.norm = std::sqrt(square);
  m.error = std::sqrt(error);
  return m;
}

double Recomputer::weight(std::uint32_t i) const {
  const std::vector<double>& all = config().class_weights;
  if (all.empty()) return 1.0;
  return all.at(train().labels[i]) / *std::ranges::max_element(all);
}

Measured Recomputer::measure_weighted(std::uint32_t i, const Values& theta) {
  Measured m = measure(i, theta);
  const double w = weight(i);
  for (Values* const all : {&m.gradient, &m.norms, &m.errors})
    for (double& x : *all) x *= w;
  m.norm *= w;
  m.error *= w;
  return m;
}

void Recomputer::add_clipped(const Measured& m, const Values& factors, double sensitivity,
                             const std::string& where, Values& sum, double* allowed) {
  double square = 0.0;
  for (const ParameterTensor& t : net().parameters)
    for (std::size_t j = t.offset; j < t.offset + t.size; ++j)
      sum[j] += factors[static_cast<std::size_t>(t.group)] * m.gradient[j];
  for (std::size_t g = 0; g < factors.size(); ++g) {
    square += std::pow(factors[g] * m.norms[g], 2);
    *allowed += 2.0 * factors[g] * m.errors[g];
  }
  check_length(std::sqrt(square), sensitivity, where);
}

void Recomputer::check_length(double length, double sensitivity, const std::string& where) {
  found_.longest = std::fmax(found_.longest, length / sensitivity);
  if (!(length <= sensitivity))
    fault(fmt::format("{}: an example adds {:.9g}, the certificate's sensitivity is {:.9g}", where,
                      length, sensitivity));
}

void Recomputer::check_distance(const Values& sum, const transcript::Release& r, double allowed,
                                std::size_t n, const std::string& where,
                                const std::function<Values()>& again) {
  if (sum.size() != r.sums.size())
    return fault(
        fmt::format("{}: expected {} numbers, found {}", where, sum.size(), r.sums.size()));
  ++found_.sums;
  const auto distance = [&](const Values& of) {
    double square = 0.0;
    for (std::size_t j = 0; j < of.size(); ++j)
      square += std::pow(of[j] - static_cast<double>(r.sums[j]) * r.grid, 2);
    return std::sqrt(square);
  };
  allowed += r.grid * std::sqrt(static_cast<double>(sum.size() * n));
  const double found = distance(sum);
  if (!(found <= allowed)) {
    const Values beside = again();
    double moved = 0.0;
    for (std::size_t j = 0; j < sum.size(); ++j) moved += std::pow(beside[j] - sum[j], 2);
    allowed += 2.0 * std::sqrt(moved);
  }
  found_.error = std::fmax(found_.error, found > 0.0 ? found / allowed : 0.0);
  if (!(found <= allowed))
    fault(
        fmt::format("{}: the sum of {} examples is {:.6g} from the oracle's, expected {:.6g} at "
                    "most; its length is {:.6g}",
                    where, n, found, allowed, norm_of(sum)));
}

Values Recomputer::beside(const Values& theta) const {
  std::mt19937 random(7);
  Values moved = theta;
  for (double& x : moved) x *= 1.0 + (random() % 2 == 0 ? 1e-6 : -1e-6);
  return moved;
}

double Recomputer::clip_of(const transcript::Release& r) const {
  if (!certificate_.quantile) return config().clip_norm;
  return r.noise_std / certificate_.quantile->gradient_noise_multiplier /
         (certificate_.sensitivity / certificate_.clip);
}

void Recomputer::check_sum(const transcript::Release& r) {
  if (!batch_ || batch_->step != r.step) return;
  if (r.step % every_ != 0 && !certificate_.quantile) return;
  if (!is_sane()) return leave_out();
  if (is("adaclip")) return check_transformed(r);
  const double clip = clip_of(r);
  const double sensitivity =
      certificate_.quantile ? clip * certificate_.sensitivity / certificate_.clip * (1.0 + 1e-6)
                            : certificate_.sensitivity;
  const ClipSettings settings{.kind = config().clipping, .clip_norm = static_cast<float>(clip)};
  // The weight comes behind the clipping, which counts the gradient without it.
  const auto factors_of = [&](const Measured& m, std::uint32_t i) {
    Values squares;
    for (const double n : m.norms) squares.push_back(n * n);
    Values factors =
        is("norm-bound") ? Values(squares.size(), 1.0) : reference::clip_factors(settings, squares);
    for (double& f : factors) f *= weight(i);
    return factors;
  };
  const Values parameters = theta();
  Values sum(parameters.size(), 0.0);
  double allowed = 1e-6 * clip * static_cast<double>(batch_->examples.size());
  double below_low = 0.0;
  double below_high = 0.0;
  for (const std::uint32_t i : batch_->examples) {
    const Measured m = measure(i, parameters);
    if (!m.sane) return leave_out();
    add_clipped(m, factors_of(m, i), sensitivity, at(r), sum, &allowed);
    below_low += m.norm + 2.0 * m.error < clip * (1.0 - 1e-5) ? 1.0 : 0.0;
    below_high += m.norm - 2.0 * m.error <= clip * (1.0 + 1e-5) ? 1.0 : 0.0;
  }
  const double half = 0.5 * static_cast<double>(batch_->examples.size());
  counts_[r.step] = {below_low - half, below_high - half};
  check_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] {
    Values again(sum.size(), 0.0);
    const Values moved = beside(parameters);
    double unused = 0.0;
    for (const std::uint32_t i : batch_->examples) {
      const Measured m = measure(i, moved);
      add_clipped(m, factors_of(m, i), INFINITY, at(r), again, &unused);
    }
    return again;
  });
}

void Recomputer::check_count(const transcript::Release& r) {
  const auto known = counts_.find(r.step);
  if (known == counts_.end()) return;
  const auto [low, high] = known->second;
  const double count = static_cast<double>(r.sums.at(0)) * r.grid;
  if (!(count >= low && count <= high))
    fault(fmt::format("{}: expected a count of {} to {}, found {}", at(r), low, high, count));
}

}  // namespace cudp::recomputing

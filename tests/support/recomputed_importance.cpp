// Importance sampling of DPIS: the sums of norms, who was a candidate by them, and the sum of the
// directions of the candidates that were accepted.
#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "tests/support/recomputer.hpp"

namespace cudp::recomputing {

std::optional<ImportanceRule> Recomputer::rule_of(std::uint64_t step) const {
  const auto known = totals_.find(step / steps_per_epoch_);
  if (known == totals_.end()) return std::nullopt;
  const auto& options = config().of<DpisOptions>();
  const auto [clip, measured] = known->second;
  const double least = certificate_.expected_batch * clip * (1.0 + 1e-6);
  const double total = std::fmin(std::fmax(measured, least), certificate_.size * clip);
  return ImportanceRule{.clip = clip,
                        .multiple = options.multiple,
                        .min_norm = options.floor * clip,
                        .rate = certificate_.expected_batch / total};
}

bool Recomputer::measure_all() {
  now_.norms.clear();
  now_.errors.clear();
  if (!is_sane()) return false;
  const Values parameters = theta();
  for (std::uint32_t i = 0; i < train().size(); ++i) {
    const Measured m = measure_weighted(i, parameters);
    if (!m.sane) {
      now_.norms.clear();
      return false;
    }
    now_.norms.push_back(m.norm);
    now_.errors.push_back(2.0 * m.error + 1e-6 * m.norm);
  }
  return true;
}

void Recomputer::check_norms(const transcript::Release& r, bool now) {
  if (now && !measure_all()) return leave_out();
  if (now) totals_[r.step] = {r.sensitivity, r.values.at(0)};
  if (now_.norms.empty()) return leave_out();
  ++found_.sums;
  double expected = 0.0;
  double allowed = r.grid * static_cast<double>(now_.norms.size());
  for (std::size_t i = 0; i < now_.norms.size(); ++i) {
    expected += std::fmin(now_.norms[i], r.sensitivity);
    allowed += now_.errors[i];
  }
  const double found = static_cast<double>(r.sums.at(0)) * r.grid;
  if (!(std::fabs(found - expected) <= allowed))
    fault(fmt::format("epoch {}: norms add up to {:.9g} within {:.3g}, found {:.9g}", r.step,
                      expected, allowed, found));
}

double Recomputer::estimate(const ImportanceRule& r, double norm) {
  return std::fmin(r.multiple * std::fmax(std::fmin(norm, r.clip), r.min_norm), 1.0 / r.rate);
}

double Recomputer::share_of_error(const ImportanceRule& r, std::size_t i) const {
  return now_.errors[i] / std::fmax(now_.norms[i], r.min_norm) + 1e-6;
}

void Recomputer::draw_candidates(const transcript::Batch& b) {
  if (b.step % steps_per_epoch_ == 0) measure_all();
  const auto rule = rule_of(b.step);
  if (!rule || now_.norms.empty()) return;
  const RandomStream words = stream(Stream::sampling, b.step);
  for (std::uint32_t i = 0; i < now_.norms.size(); ++i) {
    const double q = estimate(*rule, now_.norms[i]) * rule->rate;
    const std::uint32_t number = train().numbers.empty() ? i : train().numbers[i];
    const double u = reference::word(words, number) * 0x1p-32;
    if (std::fabs(u - q) <= q * share_of_error(*rule, i) + 0x1p-31) continue;
    if ((u < q) == std::ranges::binary_search(b.examples, i)) continue;
    return fault(
        fmt::format("step {}: example {} is {} candidate with probability {:.9g}, and {} "
                    "drawn",
                    b.step, i, u < q ? "a" : "no", q, u < q ? "not" : "was"));
  }
}

void Recomputer::check_directions(const transcript::Release& r) {
  const auto rule = rule_of(r.step);
  if (!batch_ || batch_->step != r.step) return;
  if (!rule || now_.norms.empty() || !is_sane()) {
    now_.norms.clear();
    return leave_out();
  }
  const RandomStream words = stream(Stream::acceptance, r.step);
  const Values parameters = theta();
  Values sum(parameters.size(), 0.0);
  double allowed = 1e-6 * static_cast<double>(batch_->examples.size());
  for (const std::uint32_t i : batch_->examples) {
    const Measured m = measure_weighted(i, parameters);
    if (!m.sane) {
      now_.norms.clear();
      return leave_out();
    }
    const double of = estimate(*rule, now_.norms[i]);
    const double q = std::fmin(std::fmin(m.norm, rule->clip), of) / of;
    const double u = reference::word(words, i) * 0x1p-32;
    const double share = m.norm > 0.0 ? 2.0 * m.error / m.norm : 0.0;
    const double doubt = q * (share + share_of_error(*rule, i)) + 0x1p-30;
    if (std::fabs(u - q) <= doubt || m.norm < 0x1p-38)
      allowed += m.norm > 0.0 ? 1.0 : 0.0;
    else if (u < q)
      allowed += 2.0 * m.error / m.norm;
    if (u < q && m.norm > 0.0)
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += m.gradient[j] / m.norm;
    now_.norms[i] = m.norm;
    now_.errors[i] = 2.0 * m.error + 1e-6 * m.norm;
  }
  check_distance(sum, r, allowed, batch_->examples.size(), at(r), [&] { return sum; });
}

}  // namespace cudp::recomputing

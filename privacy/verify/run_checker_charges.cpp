#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/run_checker.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

}  // namespace

std::optional<std::uint64_t> RunChecker::number_of(const transcript::Release& r) const {
  if (is_method("dp-agd") && (r.stream == kNoise || r.stream == kSelection)) return r.step;
  if (!kinds_.engine) return std::nullopt;
  const std::uint64_t width = steps_per_epoch_ + totals_an_epoch_;
  // If a run of DPIS resumes within an epoch with a new random key, it releases the epoch's noisy
  // sums of norms again. They then have the indices directly before that of the first step it
  // repeats.
  const bool is_restarted = begin_->step / steps_per_epoch_ == r.step;
  const std::uint64_t total = r.step * width + (is_restarted ? begin_->step % steps_per_epoch_ : 0);
  if (r.stream == kNormTotal) return total;
  if (r.stream == kLargestNorms) return total + 1;
  if (r.stream != kNoise && r.stream != kCount) return std::nullopt;
  if (!is_method("dpis")) return r.step / certificate_.steps_of_release();
  return r.step / steps_per_epoch_ * width + totals_an_epoch_ + r.step % steps_per_epoch_;
}

const privacy::Mechanism* RunChecker::check_charge(const transcript::Release& r, bool first) {
  if (r.charged > charges_.total)
    add("charged", at(r) + ": the ledger had " + std::to_string(r.charged) + " releases, and has " +
                       std::to_string(charges_.total));
  const auto n = number_of(r);
  if (!n) return take(r, first);
  numbers_used_.insert({key_, *n});
  // Each key has its own charges in the ledger, after the line that records the loss of the key
  // before it.
  const std::uint64_t now = charges_.lost_keys_before(r.charged);
  if (!key_lines_) {
    if (key_ == 0 ? now != 0 : now <= last_key_lines_) {
      add("charged", at(r) + ": a new key, for which nothing was charged");
      return nullptr;
    }
    key_lines_ = last_key_lines_ = now;
  }
  const privacy::Mechanism* const m = charges_.find(*n, *key_lines_, r.charged);
  if (m == nullptr)
    add("charged", at(r) + ": release " + std::to_string(*n) +
                       " was not in the ledger, which had " + std::to_string(r.charged));
  return m;
}

const privacy::Mechanism* RunChecker::take(const transcript::Release& r, bool first) {
  const double multiplier = r.sensitivity > 0.0 ? r.noise_std / r.sensitivity : 0.0;
  std::uint64_t charged = 0;
  const privacy::Mechanism* found = nullptr;
  for (const Charge& c : charges_.lines) {
    if (c.numbered) continue;
    const privacy::Mechanism& m = c.release.mechanism;
    const double sigma = sigma_of(m);
    const bool same =
        sigma > 0.0 ? !r.sums.empty() && multiplier >= sigma * kProductLowerTolerance &&
                          multiplier <= sigma * kHostUpperTolerance
        : std::holds_alternative<privacy::BoundedRange>(m) ? r.stream == kSelection
                                                           : r.sums.empty() && is_method("objpert");
    if (!same || (found != nullptr && *found != m)) continue;
    found = &m;
    if (c.position < r.charged) charged += std::min(c.release.count, r.charged - c.position);
  }
  if (found == nullptr) {
    add("charged", at(r) + ": nothing like it is in the ledger");
    return nullptr;
  }
  std::uint64_t& taken = taken_[exact_text(*found)];
  if (first)
    taken += r.stream == kSelection ? 2 * r.values.size() : r.stream == kCovariance ? 1 : 2;
  if (taken > 2 * charged)
    add("charged", at(r) + ": the ledger had " + std::to_string(charged) + " like it");
  return found;
}

void RunChecker::check_number_of_releases() {
  std::uint64_t charged = 0;
  for (const Charge& c : charges_.lines) {
    if (!c.numbered) continue;
    charged += c.release.count;
    // The first epoch does not adapt its clipping norm, so it makes one release less than was
    // charged.
    if (is_method("dpis") && totals_an_epoch_ == 2 && c.first == 0 &&
        is_epoch_total(certificate_, c.release.mechanism))
      --charged;
  }
  const bool fits =
      charges_.lost.empty() ? numbers_used_.size() == charged : numbers_used_.size() <= charged;
  if (!fits)
    add("kinds", "expected " + std::to_string(charged) + " numbered releases, found " +
                     std::to_string(numbers_used_.size()));
  for (const auto& [mechanism, count] : taken_) {
    std::uint64_t all = 0;
    for (const Charge& c : charges_.lines)
      if (!c.numbered && exact_text(c.release.mechanism) == mechanism) all += 2 * c.release.count;
    // The covariance matrix of a single column has only a diagonal, which is half a charge.
    if (count != all && !(count + 1 == all && certificate_.feature_noise > 0.0))
      add("kinds", mechanism + ": charged " + std::to_string(all) + " halves, released " +
                       std::to_string(count));
  }
  for (const Charge& c : charges_.lines)
    if (!c.numbered && !taken_.contains(exact_text(c.release.mechanism)))
      add("kinds", exact_text(c.release.mechanism) + ": charged, and never released");
}

void RunChecker::check_listed() {
  std::map<Listing, std::uint64_t> max_times, min_times, stated;
  for (const auto& entry : made_) ++max_times[std::get<2>(entry)];
  for (const auto& [place, kind] : listed_at_least_) ++min_times[kind];
  for (const privacy::NoisyValue& l : certificate_.noisy_values)
    stated[{l.name, l.numbers, l.sensitivity, l.noise_std, l.grid}] += l.times;
  std::map<Listing, std::uint64_t> all = max_times;
  all.insert(stated.begin(), stated.end());
  for (const auto& entry : all) {
    const Listing& kind = entry.first;
    const auto count = [&](const auto& counts) {
      const auto found = counts.find(kind);
      return found == counts.end() ? std::uint64_t{0} : found->second;
    };
    const std::uint64_t says = count(stated);
    const bool fits =
        says <= count(max_times) && (says >= count(min_times) || !certificate_.is_finished());
    if (!fits)
      add("kinds", std::get<0>(kind) + ", noise " + number(std::get<3>(kind)) +
                       ": the certificate lists " + std::to_string(says) + ", the run released " +
                       std::to_string(count(max_times)));
  }
}

}  // namespace cudp::verify

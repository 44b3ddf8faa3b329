#include "privacy/ledger.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <variant>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/rdp/conversion.hpp"
#include "privacy/text/number.hpp"

namespace cudp::privacy {
namespace {

std::string span_text(std::uint64_t begin, std::uint64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

/// Returns a mechanism as text for messages: "q = SAMPLING RATE, sigma = NOISE MULTIPLIER" for a
/// Gaussian mechanism with Poisson sampling, otherwise the text of the mechanism in a ledger file.
std::string described(const Mechanism& mechanism) {
  if (const auto* m = std::get_if<PoissonGaussian>(&mechanism))
    return "q = " + number(m->q) + ", sigma = " + number(m->sigma);
  return exact_text(mechanism);
}

/// Merges b into a by adding its count. Returns false if they are different mechanisms, or if the
/// sum overflows.
bool merge(Release& a, const Release& b) {
  if (a.mechanism != b.mechanism) return false;
  if (b.count > std::numeric_limits<std::uint64_t>::max() - a.count) return false;
  a.count += b.count;
  return true;
}

}  // namespace

void check(const Budget& budget) {
  if (budget.order != 0.0) check_order(budget.order);
  if (!(budget.epsilon > 0.0 && budget.epsilon < std::numeric_limits<double>::infinity()))
    throw std::invalid_argument("epsilon: expected a finite number > 0, found " +
                                number(budget.epsilon));
  check_delta(budget.delta);
  if (!(budget.failure >= 0.0 && budget.failure < budget.delta))
    throw std::invalid_argument("failure: expected a number in [0, delta), found " +
                                number(budget.failure));
  check_group(budget.group);
}

void Ledger::count_first(const CountSplit& split) {
  privacy::check(split);
  if (split_ || budget_ || !records_.empty())
    throw std::invalid_argument("count: expected it as the first entry");
  split_ = split;
}

void Ledger::limit(const Budget& budget) {
  check(budget);
  if (budget_ || !records_.empty())
    throw std::invalid_argument("budget: expected it once, before all releases");
  budget_ = budget;
}

void Ledger::charge(const Release& release) {
  check(release);
  if (release.count == 0) return;
  append({.kind = Kind::release, .first = 0, .release = release});
}

std::uint64_t Ledger::uncharged_steps(std::uint64_t begin, std::uint64_t end,
                                      const Mechanism& mechanism) const {
  check(mechanism);
  if (begin > end)
    throw std::invalid_argument("steps: expected begin <= end, found " + span_text(begin, end));
  if (begin < key_begin_ || begin > until_)
    throw std::invalid_argument("steps: expected to begin in " + span_text(key_begin_, until_) +
                                ", the steps of the current key, found " + std::to_string(begin));
  // Compares `mechanism` with that of the steps that are replayed. Visits the records from the last
  // one back, until the current key begins, or until all replayed steps are compared.
  for (auto r = records_.rbegin(); r != records_.rend() && r->kind != Kind::key; ++r) {
    if (r->kind != Kind::steps) continue;
    if (r->first + r->release.count <= begin) break;
    if (r->release.mechanism == mechanism) continue;
    if (std::max(begin, r->first) < std::min(end, r->first + r->release.count))
      throw std::invalid_argument("steps: expected " + described(r->release.mechanism) +
                                  " to replay step " + std::to_string(std::max(begin, r->first)) +
                                  " with the same key, found " + described(mechanism));
  }
  return end > until_ ? end - until_ : 0;
}

std::uint64_t Ledger::authorise(std::uint64_t begin, std::uint64_t end,
                                const Mechanism& mechanism) {
  const std::uint64_t count = uncharged_steps(begin, end, mechanism);
  if (count > 0)
    append({.kind = Kind::steps,
            .first = until_,
            .release = {.mechanism = mechanism, .count = count}});
  return count;
}

bool Ledger::holds(const Release& release) const {
  std::uint64_t charged = split_ && release.mechanism == Mechanism(Gaussian{split_->sigma}) ? 1 : 0;
  for (const Record& r : records_)
    if (r.kind == Kind::release && r.release.mechanism == release.mechanism)
      charged += r.release.count;
  return charged >= release.count;
}

void Ledger::fresh_key(std::uint64_t step) {
  if (step > until_)
    throw std::invalid_argument("fresh key: expected a step up to " + std::to_string(until_) +
                                ", found " + std::to_string(step));
  append({.kind = Kind::key, .first = step, .release = {}});
}

/// Appends a record that has been checked, or merges it into the last one. Every record, of a
/// charge or of the loss of the random key, is added by this function.
void Ledger::append(const Record& record) {
  if (record.kind == Kind::key) {
    key_begin_ = until_ = record.first;
  } else if (record.kind == Kind::steps) {
    until_ += record.release.count;
  }
  if (record.kind != Kind::key && !records_.empty()) {
    Record& last = records_.back();
    if (last.kind == record.kind && merge(last.release, record.release)) return;
  }
  records_.push_back(record);
}

std::uint64_t Ledger::keys_lost() const {
  return static_cast<std::uint64_t>(std::ranges::count(records_, Kind::key, &Record::kind));
}

std::uint64_t Ledger::repeated() const {
  std::uint64_t charged = 0;
  for (const Record& r : records_)
    if (r.kind == Kind::steps) charged += r.release.count;
  return charged - until_;
}

std::vector<Release> Ledger::releases() const {
  std::vector<Release> all = releases_after_count();
  if (!split_) return all;
  const Release count{.mechanism = Gaussian{split_->sigma}, .count = 1};
  if (all.empty() || !merge(all.front(), count)) all.insert(all.begin(), count);
  return all;
}

std::vector<Release> Ledger::releases_after_count() const {
  std::vector<Release> merged;
  for (const Record& record : records_) {
    if (record.kind == Kind::key) continue;
    if (merged.empty() || !merge(merged.back(), record.release)) merged.push_back(record.release);
  }
  return merged;
}

bool Ledger::continues(const Ledger& earlier) const {
  const std::size_t n = earlier.records_.size();
  if (split_ != earlier.split_ && (earlier.split_ || earlier.budget_ || n > 0)) return false;
  if (budget_ != earlier.budget_ && (earlier.budget_ || n > 0)) return false;
  if (n == 0) return true;
  if (records_.size() < n) return false;
  if (!std::equal(earlier.records_.begin(), earlier.records_.end() - 1, records_.begin()))
    return false;
  // The earlier ledger's last record may have grown since.
  const Record &before = earlier.records_[n - 1], &now = records_[n - 1];
  return before.kind == now.kind && before.first == now.first &&
         before.release.mechanism == now.release.mechanism &&
         before.release.count <= now.release.count;
}

}  // namespace cudp::privacy

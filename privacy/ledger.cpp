#include "privacy/ledger.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "privacy/number.hpp"
#include "privacy/rdp.hpp"

namespace cudp::privacy {
namespace {

std::string span_text(std::uint64_t begin, std::uint64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

bool same_settings(const Phase& a, const Phase& b) { return a.q == b.q && a.sigma == b.sigma; }

/// Adds b's steps to a's; false where the sum does not fit.
bool merge(Phase& a, const Phase& b) {
  if (b.steps > std::numeric_limits<std::uint64_t>::max() - a.steps) return false;
  a.steps += b.steps;
  return true;
}

}  // namespace

void Ledger::charge(const Phase& phase) {
  check(phase);
  if (phase.steps == 0) return;
  append({.kind = Kind::release, .first = 0, .phase = phase});
}

std::uint64_t Ledger::authorise(std::uint64_t begin, std::uint64_t end, double q, double sigma) {
  Phase phase{.q = q, .sigma = sigma, .steps = 0};
  check(phase);
  if (begin > end)
    throw std::invalid_argument("steps: expected begin <= end, found " + span_text(begin, end));
  if (begin < key_begin_ || begin > until_)
    throw std::invalid_argument("steps: expected to begin in " + span_text(key_begin_, until_) +
                                ", the steps of the present key, found " + std::to_string(begin));
  // Records from the back, as far as this key and the replayed steps reach.
  for (auto r = records_.rbegin(); r != records_.rend() && r->kind != Kind::key; ++r) {
    if (r->kind != Kind::steps || same_settings(r->phase, phase)) continue;
    if (std::max(begin, r->first) < std::min(end, r->first + r->phase.steps))
      throw std::invalid_argument(
          "steps: expected q = " + number(r->phase.q) + ", sigma = " + number(r->phase.sigma) +
          " to replay step " + std::to_string(std::max(begin, r->first)) +
          " with the same key, found q = " + number(q) + ", sigma = " + number(sigma));
  }
  if (end <= until_) return 0;
  phase.steps = end - until_;
  append({.kind = Kind::steps, .first = until_, .phase = phase});
  return phase.steps;
}

void Ledger::fresh_key(std::uint64_t step) {
  if (step > until_)
    throw std::invalid_argument("fresh key: expected a step up to " + std::to_string(until_) +
                                ", found " + std::to_string(step));
  append({.kind = Kind::key, .first = step, .phase = {}});
}

/// Takes a record that has been checked, and is where every record passes.
void Ledger::append(const Record& record) {
  if (record.kind == Kind::key) {
    key_begin_ = until_ = record.first;
  } else if (record.kind == Kind::steps) {
    until_ += record.phase.steps;
  }
  if (record.kind != Kind::key && !records_.empty()) {
    Record& last = records_.back();
    if (last.kind == record.kind && same_settings(last.phase, record.phase) &&
        merge(last.phase, record.phase))
      return;
  }
  records_.push_back(record);
}

std::vector<Phase> Ledger::phases() const {
  std::vector<Phase> merged;
  for (const Record& record : records_) {
    if (record.kind == Kind::key) continue;
    if (merged.empty() || !same_settings(merged.back(), record.phase) ||
        !merge(merged.back(), record.phase))
      merged.push_back(record.phase);
  }
  return merged;
}

Guarantee Ledger::spent(double delta, std::span<const double> orders) const {
  return epsilon_of(phases(), delta, orders);
}

bool Ledger::continues(const Ledger& earlier) const {
  const std::size_t n = earlier.records_.size();
  if (n == 0) return true;
  if (records_.size() < n) return false;
  if (!std::equal(earlier.records_.begin(), earlier.records_.end() - 1, records_.begin()))
    return false;
  // The earlier one's last record may have grown since.
  const Record &before = earlier.records_[n - 1], &now = records_[n - 1];
  return before.kind == now.kind && before.first == now.first &&
         same_settings(before.phase, now.phase) && before.phase.steps <= now.phase.steps;
}

}  // namespace cudp::privacy

#include "tests/support/ptx/history.hpp"

#include <algorithm>

namespace cudp::ptx {

void Clock::set(u32 line, u32 operations) {
  if (line >= ended_.size()) ended_.resize(line + 1);
  ended_[line] = operations;
}

void Clock::join(const Clock& other) {
  if (other.ended_.size() > ended_.size()) ended_.resize(other.ended_.size());
  for (std::size_t i = 0; i < other.ended_.size(); ++i)
    ended_[i] = std::max(ended_[i], other.ended_[i]);
}

bool Clock::covers(const Clock& other) const {
  for (u32 i = 0; i < other.ended_.size(); ++i)
    if (of(i) < other.ended_[i]) return false;
  return true;
}

u32 History::new_line() {
  for (std::size_t i = 0; i < unused_.size(); ++i) {
    const u32 line = unused_[i];
    if (host_.of(line) < latest_.of(line)) continue;
    unused_.erase(unused_.begin() + static_cast<std::ptrdiff_t>(i));
    return line;
  }
  return lines_++;
}

Clock History::begin(u32 line, Clock known, u32 first_interval) {
  if (is_all_known(host_)) operations_.clear();  // nobody will ask for them
  const u32 number = latest_.of(line) + 1;
  latest_.set(line, number);
  operations_.push_back({first_interval, line, number});
  known.set(line, number);
  return known;
}

bool History::is_known(u32 interval, const Clock& clock) const {
  auto after = std::upper_bound(operations_.begin(), operations_.end(), interval,
                                [](u32 i, const Operation& o) { return i < o.first_interval; });
  if (after == operations_.begin()) return true;  // the host has waited for it
  --after;
  return after->number <= clock.of(after->line);
}

}  // namespace cudp::ptx

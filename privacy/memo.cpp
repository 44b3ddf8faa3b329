#include "privacy/memo.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "privacy/calibrate.hpp"

namespace cudp::privacy {
namespace {

// Structured bindings name all members, so that a new member does not compile until it is compared,
// too.
bool same(const Composition& a, const Composition& b) {
  const auto& [releases, relation, group] = a;
  const auto& [releases_b, relation_b, group_b] = b;
  return releases == releases_b && relation == relation_b && group == group_b;
}

bool same(const AccountantOptions& a, const AccountantOptions& b) {
  const auto& [kind, interval, coarseness, orders, max_distinct, points] = a;
  const auto& [kind_b, interval_b, coarseness_b, orders_b, max_distinct_b, points_b] = b;
  return kind == kind_b && interval == interval_b && coarseness == coarseness_b &&
         orders == orders_b && max_distinct == max_distinct_b && points == points_b;
}

/// Returns the cached result of the entry for which is_same(entry) holds. If there is none, appends
/// `entry`, removes the oldest entries, and computes the result in this thread. mutex: guards
/// `entries` and `computations`.
template <class Entry, class IsSame, class Compute>
auto found_or_computed(std::mutex& mutex, std::deque<Entry>& entries, std::size_t& computations,
                       std::size_t capacity, Entry entry, const IsSame& is_same,
                       const Compute& compute) {
  using Result = decltype(compute());
  std::shared_future<Result> result;
  std::optional<std::promise<Result>> mine;
  {
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find_if(entries, is_same);
    if (found != entries.end()) {
      result = found->result;
    } else {
      mine.emplace();
      result = entry.result = mine->get_future().share();
      entries.push_back(std::move(entry));
      if (entries.size() > capacity) entries.pop_front();
      ++computations;
    }
  }
  if (mine) try {
      mine->set_value(compute());
    } catch (...) {
      mine->set_exception(std::current_exception());
    }
  return result.get();
}

}  // namespace

PrivacyBound AccountantMemo::epsilon(const Composition& composition,
                                     const AccountantOptions& options, double delta) {
  return found_or_computed(
      mutex_, bounds_, computations_, capacity_, Bound{composition, options, delta, {}},
      [&](const Bound& b) {
        return same(b.composition, composition) && same(b.options, options) && b.delta == delta;
      },
      [&] { return Accountant(composition, options).epsilon(delta); });
}

double AccountantMemo::calibrated_sigma(const Composition& before, const Release& release,
                                        double epsilon, double delta,
                                        const AccountantOptions& options) {
  return found_or_computed(
      mutex_, calibrations_, computations_, capacity_,
      Calibration{before, release, epsilon, delta, options, {}},
      [&](const Calibration& c) {
        return same(c.before, before) && c.release == release && c.epsilon == epsilon &&
               c.delta == delta && same(c.options, options);
      },
      [&] { return calibrate_sigma(before, release, epsilon, delta, options); });
}

std::size_t AccountantMemo::computations() const {
  const std::lock_guard lock(mutex_);
  return computations_;
}

}  // namespace cudp::privacy

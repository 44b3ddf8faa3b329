#include "privacy/memo.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "privacy/calibrate.hpp"

namespace cudp::privacy {
namespace {

/// Limit on the memory of a cache that serves several runs: it keeps at most this many releases per
/// result on average.
constexpr std::size_t kReleasesPerResult = 16;

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

/// Removes the oldest entries until at most `capacity` are left, and until they do not store too
/// many releases in total (kReleasesPerResult). releases_of(entry): number of releases that an
/// entry stores. Entry: type of the entries. ReleasesOf: type of the function releases_of().
template <class Entry, class ReleasesOf>
void remove_oldest(std::deque<Entry>& entries, std::size_t capacity,
                   const ReleasesOf& releases_of) {
  std::size_t releases = 0;
  for (const Entry& entry : entries) releases += releases_of(entry);
  while (entries.size() > capacity || (entries.size() > AccountantMemo::kMaxResultsPerRun &&
                                       releases > kReleasesPerResult * capacity)) {
    releases -= releases_of(entries.front());
    entries.pop_front();
  }
}

/// Returns a result from the cache, or computes and caches it. If there is an entry for which
/// is_same() is true, waits for its result, which another thread may still be computing. Otherwise
/// appends `entry`, removes the oldest entries, and calls compute() in this thread. mutex: guards
/// `entries` and `computations`. capacity, releases_of: see remove_oldest().
template <class Entry, class ReleasesOf, class IsSame, class Compute>
auto found_or_computed(std::mutex& mutex, std::deque<Entry>& entries, std::size_t& computations,
                       std::size_t capacity, Entry entry, const ReleasesOf& releases_of,
                       const IsSame& is_same, const Compute& compute) {
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
      remove_oldest(entries, capacity, releases_of);
      ++computations;
    }
  }
  if (mine) try {
      mine->set_value(compute());
    } catch (const std::domain_error&) {
      mine->set_exception(std::current_exception());
    } catch (const std::invalid_argument&) {
      mine->set_exception(std::current_exception());
    } catch (...) {  // e.g. no memory left: the next call may succeed
      {
        const std::lock_guard lock(mutex);
        std::erase_if(entries, is_same);
      }
      mine->set_exception(std::current_exception());
    }
  return result.get();
}

}  // namespace

PrivacyBound AccountantMemo::epsilon(const Composition& composition,
                                     const AccountantOptions& options, double delta) {
  return found_or_computed(
      mutex_, bounds_, computations_, capacity_, Bound{composition, options, delta, {}},
      [](const Bound& b) { return b.composition.releases.size(); },
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
      [](const Calibration& c) { return c.before.releases.size() + 1; },
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

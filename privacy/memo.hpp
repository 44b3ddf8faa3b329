#pragma once
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>

#include "privacy/accountant.hpp"

namespace cudp::privacy {

/// Cache of the accountant's results, so that the plan of a run, its description and its
/// certificate compute each bound once. The key of a result is all arguments of its computation,
/// compared exactly, so the cached result is the one that the computation would return.
/// Thread-safe; threads that need the same result share one computation. Only the newest results
/// are kept. The exceptions std::domain_error and std::invalid_argument are cached like results,
/// and thrown again; other exceptions are not.
class AccountantMemo {
 public:
  /// Maximum number of results of each kind (epsilons, noise multipliers) that one run needs.
  static constexpr std::size_t kMaxResultsPerRun = 8;

  /// Makes an empty cache. capacity: number of results of each kind (epsilons, noise multipliers)
  /// that it keeps; fewer for long lists of releases, so that memory stays bounded.
  explicit AccountantMemo(std::size_t capacity = kMaxResultsPerRun) : capacity_(capacity) {}
  AccountantMemo(const AccountantMemo&) = delete;
  AccountantMemo& operator=(const AccountantMemo&) = delete;
  ~AccountantMemo() = default;

  /// Returns the accountant's bound on epsilon at delta for this composition, from the cache if it
  /// is there. Throws the exceptions of Accountant::epsilon(), also from the cache.
  PrivacyBound epsilon(const Composition& composition, const AccountantOptions& options,
                       double delta);
  /// Returns the smallest noise multiplier of `release` with which it and `before` together are
  /// (epsilon, delta)-DP (calibrate_sigma()), from the cache if it is there. Throws the exceptions
  /// of calibrate_sigma(), also from the cache.
  double calibrated_sigma(const Composition& before, const Release& release, double epsilon,
                          double delta, const AccountantOptions& options);

  /// Number of results that were computed because they were not in the cache.
  std::size_t computations() const;
  /// Returns whether the cache has capacity for the results of several runs. If so, a result that
  /// each run needs only once is worth caching, too.
  bool serves_several_runs() const { return capacity_ > kMaxResultsPerRun; }

 private:
  struct Bound {
    Composition composition;
    AccountantOptions options;
    double delta;
    std::shared_future<PrivacyBound> result;
  };
  struct Calibration {
    Composition before;
    Release release;
    double epsilon;
    double delta;
    AccountantOptions options;
    std::shared_future<double> result;
  };

  const std::size_t capacity_;
  mutable std::mutex mutex_;  ///< guards all members that follow
  std::deque<Bound> bounds_;
  std::deque<Calibration> calibrations_;
  std::size_t computations_ = 0;
};

}  // namespace cudp::privacy

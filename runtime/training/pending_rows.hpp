#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Threads that call functions. They are kept until the object is destroyed, because a thread that
/// is made for each function costs more than the metrics of a short epoch, and would make the
/// tables of the accountant's Fourier transforms anew.
class KeptThreads {
 public:
  KeptThreads() = default;
  KeptThreads(const KeptThreads&) = delete;
  KeptThreads& operator=(const KeptThreads&) = delete;
  ~KeptThreads();  ///< Waits until all functions have returned.

  /// Calls `work` once in a thread that has nothing else to do. If there is none, makes one, or
  /// waits for one if there are twice as many threads as processors, and at least kMinThreads. May
  /// be called by one thread only.
  void start(std::function<void()> work);

 private:
  static constexpr unsigned kMinThreads = 4;

  void call_all();

  std::mutex mutex_;  ///< guards all members but threads_
  std::condition_variable is_work_;
  std::deque<std::function<void()>> work_;
  std::size_t idle_ = 0;  ///< number of threads that wait for work
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

/// Queue of lines of metrics whose epsilon and test metrics are computed by other threads while the
/// training continues (an accountant can take longer than a short epoch). Lines are returned in the
/// order in which they were added.
class PendingRows {
 public:
  /// Starts to compute the epsilon of the next line of metrics in another thread, by calling
  /// spent() once. Waits first if as many computations are running as there are processors.
  void start(std::function<double()> spent);
  /// Adds a line of metrics. Its epsilon is the result of the computation that the last call of
  /// start() began; `row.epsilon` is ignored.
  void add(const MetricsRow& row);
  /// Adds a line of metrics. Its epsilon is the result of the computation that the last call of
  /// start() began; its test metrics are computed in another thread, by calling test() once.
  void add(const MetricsRow& row, std::function<Metrics()> test);

  bool empty() const { return rows_.empty(); }
  /// Removes from the queue and returns the lines that are complete, up to the first one that is
  /// still being computed. Does not wait. If the computation of one of these lines threw an
  /// exception, rethrows it.
  std::vector<MetricsRow> known();
  /// Waits until all lines are complete, removes them from the queue and returns them. If the
  /// computation of a line threw an exception, rethrows it.
  std::vector<MetricsRow> all();

 private:
  /// A line of metrics whose epsilon, and perhaps test metrics, are still computed by other
  /// threads.
  struct Pending {
    MetricsRow row;
    std::future<double> epsilon;
    std::future<Metrics> test;  ///< not valid if the line already has its metrics

    bool is_known() const;
  };
  MetricsRow take_first();
  template <class Result>
  std::future<Result> in_thread(std::function<Result()> work);

  std::future<double> started_;
  std::deque<Pending> rows_;
  KeptThreads threads_;
};

}  // namespace cudp

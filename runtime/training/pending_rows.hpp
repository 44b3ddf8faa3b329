#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

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

  std::future<double> started_;
  std::deque<Pending> rows_;
};

}  // namespace cudp

#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Rows whose epsilon and test metrics are still being computed, in threads of their own, while the
/// training continues: an accountant can take longer than a short epoch. Rows are returned in the
/// order in which they were added, whichever is ready first.
class PendingRows {
 public:
  /// Starts computing an epsilon. `spent` is called once, in another thread. Waits first if as many
  /// computations run as there are processors.
  void start(std::function<double()> spent);
  /// Adds the row of the epsilon started last. The row's own epsilon is ignored.
  void add(const MetricsRow& row);
  /// Same as add(row), with metrics of the test set that are computed in another thread. `test` is
  /// called once.
  void add(const MetricsRow& row, std::function<Metrics()> test);

  bool empty() const { return rows_.empty(); }
  /// Removes and returns the rows at the front that are complete. Throws what an accountant
  /// threw.
  std::vector<MetricsRow> known();
  /// Waits for all rows, and removes and returns them. Throws what an accountant threw.
  std::vector<MetricsRow> all();

 private:
  struct Pending {
    MetricsRow row;
    std::future<double> epsilon;
    std::future<Metrics> test;  ///< not valid if the row has its metrics

    bool is_known() const;
  };
  MetricsRow take_first();

  std::future<double> started_;
  std::deque<Pending> rows_;
};

}  // namespace cudp

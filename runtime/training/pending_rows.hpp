#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Rows of a training whose epsilon is still worked out, each by a thread of its own, while the
/// training goes on: an accountant takes longer than a short epoch does. Rows leave in the order in
/// which they were added, whichever is known first.
class PendingRows {
 public:
  /// Starts working out an epsilon. `spent` is called once, in another thread. Waits first while as
  /// many are under way as there are processors.
  void start(std::function<double()> spent);
  /// The row of the epsilon that was started last, whose own epsilon is not read.
  void add(const MetricsRow& row);

  /// The rows at the front whose epsilon is known; they are pending no more. Throws what an
  /// accountant threw.
  std::vector<MetricsRow> known();
  /// All rows; waits for them. Likewise.
  std::vector<MetricsRow> all();

 private:
  struct Pending {
    MetricsRow row;
    std::future<double> epsilon;
  };
  MetricsRow take_first();

  std::future<double> started_;
  std::deque<Pending> rows_;
};

}  // namespace cudp

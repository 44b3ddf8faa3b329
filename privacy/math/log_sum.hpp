#pragma once
#include <cmath>
#include <limits>

namespace cudp::privacy {

/// Computes log(sum of e^term) entirely in log space, so that no sum overflows, whatever the terms.
/// A NaN among the terms makes the value NaN.
class LogSum {
 public:
  void add(double term) {
    if (term > largest_) {
      sum_ = sum_ * std::exp(largest_ - term) + 1.0;
      largest_ = term;
    } else if (term != -std::numeric_limits<double>::infinity() && !(term - largest_ <= -746.0)) {
      // Terms more than 746 below the largest are skipped: e^-746 is 0, which the library computes
      // slowly.
      sum_ += std::exp(term - largest_);
    }
  }
  double value() const { return largest_ + std::log(sum_); }

 private:
  double largest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0.0;  ///< sum so far of the terms' exponentials, divided by the largest of them
};

}  // namespace cudp::privacy

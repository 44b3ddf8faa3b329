#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "privacy/transcript/records.hpp"

namespace cudp::verify {

/// Checks the step sizes of method DP-AGD: a reference implementation of Lee and Kifer 2018,
/// Algorithm 2, which computes them from the released noisy choices. A choice is an index into 20
/// step sizes, evenly spaced from 0 to the largest. The last choice of an iteration is the index of
/// its step size. Earlier choices of the iteration are 0, and each of them reduces the largest step
/// size. After every 10 steps the largest becomes 1.1 times the largest of those 10. optimizer.hpp
/// checks the directions of the steps.
class LineSearch {
 public:
  /// Number of step sizes among which a choice is made.
  static constexpr int kStepSizes = 20;
  /// Largest step size of the first iteration.
  static constexpr double kFirstLargest = 2.0;
  /// Number of steps after which the largest step size is replaced.
  static constexpr std::size_t kWindow = 10;
  /// The new largest step size is (1 + kWindowGrowth) times the largest of the last kWindow steps.
  static constexpr double kWindowGrowth = 0.1;

  /// Starts the check at step number `step`. To be called when a process of the run begins, or
  /// resumes from a checkpoint.
  void begin(std::uint64_t step);
  /// Adds a released noisy choice of the current iteration: the index of a step size.
  void add_choice(const transcript::Release& choice) { chosen_.push_back(choice.values); }

  /// Returns "" if `update` used the step size that the released choices determine, else the
  /// difference in words. shrink: factor by which each choice of 0 (none of the step sizes is good)
  /// reduces the largest step size.
  std::string follows(const transcript::Update& update, double shrink);

 private:
  /// State of the adaptive step sizes of DP-AGD: the largest one, and those since it was last set.
  struct Sizes {
    double largest = kFirstLargest;
    std::vector<double> steps;  ///< step sizes of the iterations since `largest` was last set
  };

  std::vector<std::vector<double>> chosen_;
  Sizes sizes_;
  std::map<std::uint64_t, Sizes> after_;  ///< state after each iteration, by number of steps done
};

}  // namespace cudp::verify

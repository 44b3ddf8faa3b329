#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "privacy/transcript/records.hpp"

namespace cudp::verify {

/// The step sizes of DP-AGD (Lee and Kifer 2018, Algorithm 2) a second time, from its choices: the
/// i-th of 20 from 0 to the largest, i the last choice of a step, 0 all before. Where 0 is chosen
/// the largest shrinks; after every 10 steps it is 1.1 times the largest of them. Directions are
/// optimizer.hpp's.
class LineSearch {
 public:
  static constexpr int kStepSizes = 20;
  static constexpr double kFirstLargest = 2.0;
  static constexpr std::size_t kWindow = 10;
  static constexpr double kWindowGrowth = 0.1;

  /// A process goes on at `step`, or begins there.
  void begin(std::uint64_t step);
  void see_choice(const transcript::Release& choice) { chosen_.push_back(choice.values); }

  /// Empty where the step size of `update` follows; else what does not. shrink: of the largest,
  /// where 0 was chosen.
  std::string follows(const transcript::Update& update, double shrink);

 private:
  struct Sizes {
    double largest = kFirstLargest;
    std::vector<double> steps;  ///< since it was last set
  };

  std::vector<std::vector<double>> chosen_;
  Sizes sizes_;
  std::map<std::uint64_t, Sizes> after_;  ///< by steps done
};

}  // namespace cudp::verify

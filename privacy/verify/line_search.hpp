#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "privacy/verify/transcript.hpp"

namespace cudp::verify {

/// The steps of DP-AGD (Lee and Kifer 2018, Algorithm 2) a second time, from what it released:
///   w -= a d,  d = g / |g|,  g = the mean of the gradients measured in this step, each with the
///   weight of its precision, + N lambda w
/// a is the i-th of 20 step sizes from 0 to the largest, i the last choice, 0 all before. Where 0
/// is chosen the largest shrinks; after every 10 steps it is 1.1 times the largest of them.
class LineSearch {
 public:
  static constexpr int kStepSizes = 20;
  static constexpr double kFirstLargest = 2.0;
  static constexpr std::size_t kWindow = 10;
  static constexpr double kWindowGrowth = 0.1;

  /// A process goes on at `step`, or begins there.
  void begin(std::uint64_t step);
  void see_gradient(const Release& sum) { measured_.push_back(sum); }
  void see_choice(const Release& choice) { chosen_.push_back(choice.values); }

  /// Empty where `after` follows; else what does not. regularisation: N lambda. shrink: of the
  /// largest step, where 0 was chosen.
  std::string follows(const State& before, const Update& after, double regularisation,
                      double shrink);

 private:
  struct Sizes {
    double largest = kFirstLargest;
    std::vector<double> steps;  ///< since it was last set
  };

  std::string check(const State& before, const Update& after, double regularisation);

  std::vector<Release> measured_;
  std::vector<std::vector<double>> chosen_;
  Sizes sizes_;
  std::map<std::uint64_t, Sizes> after_;  ///< by steps done
};

}  // namespace cudp::verify

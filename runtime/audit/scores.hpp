#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/audit.hpp"
#include "runtime/device/audit_tap.hpp"

namespace cudp {

/// What the noisy sums of a training tell of gradient canaries.
class GradientScores {
 public:
  /// rate: with which the training samples examples.
  GradientScores(std::vector<std::uint32_t> parameters, double rate);

  void add(const ReleasedSum& released);
  std::vector<double> scores() const;

 private:
  std::vector<std::uint32_t> parameters_;
  double rate_;
  std::vector<std::vector<float>> x_;
  std::vector<double> sigma_;
};

/// Guesses that the highest made / 2 scores are of members and the lowest of others.
privacy::Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made);

}  // namespace cudp

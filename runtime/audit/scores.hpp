#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/audit.hpp"
#include "runtime/device/audit_tap.hpp"

namespace cudp {

/// Scores of gradient canaries, by what the noisy sums of a training tell of them. The attacker
/// knows all other examples, and which of them were drawn (ReleasedSum::ordinary). What is left of
/// a sum along a canary's parameter is x = B + sigma Z, in units of what an example may add, with B
/// = 1 where the canary is a member and was drawn. Its score is the sum of the log odds of
/// membership over all steps, log(1 + q (exp((x - 1/2) / sigma^2) - 1)): of all tests the most
/// powerful (Neyman, Pearson).
class GradientScores {
 public:
  /// rate: q, with which the training draws its examples.
  GradientScores(std::vector<std::uint32_t> parameters, double rate);

  void add(const ReleasedSum& released);

  /// [parameters]
  const std::vector<double>& scores() const { return scores_; }

 private:
  std::vector<std::uint32_t> parameters_;
  double rate_;
  std::vector<double> scores_;
};

/// Guesses that the highest made / 2 scores are of members and the lowest of others.
privacy::Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made);

}  // namespace cudp

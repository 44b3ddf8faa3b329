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
/// how many of the canary's rows were drawn, where it is a member: of the k rows of a unit, which
/// are equal, each with probability q. Its score is the sum of the log odds of membership over all
/// steps, log of the sum over j of P(B = j) exp((j x - j^2 / 2) / sigma^2): of all tests the most
/// powerful (Neyman, Pearson).
class GradientScores {
 public:
  /// rate: q, with which the training draws its examples. rows: k, of a canary.
  GradientScores(std::vector<std::uint32_t> parameters, double rate, std::uint64_t rows = 1);

  void add(const ReleasedSum& released);

  /// [parameters]
  const std::vector<double>& scores() const { return scores_; }

 private:
  std::vector<std::uint32_t> parameters_;
  std::vector<double> log_drawn_;  ///< [k + 1], log P(B = j)
  std::vector<double> scores_;
};

/// Guesses that the highest made / 2 scores are of members and the lowest of others.
privacy::Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made);

}  // namespace cudp

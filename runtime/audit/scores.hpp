#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/audit.hpp"
#include "runtime/device/audit_tap.hpp"

namespace cudp {

/// Computes a score for each gradient canary from the noisy gradient sums of a training: the higher
/// the score, the likelier the canary is a member, i.e. was included in the training.
///
/// The attacker knows all other examples and which of them were drawn (ReleasedSum::ordinary).
/// Subtracting their contributions from a noisy sum, along the canary's parameter, leaves x = B +
/// sigma Z, in units of the largest contribution of an example. Z is a standard normal number,
/// sigma the noise multiplier, and B the number of the canary's rows that were drawn: 0 for a
/// non-member; for a member, each of its k equal rows is drawn with probability q. The score is the
/// sum over all steps of the log odds of membership,
///   log sum_j P(B = j) exp((j x - j^2 / 2) / sigma^2),
/// which is the most powerful test (Neyman, Pearson).
class GradientScores {
 public:
  /// Makes scores of 0 for all canaries. parameters: the parameter that each canary changes. rate:
  /// sampling rate q of the training. rows: number k of equal rows of which a canary consists.
  GradientScores(std::vector<std::uint32_t> parameters, double rate, std::uint64_t rows = 1);

  void add(const ReleasedSum& released);

  /// Returns the score of each canary, [canaries].
  const std::vector<double>& scores() const { return scores_; }

 private:
  std::vector<std::uint32_t> parameters_;
  /// Log probabilities log P(B = j), j = 0..k, that j of the k rows of a member are drawn in a
  /// step.
  std::vector<double> log_drawn_;
  std::vector<double> scores_;
};

/// Makes `made` guesses: that the canaries with the made / 2 highest scores are members, and that
/// those with the made / 2 lowest are not. scores: score of each canary, and whether it is a
/// member. Returns the number of canaries, of guesses and of correct guesses.
privacy::Guesses guess(std::vector<std::pair<double, bool>> scores, std::uint64_t made);

}  // namespace cudp

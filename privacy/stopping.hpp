#pragma once
#include <cstdint>
#include <vector>

namespace cudp::privacy {

/// Distribution of a random number K >= 1 of trainings: the truncated negative binomial
/// distribution D(eta, gamma), conditioned on K <= cap. Its probabilities satisfy
///
///   P(K = k + 1) = P(K = k) (1 - gamma) (k + eta) / (k + 1).
///
/// eta = 1: geometric; eta = 0: logarithmic; eta near -1: heavy-tailed.
struct StoppingLaw {
  double eta = 0.0;       ///< in (-1, 8]
  double gamma = 0.5;     ///< in [1e-7, 1)
  std::uint64_t cap = 1;  ///< maximum of K, the number of trainings; public; 1 to kMaxRepetitions
  bool operator==(const StoppingLaw&) const = default;
};

/// Largest allowed StoppingLaw::cap.
inline constexpr std::uint64_t kMaxRepetitions = std::uint64_t{1} << 17;

/// Distribution of the number K of trainings: the probabilities of a StoppingLaw, rounded to
/// multiples of 2^-64 so that they add up to exactly 1. draw() has exactly these probabilities, and
/// every bound is computed for them. Each differs from StoppingLaw's formula by less than 2^-64 +
/// 1e-12 P(K = k), except that the most probable k takes the remainder. Only additions,
/// multiplications and divisions of double are used, so every machine computes the same
/// probabilities.
class Stopping {
 public:
  /// Computes the probabilities of this distribution. Throws std::invalid_argument if eta, gamma or
  /// the cap is out of its range.
  explicit Stopping(const StoppingLaw& law);

  const StoppingLaw& law() const { return law_; }
  double mean() const { return mean_; }  ///< E[K], the mean number of trainings, rounded up
  double probability(std::uint64_t k) const;
  /// Returns P(K > k), K the random number of trainings.
  double tail(std::uint64_t k) const;

  /// Draws K, the number of trainings: maps 64 uniform random bits to a value of K.
  std::uint64_t draw(std::uint64_t bits) const;

  /// Returns upper bounds on the derivative of the generating function E[u^K] of K, the random
  /// number of trainings, at each u in [0, 1]: on E[K u^(K - 1)].
  std::vector<double> slopes_above(const std::vector<double>& u) const;
  /// Returns lower bounds on the derivative of the generating function E[u^K] of K, the random
  /// number of trainings, at each u in [0, 1]: on E[K u^(K - 1)]. They are at most 1e-10 (relative)
  /// below those of slopes_above().
  std::vector<double> slopes_below(const std::vector<double>& u) const;
  /// Returns a lower bound on E[u^K], the generating function of K, the random number of trainings,
  /// at u.
  double generated_below(double u) const;

 private:
  std::vector<double> slopes(const std::vector<double>& u, double factor) const;

  StoppingLaw law_;
  /// Entry k: P(K = k + 1) in units of 2^-64, modulo 2^64, with K the number of trainings.
  std::vector<std::uint64_t> weights_;
  /// Entry k: the largest value of the 64 random bits that draw() maps to a K <= k + 1.
  std::vector<std::uint64_t> last_;
  bool certain_ = false;  ///< whether there is always exactly one training
  double mean_ = 1.0;
};

/// Returns the truncated negative binomial distribution of the number K of trainings with this eta,
/// and with gamma solved so that E[K] = mean, to 1e-9. cap: largest possible K; 0: chosen as the
/// smallest power of two that the unconditioned K exceeds with probability below 2^-50. Throws
/// std::invalid_argument if a number is out of range, std::domain_error if no gamma gives this mean
/// with this cap.
StoppingLaw stopping_law(double eta, double mean, std::uint64_t cap = 0);

}  // namespace cudp::privacy

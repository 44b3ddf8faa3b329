#pragma once
// Importance sampling in two stages (DPIS, Wei et al. 2022). Example i should be in the batch with
// probability b n_i / K. b is the expected batch size, n_i the current norm of the example's
// gradient, and K the sum of the norms. n_i is known only once the gradient is computed. So the
// first stage draws example i as a candidate with the larger probability b ghat_i / K, where ghat_i
// is a multiple of the norm that was last computed for the example. Then the gradient of the
// candidate is computed, and the second stage accepts the candidate with probability n_i / ghat_i.
#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/random_block.hpp"

namespace cudp {

/// Threshold for 32-bit random words that stands for the probability 1: every word is below it.
inline constexpr double kTwo32 = 0x1p32;

/// Smallest norm of a gradient that importance sampling may accept. A computed norm may be too
/// small, because squares below 2^-126 are lost in float32. The accepted vector, gradient / norm,
/// could then be longer than 1. For norms from this one on, the lost squares of even 2^31 numbers
/// are negligible.
inline constexpr float kMinDirection = 0x1p-40f;

/// Returns the estimated gradient norm of an example, k max(min(norm, C), g_L), to which its
/// probability to be drawn in the first stage of importance sampling is proportional. norm: norm of
/// its gradient when that was last computed; NaN counts as C. k, C and g_L are r.multiple, r.clip
/// and r.min_norm. The estimate is at most 1 / r.rate, for which the probability is 1.
///
/// Reason for this maximum: without it, an example that is drawn with certainty could add an
/// importance-weighted gradient with a norm above K / N, and the theorem of the DPIS paper would
/// not apply. The paper assumes K > k b C instead. b: expected batch size; N: number of examples;
/// K: the noisy sum of the gradient norms, which is public.
CUDP_HD double importance_estimate(const ImportanceRule& r, float norm) {
  const double seen = norm < r.clip ? static_cast<double>(norm) : r.clip;  // if norm is NaN: C
  const double estimate = r.multiple * (seen > r.min_norm ? seen : r.min_norm);
  return estimate * r.rate < 1.0 ? estimate : 1.0 / r.rate;
}

/// Returns the threshold in 0..2^32 for the first stage of importance sampling: an example is drawn
/// if its random 32-bit word is below the threshold. The threshold is 2^32 r.rate
/// importance_estimate(r, norm), rounded up. norm: the norm of the example's gradient when that was
/// last computed.
CUDP_HD std::uint64_t candidate_threshold(const ImportanceRule& r, float norm) {
  const double q = ceil(importance_estimate(r, norm) * r.rate * kTwo32);
  return q < kTwo32 ? static_cast<std::uint64_t>(q) : std::uint64_t{1} << 32;
}

/// Estimate and threshold with which an example was drawn in the first stage of importance
/// sampling; the second stage needs them to correct the probability.
struct SeenNorm {
  double estimate;   ///< importance_estimate() of the norm that was last computed for the example
  double threshold;  ///< candidate_threshold() of the same norm
};
CUDP_HD SeenNorm seen_norm(const ImportanceRule& r, float norm) {
  return {importance_estimate(r, norm), static_cast<double>(candidate_threshold(r, norm))};
}

/// Returns the threshold in 0..2^32 for the second stage of importance sampling: an example drawn
/// in the first stage is accepted if another random 32-bit word is below the threshold. norm:
/// current norm of the example's gradient. With n = min(norm, C, seen.estimate) and C the clipping
/// norm, the probability to be drawn and accepted is r.rate n. The threshold is rounded down, so
/// that the probability never exceeds r.rate n. Returns 0 if norm is NaN, infinite or below
/// kMinDirection.
CUDP_HD std::uint64_t acceptance_threshold(const ImportanceRule& r, const SeenNorm& seen,
                                           float norm) {
  if (!(norm >= kMinDirection && norm < INFINITY)) return 0;  // also if norm is NaN
  double n = seen.estimate;
  if (static_cast<double>(norm) < n) n = static_cast<double>(norm);
  if (r.clip < n) n = r.clip;
  const double q = seen.threshold;
  const double accepted = floor(n * r.rate * (1.0 - 0x1p-50) * kTwo32 / q * kTwo32);
  return accepted < kTwo32 ? static_cast<std::uint64_t>(accepted) : std::uint64_t{1} << 32;
}

CUDP_HD std::uint64_t acceptance_threshold(const ImportanceRule& r, float seen, float norm) {
  return acceptance_threshold(r, seen_norm(r, seen), norm);
}

/// Returns the i-th word (32 random bits) of the random stream s.
CUDP_HD std::uint32_t random_word(const RandomStream& s, std::int64_t i) {
  std::uint32_t words[16];
  random_block<ScalarLanes>(s, static_cast<std::uint32_t>(i / 256 * 16 + i % 16), words);
  const auto row = static_cast<int>(i % 256 / 16);
  std::uint32_t word = 0;
  CUDP_UNROLL for (int r = 0; r < 16; ++r) { word = r == row ? words[r] : word; }
  return word;
}

/// Returns the gradient norm to store for an example, by which it is drawn in later steps: the
/// square root of squared_norm, or 0 if that is not finite.
CUDP_HD float kept_norm(float squared_norm) {
  const float norm = sqrtf(squared_norm);
  return norm < INFINITY ? norm : 0.0f;
}

/// Returns the factor that an example's gradient is multiplied by in the second stage of importance
/// sampling: 1 / norm if the example is accepted, so that every accepted gradient has norm 1;
/// otherwise 0. word: 32 random bits, which decide. A gradient that is not finite is never
/// accepted. r: settings of importance sampling. seen: estimate and threshold with which the
/// example was drawn. squared_norm: squared norm of the example's current gradient.
CUDP_HD float acceptance_factor(const ImportanceRule& r, const SeenNorm& seen, std::uint32_t word,
                                float squared_norm) {
  const float norm = sqrtf(squared_norm);
  const std::uint64_t threshold = acceptance_threshold(r, seen, norm);
  return word < threshold ? 1.0f / norm : 0.0f;
}

/// Second stage of importance sampling for one example. Returns the factor that its gradient is
/// multiplied by: 1 / norm if it is accepted, 0 if it is rejected. *seen: the example's gradient
/// norm when it was last computed; replaced with the current norm. acceptance: random stream of
/// this step for the second stage; its word number `example` decides. r: settings of importance
/// sampling. squared_norm: squared norm of the example's current gradient.
CUDP_HD float accept_candidate(const ImportanceRule& r, const RandomStream& acceptance,
                               std::int64_t example, float squared_norm, float* seen) {
  const SeenNorm before = seen_norm(r, *seen);
  *seen = kept_norm(squared_norm);
  return acceptance_factor(r, before, random_word(acceptance, example), squared_norm);
}

}  // namespace cudp

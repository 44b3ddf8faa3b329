#pragma once
// Importance sampling in two stages (DPIS, Wei et al. 2022). Example i should be in the batch with
// probability b n_i / K: b is the expected batch size, n_i the current norm of its gradient and K
// the sum of the norms. n_i is known only once the gradient is computed. So a candidate is drawn
// first, with the larger probability b ghat_i / K, where ghat_i is a multiple of the norm that was
// computed last for it. Then its gradient is computed, and it is accepted with probability n_i /
// ghat_i.
#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/contribution/contribution.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/random_block.hpp"

namespace cudp {

inline constexpr double kTwo32 = 0x1p32;

/// Smallest norm of a gradient that can be accepted. A computed norm may lack squares below 2^-126,
/// so the direction gradient / norm could be longer than 1. From this norm on, the lost squares of
/// 2^31 numbers are negligible.
inline constexpr float kMinDirection = 0x1p-40f;

/// Returns ghat, the norm that an example is drawn by in the first stage of importance sampling,
/// from `norm`, the norm of its gradient when that was last computed: k max(norm, g_L), capped so
/// that the probability to draw it does not exceed 1. Without the cap (the paper assumes K > k b C)
/// the weighted gradient of an example drawn with certainty could exceed K / N, and no theorem
/// would apply. (b: expected batch size; K: sum of the N examples' norms; k, g_L, C: members of r.)
CUDP_HD double importance_estimate(const ImportanceRule& r, float norm) {
  const double seen = norm < r.clip ? static_cast<double>(norm) : r.clip;  // NaN: C
  const double estimate = r.multiple * (seen > r.min_norm ? seen : r.min_norm);
  return estimate * r.rate < 1.0 ? estimate : 1.0 / r.rate;
}

/// Returns the threshold in 0..2^32 for the first stage of importance sampling: an example is drawn
/// if its random 32-bit word is below it. It is 2^32 times the probability r.rate *
/// importance_estimate(r, norm), rounded up.
CUDP_HD std::uint64_t candidate_threshold(const ImportanceRule& r, float norm) {
  const double q = ceil(importance_estimate(r, norm) * r.rate * kTwo32);
  return q < kTwo32 ? static_cast<std::uint64_t>(q) : std::uint64_t{1} << 32;
}

/// Estimate and threshold with which an example passed the first stage of importance sampling.
struct SeenNorm {
  double estimate;   ///< importance_estimate() of the norm that was last computed for it
  double threshold;  ///< candidate_threshold() of the same norm
};
CUDP_HD SeenNorm seen_norm(const ImportanceRule& r, float norm) {
  return {importance_estimate(r, norm), static_cast<double>(candidate_threshold(r, norm))};
}

/// Returns the threshold in 0..2^32 for the second stage of importance sampling: an example drawn
/// in the first stage is accepted if another random 32-bit word is below it. `norm` is the current
/// norm of its gradient; the gradient is first clipped to min(C, seen.estimate), C the clipping
/// norm. The threshold is rounded down, so the product of the two probabilities never exceeds
/// r.rate times the clipped norm.
CUDP_HD std::uint64_t acceptance_threshold(const ImportanceRule& r, const SeenNorm& seen,
                                           float norm) {
  if (!(norm >= kMinDirection && norm < INFINITY)) return 0;  // NaN too
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

/// Returns word i (32 random bits) of a random stream.
CUDP_HD std::uint32_t random_word(const RandomStream& s, std::int64_t i) {
  std::uint32_t words[16];
  random_block<ScalarLanes>(s, static_cast<std::uint32_t>(i / 256 * 16 + i % 16), words);
  const auto row = static_cast<int>(i % 256 / 16);
  std::uint32_t word = 0;
  CUDP_UNROLL for (int r = 0; r < 16; ++r) { word = r == row ? words[r] : word; }
  return word;
}

/// Returns the norm of a gradient, as it is stored for the example's next draw: 0 if it is not
/// finite.
CUDP_HD float kept_norm(float squared_norm) {
  const float norm = sqrtf(squared_norm);
  return norm < INFINITY ? norm : 0.0f;
}

/// Returns the factor of an example's gradient in the second stage of importance sampling: 1 / norm
/// if `word` accepts the example (so every accepted gradient has norm 1), otherwise 0. word: 32
/// random bits. A gradient that is not finite is never accepted.
CUDP_HD float acceptance_factor(const ImportanceRule& r, const SeenNorm& seen, std::uint32_t word,
                                float squared_norm) {
  const float norm = sqrtf(squared_norm);
  const std::uint64_t threshold = acceptance_threshold(r, seen, norm);
  return word < threshold ? 1.0f / norm : 0.0f;
}

/// Second stage of importance sampling for one example: returns the factor of its gradient (0 if it
/// is rejected), and replaces *seen, its last norm, with the current norm. acceptance: the random
/// stream of this step for this stage, of which example i uses word i.
CUDP_HD float accept_candidate(const ImportanceRule& r, const RandomStream& acceptance,
                               std::int64_t example, float squared_norm, float* seen) {
  const SeenNorm before = seen_norm(r, *seen);
  *seen = kept_norm(squared_norm);
  return acceptance_factor(r, before, random_word(acceptance, example), squared_norm);
}

}  // namespace cudp

#pragma once
// Computations that follow from the scores of kLanes rows of a linear model (losses, clip factors),
// for any format of rows. Only *_cpu.cpp files include this header, once per SIMD level.
#include "kernels/common/fixed_point.hpp"
#include "kernels/common/vec_lanes.hpp"
#include "kernels/contribution/clip_math.hpp"
#include "kernels/fused/linear_sum.hpp"
#include "kernels/layers/loss_math.hpp"
#include "kernels/step/tally.hpp"

namespace cudp::CUDP_SIMD {

CUDP_INLINE VecU bits(Vec v) { return (VecU)v; }
CUDP_INLINE VecI lane_numbers() {
  VecI v{};
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}
CUDP_INLINE std::int64_t count_of(VecI mask) {
  std::int64_t n = 0;
  for (int i = 0; i < kLanes; ++i) n -= mask[i];
  return n;
}

/// Values that are computed for kLanes rows of a table, one row per SIMD lane, before their
/// gradients are added to the sum. A row's gradient is the derivative of the loss times the row.
struct LinearGroup {
  alignas(64) float square[kLanes];  ///< |x|^2 of the row x
  alignas(64) float label[kLanes];   ///< label 0 or 1, or the target
  /// Derivative of the loss, times `factor`, divided by the sum's grid step. The row x adds scaled
  /// * x, rounded to integers, to the sums.
  alignas(64) float scaled[kLanes];
  /// Clip factor times the weight of the row's class.
  alignas(64) float factor[kLanes];
  /// `scaled`, rounded to an integer: the number that the row adds to the sum for the bias.
  alignas(64) std::int32_t unit[kLanes];
};

/// Totals over the examples of one call: the sum of the losses, the sum of the gradient norms, the
/// number of examples whose gradient was clipped, and the number of examples whose gradient is
/// finite. The two numbers are kept separately for each SIMD lane.
struct GroupFacts {
  std::int64_t losses = 0;
  std::int64_t norms = 0;
  VecI clipped{};
  VecI finite{};
};

/// Returns the derivative of each example's loss with respect to its score z, one example per lane.
/// y: the class, -1 or 1. label: the target, for losses that have one. a: the examples, with the
/// kind of loss.
CUDP_INLINE Vec derivatives(const LinearExamples& a, Vec z, Vec y, Vec label) {
  if (a.targets != nullptr) return target_derivative(a.loss, z, label, a.huber);
  return a.loss == Loss::logistic ? logistic_derivative(z, y) : hinge_derivative(z, y);
}
/// Returns each example's loss at its score z, one example per lane. y: the class, -1 or 1. label:
/// the target, for losses that have one. a: the examples, with the kind of loss.
CUDP_INLINE Vec values(const LinearExamples& a, Vec z, Vec y, Vec label) {
  if (a.targets != nullptr) return target_value(a.loss, z, label, a.huber);
  return a.loss == Loss::logistic ? logistic_value(z, y) : hinge_value(z, y);
}

/// Computes the loss, its derivative and the clip factor of each of n rows (n <= kLanes) from their
/// scores z. Reads g.square and g.label, and writes the other members of g. Adds the losses,
/// gradient norms and counts of these rows to the totals in `facts`. a: the examples, with loss,
/// clip settings and class weights.
CUDP_INLINE void weigh(const LinearExamples& a, int n, Vec z, LinearGroup& g, GroupFacts& facts) {
  const Vec label = load(g.label);
  const Vec y = label * 2.0f - broadcast(1.0f);
  const Vec x2 = load(g.square);
  const Vec d = derivatives(a, z, y, label);
  const Vec squared = dense_squared_norm(x2, d * d, 1);
  const Vec zero{};
  const auto finite = squared < broadcast(INFINITY);  // false for NaN too
  const Vec clip = finite ? clip_factor<VecLanes>(a.clip, a.clip.clip_norm, squared) : zero;
  // A class weight is at most 1, so the rounded product is at most the clip factor.
  const Vec factor = a.class_weights == nullptr ? clip
                                                : clip * (y > zero ? broadcast(a.class_weights[1])
                                                                   : broadcast(a.class_weights[0]));
  // If the norm is correct, each product of a feature and `scaled` is at most 2^22 grid steps.
  // Clamping to `bound` guarantees this even if the computed norm is wrong.
  const Vec bound = broadcast(static_cast<float>(0.75 * kMaxUnits)) / sqrt(x2 + broadcast(1.0f));
  const Vec scaled = min(max(d * (factor * broadcast(a.inverse_grid)), -bound), bound);
  const Vec kept = finite ? scaled : zero;
  const VecU unit = bits(kept + broadcast(kToUnits)) - static_cast<std::uint32_t>(kToUnitsBits);
  store(g.factor, factor);
  store(g.scaled, kept);
  __builtin_memcpy(g.unit, &unit, sizeof unit);
  if (a.facts == nullptr) return;
  const VecI live = finite & (lane_numbers() < (VecI{} + n));
  const Vec loss = values(a, z, y, label);
  float losses[kLanes];
  float norms[kLanes];
  store(losses, live ? loss : zero);
  store(norms, live ? sqrt(squared) : zero);
  for (int lane = 0; lane < n; ++lane) {
    facts.losses += tally_units(static_cast<double>(losses[lane]));
    facts.norms += tally_units(static_cast<double>(norms[lane]));
  }
  facts.clipped += live & (clip < broadcast(1.0f));
  facts.finite += live;
}

/// Returns the label that the loss of an example needs: the target if the loss has targets,
/// otherwise the class (0 or 1), as a float.
CUDP_INLINE float label_of(const LinearExamples& a, std::uint32_t example) {
  return a.targets != nullptr ? a.targets[example] : static_cast<float>(a.labels[example]);
}
CUDP_INLINE void prefetch_label(const LinearExamples& a, std::uint32_t example) {
  if (a.targets != nullptr)
    __builtin_prefetch(a.targets + example);
  else
    __builtin_prefetch(a.labels + example);
}

/// Ends a call of a linear model's kernel: adds bias_unit, the sum of the bias's gradients, to
/// *a.bias_unit, and `facts`, the losses, gradient norms and counts, to *a.facts unless that
/// pointer is null.
CUDP_INLINE void finish(const LinearExamples& a, std::uint32_t bias_unit, const GroupFacts& facts) {
  *a.bias_unit += static_cast<std::int32_t>(bias_unit);
  if (a.facts == nullptr) return;
  a.facts->loss += facts.losses;
  a.facts->norm += facts.norms;
  a.facts->clipped += count_of(facts.clipped);
  a.facts->non_finite += a.count - count_of(facts.finite);
}

}  // namespace cudp::CUDP_SIMD

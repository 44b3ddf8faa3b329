#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec_lanes.hpp"
#include "kernels/step/adaclip_math.hpp"
#include "kernels/step/update.hpp"
#include "kernels/step/update_math.hpp"

namespace cudp::CUDP_SIMD {

namespace {

/// Number of parameters that are updated at a time.
constexpr std::int64_t kChunk = 512;

/// Pointers to the same chunk of every array of an update. Each has kChunk numbers, or is null.
struct Chunk {
  const float* released;
  float* parameters;
  float* moment1;
  float* moment2;
  float* average;
  float* mean;
  float* deviation;
};

/// Transforms kLanes coordinates of a released sum back to the mean gradient, and returns it
/// (AdaCliP: the sum is that of (gradient - m) / scale). Also updates the coordinates' means m and
/// standard deviations s. a: arguments of the update. t: addresses of the arrays. i: index in them
/// of the first coordinate.
CUDP_INLINE Vec restore(const UpdateArgs& a, const Chunk& t, int i) {
  Vec mean = load(t.mean + i) * broadcast(a.scale->shrink);
  Vec deviation = load(t.deviation + i);
  const Vec scale = sqrt(deviation) * broadcast(a.scale->root);
  const Vec g = restored_gradient<VecLanes>(a.scalars, load(t.released + i), scale, mean);
  update_moments<VecLanes>(a.coordinates, a.scalars, g, scale, mean, deviation);
  store(t.mean + i, mean);
  store(t.deviation + i, deviation);
  return g;
}

template <OptimizerKind kind>
CUDP_INLINE void step_chunk(const UpdateArgs& a, const Chunk& t) {
  constexpr bool has_moment1 = has_first_moment(kind);
  constexpr bool has_moment2 = has_second_moment(kind);
  for (int i = 0; i < kChunk; i += kLanes) {
    const Vec g = a.scale != nullptr ? restore(a, t, i)
                                     : load(t.released + i) * broadcast(a.scalars.inverse_batch);
    Vec theta = load(t.parameters + i);
    Vec m{};
    Vec v{};
    if constexpr (has_moment1) m = load(t.moment1 + i);
    if constexpr (has_moment2) v = load(t.moment2 + i);
    optimizer_step<kind, VecLanes>(a.optimizer, a.scalars, g, theta, m, v);
    store(t.parameters + i, theta);
    if constexpr (has_moment1) store(t.moment1 + i, m);
    if constexpr (has_moment2) store(t.moment2 + i, v);
    if (t.average)
      store(t.average + i, moving_average<VecLanes>(a.scalars, load(t.average + i), theta));
  }
}

// Updates one chunk. Whole chunks and the tail run this one compiled function, so that a
// parameter's result does not depend on the range that it is updated in.
__attribute__((noinline)) void update_chunk(const UpdateArgs& a, const Chunk& t) {
  switch (a.optimizer.kind) {
    case OptimizerKind::sgd:
      return step_chunk<OptimizerKind::sgd>(a, t);
    case OptimizerKind::momentum:
      return step_chunk<OptimizerKind::momentum>(a, t);
    case OptimizerKind::nesterov:
      return step_chunk<OptimizerKind::nesterov>(a, t);
    case OptimizerKind::adam:
      return step_chunk<OptimizerKind::adam>(a, t);
    case OptimizerKind::adamw:
      return step_chunk<OptimizerKind::adamw>(a, t);
  }
}

void update_whole_chunk(const UpdateArgs& a, std::int64_t j) {
  update_chunk(a, {.released = a.released + j,
                   .parameters = a.parameters + j,
                   .moment1 = a.moment1 ? a.moment1 + j : nullptr,
                   .moment2 = a.moment2 ? a.moment2 + j : nullptr,
                   .average = a.average ? a.average + j : nullptr,
                   .mean = a.scale != nullptr ? a.mean + j : nullptr,
                   .deviation = a.scale != nullptr ? a.deviation + j : nullptr});
}

// Updates the last `count` < kChunk parameters, using copies padded with zeros.
void update_tail(const UpdateArgs& a, std::int64_t j, int count) {
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(count);
  float released[kChunk] = {};
  __builtin_memcpy(released, a.released + j, bytes);
  constexpr int kArrays = 6;
  float* const arrays[kArrays] = {a.parameters,
                                  a.moment1,
                                  a.moment2,
                                  a.average,
                                  a.scale != nullptr ? a.mean : nullptr,
                                  a.scale != nullptr ? a.deviation : nullptr};
  float copies[kArrays][kChunk] = {};
  for (int k = 0; k < kArrays; ++k)
    if (arrays[k]) __builtin_memcpy(copies[k], arrays[k] + j, bytes);
  update_chunk(a, {.released = released,
                   .parameters = copies[0],
                   .moment1 = copies[1],
                   .moment2 = copies[2],
                   .average = a.average ? copies[3] : nullptr,
                   .mean = copies[4],
                   .deviation = copies[5]});
  for (int k = 0; k < kArrays; ++k)
    if (arrays[k]) __builtin_memcpy(arrays[k] + j, copies[k], bytes);
}

}  // namespace

void update(const UpdateArgs& a) {
  std::int64_t j = a.begin;
  for (; j + kChunk <= a.end; j += kChunk) update_whole_chunk(a, j);
  if (j < a.end) update_tail(a, j, static_cast<int>(a.end - j));
}

}  // namespace cudp::CUDP_SIMD

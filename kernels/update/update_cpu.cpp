#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/random_chunk.hpp"
#include "kernels/update/coordinates_math.hpp"
#include "kernels/update/update.hpp"
#include "kernels/update/update_math.hpp"

namespace cudp::CUDP_SIMD {

namespace {

/// What one chunk of parameters is updated from; every array holds kRandomChunk numbers, or is
/// null.
struct Chunk {
  const float* sum;
  float* parameters;
  float* moment1;
  float* moment2;
  float* average;
  float* mean;
  float* deviation;
};

/// g from the transformed sum, with m and s after it.
CUDP_INLINE Vec restore(const UpdateArgs& a, const Chunk& t, int i, Vec noise) {
  Vec mean = load(t.mean + i) * broadcast(a.scale->shrink);
  Vec deviation = load(t.deviation + i);
  const Vec scale = sqrt(deviation) * broadcast(a.scale->root);
  const Vec g = restored_gradient<VecLanes>(a.scalars, load(t.sum + i), noise, scale, mean);
  update_moments<VecLanes>(a.coordinates, a.scalars, g, scale, mean, deviation);
  store(t.mean + i, mean);
  store(t.deviation + i, deviation);
  return g;
}

template <OptimizerKind kind>
CUDP_INLINE void step_chunk(const UpdateArgs& a, const float* noise, const Chunk& t) {
  constexpr bool has_moment1 = kind != OptimizerKind::sgd;
  constexpr bool has_moment2 = kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
  for (int i = 0; i < kRandomChunk; i += kLanes) {
    const Vec z = load(noise + i);
    const Vec g = a.coordinates.on ? restore(a, t, i, z)
                                   : noisy_gradient<VecLanes>(a.scalars, load(t.sum + i), z);
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

// Whole chunks and the tail run this one compiled function, so that a parameter's result does not
// depend on where the range it is updated in begins or ends.
__attribute__((noinline)) void update_chunk(const UpdateArgs& a, std::int64_t first,
                                            const Chunk& t) {
  float noise[kRandomChunk];
  if (a.scalars.noise_std != 0.0f)
    normals_chunk(a.noise, first, noise);
  else
    __builtin_memset(noise, 0, sizeof noise);
  switch (a.optimizer.kind) {
    case OptimizerKind::sgd:
      return step_chunk<OptimizerKind::sgd>(a, noise, t);
    case OptimizerKind::momentum:
      return step_chunk<OptimizerKind::momentum>(a, noise, t);
    case OptimizerKind::nesterov:
      return step_chunk<OptimizerKind::nesterov>(a, noise, t);
    case OptimizerKind::adam:
      return step_chunk<OptimizerKind::adam>(a, noise, t);
    case OptimizerKind::adamw:
      return step_chunk<OptimizerKind::adamw>(a, noise, t);
  }
}

void update_whole_chunk(const UpdateArgs& a, std::int64_t j) {
  float gathered[kRandomChunk];
  // Element by element: gather instructions would save a fifth of an update, which is a
  // five-hundredth of a step.
  if (a.where)
    for (int i = 0; i < kRandomChunk; ++i) gathered[i] = a.sum[a.where[j + i]];
  update_chunk(a, j,
               {.sum = a.where ? gathered : a.sum + j,
                .parameters = a.parameters + j,
                .moment1 = a.moment1 ? a.moment1 + j : nullptr,
                .moment2 = a.moment2 ? a.moment2 + j : nullptr,
                .average = a.average ? a.average + j : nullptr,
                .mean = a.coordinates.on ? a.mean + j : nullptr,
                .deviation = a.coordinates.on ? a.deviation + j : nullptr});
}

// The last `count` < kRandomChunk parameters, by way of copies padded with zeros.
void update_tail(const UpdateArgs& a, std::int64_t j, int count) {
  float sum[kRandomChunk] = {};
  for (int i = 0; i < count; ++i) sum[i] = a.sum[a.where ? a.where[j + i] : j + i];
  constexpr int kArrays = 6;
  float* const arrays[kArrays] = {a.parameters,
                                  a.moment1,
                                  a.moment2,
                                  a.average,
                                  a.coordinates.on ? a.mean : nullptr,
                                  a.coordinates.on ? a.deviation : nullptr};
  float copies[kArrays][kRandomChunk] = {};
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(count);
  for (int k = 0; k < kArrays; ++k)
    if (arrays[k]) __builtin_memcpy(copies[k], arrays[k] + j, bytes);
  update_chunk(a, j,
               {.sum = sum,
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

double noisy_square_sum(const UpdateArgs& a) {
  double total = 0.0;
  for (std::int64_t j = a.begin; j < a.end; j += kRandomChunk) {
    const int count = static_cast<int>(a.end - j < kRandomChunk ? a.end - j : kRandomChunk);
    float sum[kRandomChunk] = {};
    float noise[kRandomChunk] = {};
    for (int i = 0; i < count; ++i) sum[i] = a.sum[a.where ? a.where[j + i] : j + i];
    if (a.scalars.noise_std != 0.0f) normals_chunk(a.noise, j, noise);
    for (int i = 0; i < kRandomChunk; i += kLanes)
      store(sum + i, noisy_gradient<VecLanes>(a.scalars, load(sum + i), load(noise + i)));
    for (int i = 0; i < count; ++i) total += static_cast<double>(sum[i]) * sum[i];
  }
  return total;
}

void update(const UpdateArgs& a) {
  std::int64_t j = a.begin;
  for (; j + kRandomChunk <= a.end; j += kRandomChunk) update_whole_chunk(a, j);
  if (j < a.end) update_tail(a, j, static_cast<int>(a.end - j));
}

}  // namespace cudp::CUDP_SIMD

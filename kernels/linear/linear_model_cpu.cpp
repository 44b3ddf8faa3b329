#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/linear/linear_model.hpp"
#include "kernels/linear/linear_model_math.hpp"

namespace cudp::CUDP_SIMD {
namespace {

using VecD = double __attribute__((vector_size(kLanes * 8)));

constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to a whole number
constexpr int kBlock = 32;           // tiles whose derivatives c are computed at a time

/// Rounds v to a multiple of the grid, 1 / inverse_grid, and adds it to `total`, which counts grid
/// steps.
CUDP_INLINE void add_rounded(VecD& total, Vec v, double inverse_grid) {
  total += (__builtin_convertvector(v, VecD) * inverse_grid + kRound) - kRound;
}
// Vectors are passed by reference, because one wider than the level's registers has no stable
// calling convention.
CUDP_INLINE void load_d(VecD& v, const double* p) { __builtin_memcpy(&v, p, sizeof v); }
CUDP_INLINE void store_d(double* p, const VecD& v) { __builtin_memcpy(p, &v, sizeof v); }

template <class Margin>
void gradient(const LinearGradient& g) {
  float c[kBlock * kTile];
  for (std::int64_t begin = g.begin; begin < g.end; begin += kBlock) {
    const int tiles = static_cast<int>(g.end - begin < kBlock ? g.end - begin : kBlock);
    for (int i = 0; i < tiles * kTile; i += kLanes) {
      const std::int64_t at = begin * kTile + i;
      store(c + i, clipped_derivative<Margin>(load(g.scores + at), load(g.signs + at),
                                              load(g.norms + at), g.clip_norm, g.weights));
    }
    for (int j = 0; j < g.d; ++j)
      for (int lane = 0; lane < kTile; lane += kLanes) {
        const float* x = g.features + (begin * g.d + j) * kTile + lane;
        double* total = g.total + std::ptrdiff_t{j} * kTile + lane;
        VecD sum;
        load_d(sum, total);
        for (int t = 0; t < tiles; ++t)
          add_rounded(
              sum,
              load(c + std::ptrdiff_t{t} * kTile + lane) * load(x + std::int64_t{t} * g.d * kTile),
              g.inverse_grid);
        store_d(total, sum);
      }
  }
}

template <class Margin>
void losses(const LinearLosses& a) {
  for (int k = 0; k < a.count; ++k)
    for (int lane = 0; lane < kTile; lane += kLanes) {
      VecD sum;
      load_d(sum, a.total + std::ptrdiff_t{k} * kTile + lane);
      for (std::int64_t at = a.begin * kTile + lane; at < a.end * kTile; at += kTile) {
        const Vec score = load(a.scores + at) - broadcast(a.steps[k]) * load(a.along + at);
        add_rounded(sum, clipped_loss<Margin>(score, load(a.signs + at), a.max_loss, a.weights),
                    a.inverse_grid);
      }
      store_d(a.total + std::ptrdiff_t{k} * kTile + lane, sum);
    }
}

}  // namespace

void linear_scores(const LinearScores& a) {
  for (std::int64_t t = a.begin; t < a.end; ++t)
    for (int lane = 0; lane < kTile; lane += kLanes) {
      const float* x = a.features + t * a.d * kTile + lane;
      const auto feature = [x](int j) { return load(x + std::int64_t{j} * kTile); };
      store(a.scores + t * kTile + lane, linear_score<Vec>(feature, a.w, a.d));
    }
}

void linear_gradient(const LinearGradient& a) {
  a.loss == Loss::hinge ? gradient<HingeMargin>(a) : gradient<LogisticMargin>(a);
}

void linear_losses(const LinearLosses& a) {
  a.loss == Loss::hinge ? losses<HingeMargin>(a) : losses<LogisticMargin>(a);
}

}  // namespace cudp::CUDP_SIMD

#include <algorithm>
#include <cmath>

#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Layer that computes the mean of a text's word vectors, divided by its L2 norm if unit_ is set.
class CpuMeanOverTime final : public CpuLayer {
 public:
  explicit CpuMeanOverTime(const MeanOverTime& layer) : unit_(layer.unit) {}

  bool reads_own_output() const override { return unit_; }

  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e) {
      float* const y = w.value(out(), e);
      std::fill_n(y, stride(), 0.0f);
      const float* const x = w.value(in(), e);
      for (int t = 0; t < w.length(e); ++t)
        w.kernels.add_scaled(
            {.acc = y, .g = x + in().layout.at(0, t), .factor = 1.0f, .n = stride()});
      scale(y, weight(w, e));
      if (!unit_) continue;
      const float norm = std::sqrt(dot(y, y));
      if (norm > 0.0f) scale(y, 1.0f / norm);
    }
  }

  void backward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e) {
      float* const dy = w.gradient(out(), e);
      if (unit_) pass_unit(w, e, dy);
      float* const dx = w.gradient(in(), e);
      std::fill_n(dx, w.length(e) * stride(), 0.0f);
      for (int t = 0; t < w.length(e); ++t)
        w.kernels.add_scaled(
            {.acc = dx + in().layout.at(0, t), .g = dy, .factor = weight(w, e), .n = stride()});
    }
  }

 private:
  std::int64_t stride() const { return in().layout.stride; }
  /// Returns the weight of each word of example e (a text) in the mean of its text, 1 / length; 1
  /// for an empty text. w: the thread's workspace.
  static float weight(Workspace& w, int e) {
    return 1.0f / static_cast<float>(std::max(1, w.length(e)));
  }
  float dot(const float* a, const float* b) const {
    float sum = 0.0f;
    for (int c = 0; c < in().layout.channels; ++c) sum += a[c] * b[c];
    return sum;
  }
  void scale(float* y, float factor) const {
    for (int c = 0; c < in().layout.channels; ++c) y[c] *= factor;
  }

  /// Replaces dy, the gradient of the output y = m / |m|, with the gradient of m, the mean over the
  /// words: (dy - y (y dy)) / |m|, where y dy is a scalar product. Since y m = |m|, the norm |m| is
  /// the mean over the words t of the scalar product y x_t. w: the thread's workspace. e: index of
  /// the example in w.
  void pass_unit(Workspace& w, int e, float* dy) const {
    const float* const y = w.value(out(), e);
    const float* const x = w.value(in(), e);
    float norm = 0.0f;
    for (int t = 0; t < w.length(e); ++t) norm += dot(y, x + in().layout.at(0, t));
    norm *= weight(w, e);
    if (!(norm > 0.0f)) return;
    const float along = dot(y, dy);
    for (int c = 0; c < in().layout.channels; ++c) dy[c] -= along * y[c];
    scale(dy, 1.0f / norm);
  }

  bool unit_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const MeanOverTime& layer) {
  return std::make_unique<CpuMeanOverTime>(layer);
}

}  // namespace cudp::cpu

#include <algorithm>

#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

class CpuMeanOverTime final : public CpuLayer {
 public:
  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e) {
      float* const y = w.value(out(), e);
      std::fill_n(y, stride(), 0.0f);
      const float* const x = w.value(in(), e);
      for (int t = 0; t < w.length(e); ++t)
        w.kernels.add_scaled(
            {.acc = y, .g = x + in().layout.at(0, t), .factor = 1.0f, .n = stride()});
      for (int c = 0; c < in().layout.channels; ++c) y[c] *= weight(w, e);
    }
  }

  void backward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e) {
      const float* const dy = w.gradient(out(), e);
      float* const dx = w.gradient(in(), e);
      std::fill_n(dx, w.length(e) * stride(), 0.0f);
      for (int t = 0; t < w.length(e); ++t)
        w.kernels.add_scaled(
            {.acc = dx + in().layout.at(0, t), .g = dy, .factor = weight(w, e), .n = stride()});
    }
  }

 private:
  std::int64_t stride() const { return in().layout.stride; }
  /// Of a word; for a text without words of none.
  static float weight(Workspace& w, int e) {
    return 1.0f / static_cast<float>(std::max(1, w.length(e)));
  }
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const MeanOverTime&) {
  return std::make_unique<CpuMeanOverTime>();
}

}  // namespace cudp::cpu

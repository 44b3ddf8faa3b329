// The first layer: the data set's images to the first edge. Texts are read by their embedding.
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

class CpuInput final : public CpuLayer {
 public:
  void forward(Workspace& w, int first, int count) const override {
    const Dataset& data = *w.data;
    if (data.is_text()) return;
    const auto features = to_size(data.shape.size());
    for (int e = first; e < first + count; ++e) {
      const std::size_t at = w.examples[to_size(e)] * features;
      w.kernels.load_image({.bytes = data.is_bytes() ? data.bytes.data() + at : nullptr,
                            .floats = data.is_bytes() ? nullptr : data.floats.data() + at,
                            .scale = data.scale,
                            .shift = data.shift,
                            .out = w.value(out(), e),
                            .layout = out().layout});
    }
  }
};

}  // namespace

std::unique_ptr<CpuLayer> make_input() { return std::make_unique<CpuInput>(); }

}  // namespace cudp::cpu

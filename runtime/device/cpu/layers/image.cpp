// The first layer: the data set's images to the first edge. Texts are read by their embedding.
#include "runtime/data/examples.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

class CpuInput final : public CpuLayer {
 public:
  void forward(Workspace& w, int first, int count) const override {
    const Dataset& data = *w.data;
    if (data.is_text() || (passes_codes() && w.reads_codes())) return;
    const auto features = to_size(data.shape.size());
    for (int e = first; e < first + count; ++e) {
      const std::size_t example = w.examples[to_size(e)];
      const std::uint8_t* bytes = nullptr;
      const float* floats = nullptr;
      if (data.is_bytes()) {
        bytes = data.bytes.data() + example * features;
      } else if (data.is_coded()) {
        float* const row = w.scratch(data.shape.size());
        read_floats(data, example, {row, features});
        floats = row;
      } else {
        floats = data.floats.data() + example * features;
      }
      w.kernels.load_image({.bytes = bytes,
                            .floats = floats,
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

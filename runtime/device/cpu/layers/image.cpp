// The input layer: copies the data set's images to the first edge. It copies no texts: the
// embedding layer reads them directly from the data set.
#include <algorithm>

#include "runtime/data/examples.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Prefetches the `bytes` bytes of the next example, from `begin` on. Drawn examples lie anywhere
/// in memory, so the hardware cannot predict the addresses.
void prefetch(const void* begin, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kMax = 64 * kLine;
  const auto* const first = static_cast<const char*>(begin);
  for (std::size_t at = 0; at < std::min(bytes, kMax); at += kLine)
    __builtin_prefetch(first + at, 0, 2);
}

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
        bytes = data.byte_values().data() + example * features;
      } else if (data.is_coded()) {
        float* const row = w.scratch(data.shape.size());
        read_floats(data, example, {row, features});
        floats = row;
      } else {
        floats = data.float_values().data() + example * features;
      }
      w.kernels.load_image({.bytes = bytes,
                            .floats = floats,
                            .scale = data.scale,
                            .shift = data.shift,
                            .out = w.value(out(), e),
                            .layout = out().layout});
      if (to_size(e) + 1 < w.examples.size()) prefetch_row(data, w.examples[to_size(e) + 1]);
    }
  }

 private:
  static void prefetch_row(const Dataset& data, std::size_t example) {
    const auto features = to_size(data.shape.size());
    if (data.is_bytes())
      prefetch(data.byte_values().data() + example * features, features);
    else if (!data.is_coded())
      prefetch(data.float_values().data() + example * features, features * sizeof(float));
  }
};

}  // namespace

std::unique_ptr<CpuLayer> make_input() { return std::make_unique<CpuInput>(); }

}  // namespace cudp::cpu

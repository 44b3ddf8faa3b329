#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/layers/image.hpp"

namespace cudp::CUDP_SIMD {
namespace {

template <class Value>
CUDP_INLINE void load_planes(const LoadImage& l, Value value) {
  const ImageLayout& o = l.layout;
  for (int c = 0; c < o.channels; ++c)
    for (int y = 0; y < o.height; ++y) {
      const std::int64_t in = (static_cast<std::int64_t>(c) * o.height + y) * o.width;
      float* out = l.out + o.at(y, 0) + c;
      if (o.stride == 1)
        for (int x = 0; x < o.width; ++x) out[x] = value(in + x);
      else
        for (int x = 0; x < o.width; ++x)
          out[static_cast<std::int64_t>(x) * o.stride] = value(in + x);
    }
}

}  // namespace

void load_image(const LoadImage& l) {
  const float scale = l.scale;
  const float shift = l.shift;
  const std::uint8_t* bytes = l.bytes;
  const float* floats = l.floats;
  // The values of one pixel of many channels (a table's row) are contiguous.
  if (l.layout.height == 1 && l.layout.width == 1) {
    float* out = l.out + l.layout.at(0, 0);
    for (int c = 0; c < l.layout.channels; ++c)
      out[c] = bytes != nullptr ? scale * static_cast<float>(bytes[c]) + shift : floats[c];
  } else if (bytes != nullptr) {
    load_planes(l, [=](std::int64_t i) { return scale * static_cast<float>(bytes[i]) + shift; });
  } else {
    load_planes(l, [=](std::int64_t i) { return floats[i]; });
  }
}

}  // namespace cudp::CUDP_SIMD

#include "runtime/device/cpu/layer.hpp"

#include "runtime/base/error.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

std::int32_t narrow(std::int64_t n) {
  ensure(n >= 0 && n < (std::int64_t{1} << 31), "the model is too large for 32-bit offsets");
  return static_cast<std::int32_t>(n);
}

PackedMatrix PackedMatrix::reserve(Storage& storage, int rows, int columns,
                                   const ParameterTensor& bias) {
  PackedMatrix m{.offset = storage.packed, .rows = rows, .columns = columns};
  Storage::reserve(storage.packed, m.size());
  for (std::size_t i = 0; i < bias.size; ++i)
    storage.packed_offset[bias.offset + i] = narrow(m.bias() + static_cast<std::int64_t>(i));
  return m;
}

float* WholeGradientLayer::gradient_memory(Workspace& w) const {
  return w.example_gradient(offset_);
}

void WholeGradientLayer::gradient(Workspace& w, int first, int count) const {
  for (int e = first; e < first + count; ++e) {
    float* const g = gradient_memory(w);
    make_gradient(w, e, g);
    if (w.coordinates == nullptr) {
      w.norm(e, group()) = w.kernels.square_sum(g, size_);
    } else {
      const Transform& t = w.coordinates->transform;
      w.norm(e, group()) =
          w.kernels.transformed_square_sum(g, {t.mean + packed_, t.inverse + packed_}, size_);
    }
  }
}

void WholeGradientLayer::add(Workspace& w, int first, int count, const GradientSum& sum) const {
  const float* const g = gradient_memory(w);
  for (int e = first; e < first + count; ++e) {
    const float factor = w.factor(e, group());
    if (factor == 0.0f) continue;
    if (sum.plain != nullptr) {
      w.kernels.add_scaled({.acc = sum.plain + packed_, .g = g, .factor = factor, .n = size_});
      continue;
    }
    w.kernels.add_rounded({.units = sum.units + packed_,
                           .g = g,
                           .scale = factor * sum.inverse_grid,
                           .n = size_,
                           .transform = w.transform(packed_)});
  }
}

}  // namespace cudp::cpu

#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Group normalisation: normalises groups of channels of each example by their mean and variance,
/// then scales and shifts every channel.
class CpuGroupNorm final : public WholeGradientLayer {
 public:
  explicit CpuGroupNorm(const GroupNorm& layer) : layer_(layer) {}

  bool runs_per_example() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.group_norm_forward({.in = in().layout,
                                    .out = out().layout,
                                    .groups = layer_.groups,
                                    .epsilon = layer_.epsilon,
                                    .weight = w.weights.packed + weight_.offset,
                                    .bias = w.weights.packed + weight_.bias(),
                                    .x = w.value(in(), e),
                                    .y = w.value(out(), e),
                                    .mean = mean(w, e),
                                    .inverse = inverse(w, e)});
  }

  /// Computes the gradient of the layer's input for the examples first .. first + count - 1 of the
  /// workspace w. Does nothing if the layer is trained, because gradient() has then computed it
  /// together with the gradient of the parameters.
  void backward(Workspace& w, int first, int count) const override {
    if (!is_frozen()) return;
    for (int e = first; e < first + count; ++e) make_gradient(w, e, gradient_memory(w));
  }

 private:
  void reserve(Storage& s) override {
    weight_ = PackedMatrix::reserve(s, 1, in().layout.stride, parameter(1));
    const ParameterTensor& weight = parameter(0);
    for (std::size_t c = 0; c < weight.size; ++c)
      s.packed_offset[weight.offset + c] = narrow(weight_.offset + static_cast<std::int64_t>(c));
    reserve_gradient(s, weight_.offset, weight_.size());
    saved_ = Storage::reserve(s.saved, 2L * layer_.groups);
  }

  void make_gradient(Workspace& w, int example, float* g) const override {
    w.kernels.group_norm_backward(
        {.in = in().layout,
         .out = out().layout,
         .groups = layer_.groups,
         .weight = w.weights.packed + weight_.offset,
         .x = w.value(in(), example),
         .dy = w.gradient(out(), example),
         .mean = mean(w, example),
         .inverse = inverse(w, example),
         .dx = gives_input_gradient() ? w.gradient(in(), example) : nullptr,
         .dweight = g,
         .dbias = g + weight_.columns});
  }

  /// Return the saved mean and inverse standard deviation of each group, [groups] each. w: the
  /// thread's workspace. example: index among the examples that are processed at once.
  float* mean(Workspace& w, int example) const { return w.saved(saved_, example); }
  float* inverse(Workspace& w, int example) const { return mean(w, example) + layer_.groups; }

  GroupNorm layer_;
  PackedMatrix weight_;
  std::int64_t saved_ = 0;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const GroupNorm& layer) {
  return std::make_unique<CpuGroupNorm>(layer);
}

}  // namespace cudp::cpu

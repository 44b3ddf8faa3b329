#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Layer that applies an activation function to every number of an example, in place.
class CpuActivation final : public CpuLayer {
 public:
  explicit CpuActivation(const Activate& function) : function_(function) {}

  bool works_in_place() const override { return true; }
  bool reads_own_output() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.activation_forward({.function = function_,
                                    .in = layout(w, in(), e),
                                    .out = layout(w, out(), e),
                                    .x = w.value(in(), e),
                                    .y = w.value(out(), e)});
  }

  void backward(Workspace& w, int first, int count) const override {
    for (int e = first; e < first + count; ++e)
      w.kernels.activation_backward({.function = function_,
                                     .in = layout(w, in(), e),
                                     .out = layout(w, out(), e),
                                     .y = w.value(out(), e),
                                     .dy = w.gradient(out(), e),
                                     .dx = w.gradient(in(), e)});
  }

 private:
  /// Returns the layout of an example's activations. For a text it has only the positions of the
  /// text's own words, not those after its end. w: the thread's workspace. edge: the activations'
  /// edge. example: index among the examples that are processed at once.
  static ImageLayout layout(const Workspace& w, const CpuEdge& edge, int example) {
    ImageLayout l = edge.layout;
    if (edge.is_sequence) l.width = w.length(example);
    return l;
  }

  Activate function_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const Activate& function) {
  return std::make_unique<CpuActivation>(function);
}

}  // namespace cudp::cpu

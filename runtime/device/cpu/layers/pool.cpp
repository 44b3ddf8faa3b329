#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

class CpuPool final : public CpuLayer {
 public:
  CpuPool(bool is_max, int kernel, int stride)
      : is_max_(is_max), geometry_{.in = {}, .out = {}, .kernel = kernel, .stride = stride} {}

  bool runs_per_example() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    const auto run = is_max_ ? w.kernels.max_pool_forward : w.kernels.average_pool_forward;
    for (int e = first; e < first + count; ++e)
      run({.geometry = geometry_, .x = w.value(in(), e), .y = w.value(out(), e)});
  }

  void backward(Workspace& w, int first, int count) const override {
    const auto run = is_max_ ? w.kernels.max_pool_backward : w.kernels.average_pool_backward;
    for (int e = first; e < first + count; ++e)
      run({.geometry = geometry_,
           .x = w.value(in(), e),
           .dy = w.gradient(out(), e),
           .dx = w.gradient(in(), e)});
  }

 private:
  void reserve(Storage&) override {
    geometry_.in = in().layout;
    geometry_.out = out().layout;
  }

  bool is_max_;
  PoolGeometry geometry_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const MaxPool2d& layer) {
  return std::make_unique<CpuPool>(true, layer.kernel, layer.stride);
}
std::unique_ptr<CpuLayer> make_layer(const AvgPool2d& layer) {
  return std::make_unique<CpuPool>(false, layer.kernel, layer.stride);
}

}  // namespace cudp::cpu

#include "tests/support/test_device.hpp"

#include <stdexcept>

#ifdef CUDP_TEST_ON_GPU
#include "runtime/device/cuda/devices.hpp"
#else
#include "runtime/device/cuda/device_engine.hpp"
#include "runtime/device/cuda/linear.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/simt/emulated_gpu.hpp"
#endif

namespace cudp {

#ifdef CUDP_TEST_ON_GPU

std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s,
                                      const TestDevice&) {
  return make_cuda_engine(net, s);
}
std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                          std::int64_t large_dense, const TestDevice&) {
  return make_layer_wise_cuda_engine(net, s, large_dense);
}

#else

namespace {

using EmulatedEngine = cuda::DeviceEngine;

std::unique_ptr<EmulatedEngine> make_emulated(const Network& net, const EngineSettings& s,
                                              const TestDevice& d, std::int64_t large_dense,
                                              bool may_be_fused) {
  return std::make_unique<EmulatedEngine>(EmulatedGpu(d), net, s, large_dense, may_be_fused);
}

}  // namespace

std::unique_ptr<Engine> device_engine(const Network& net, const EngineSettings& s,
                                      const TestDevice& d) {
  return make_emulated(net, s, d, cuda::kLargeDense, true);
}
std::unique_ptr<Engine> fused_engine(const Network& net, const EngineSettings& s,
                                     const TestDevice& d) {
  auto engine = make_emulated(net, s, d, cuda::kLargeDense, true);
  if (!engine->is_fused()) throw std::runtime_error("expected a fused kernel");
  return engine;
}
std::unique_ptr<Engine> layer_wise_engine(const Network& net, const EngineSettings& s,
                                          std::int64_t large_dense, const TestDevice& d) {
  return make_emulated(net, s, d, large_dense, false);
}

const Backend& emulated_cuda() {
  static const Backend backend{
      .name = "cuda",
      .arithmetic = [](const Network&) { return kCudaArithmetic; },
      .make_engine = [](const Network& net,
                        const EngineSettings& s) { return device_engine(net, s, {}); },
      .precision = [](const Network&, Precision, bool) { return Precision::fp32; },
      .scatter = scatter_on_cpu,
      .make_linear_engine =
          [](const Dataset& train, Loss loss, double most, int, SignWeights weights) {
            return std::make_unique<cuda::DeviceLinear>(EmulatedGpu(), train, loss, most, weights);
          },
      .arithmetic_name = "cuda emulated"};
  return backend;
}

#endif

}  // namespace cudp

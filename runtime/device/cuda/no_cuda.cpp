// Replaces the CUDA backend in a build without CUDA. There are no devices, and functions that need
// one throw Error.
#ifndef CUDP_WITH_CUDA
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/scatter.hpp"

namespace cudp {

std::vector<DeviceInfo> cuda_devices() { return {}; }
void open_cuda_device(int) { throw Error("this build has no CUDA backend"); }
bool built_with_cuda() { return false; }

std::unique_ptr<Engine> make_cuda_engine(const Network&, const EngineSettings&) {
  throw Error("this build has no CUDA backend");
}
std::unique_ptr<Engine> make_layer_wise_cuda_engine(const Network&, const EngineSettings&,
                                                    std::int64_t) {
  throw Error("this build has no CUDA backend");
}
Precision cuda_precision(const Network&, Precision, bool, int) {
  throw Error("this build has no CUDA backend");
}
std::string cuda_library_arithmetic(const DeviceInfo&, const Network&, bool) {
  throw Error("this build has no CUDA backend");
}
void require_cudnn() { throw Error("this build has no CUDA backend"); }
std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset&, Loss, double, int,
                                                      SignWeights) {
  throw Error("this build has no CUDA backend");
}
std::vector<float> scatter_on_cuda(const Dataset&, const WorkDone&, int) {
  throw Error("this build has no CUDA backend");
}

}  // namespace cudp
#endif

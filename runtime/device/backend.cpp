#include "runtime/device/backend.hpp"

#include <string>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/devices.hpp"

namespace cudp {
namespace {

constexpr int kMinMajor = 8;  // the oldest compute capability that the build has code for

const Backend* cuda_of_tests = nullptr;

std::string what_there_is(const std::vector<DeviceInfo>& devices) {
  if (!built_with_cuda()) return "a build without the CUDA backend";
  if (devices.empty()) return "none";
  return devices[0].name + " with " + devices[0].compute_capability();
}

}  // namespace

void replace_cuda(const Backend* backend) { cuda_of_tests = backend; }

Backend choose_backend(Device requested) {
  if (requested == Device::cuda && cuda_of_tests != nullptr) return *cuda_of_tests;
  const std::vector<DeviceInfo> devices = cuda_devices();
  const bool usable = !devices.empty() && devices[0].major >= kMinMajor;
  if (requested == Device::cuda && !usable)
    throw InputError(
        "--device: expected a CUDA device of compute capability 8.0 or higher, found " +
        what_there_is(devices));
  if (requested != Device::cpu && usable)
    return {"cuda",
            [](const Network&) { return kCudaArithmetic; },
            make_cuda_engine,
            cuda_precision,
            [](const Dataset& images, int, const WorkDone& done) {
              return scatter_on_cuda(images, done);
            },
            [](const Dataset& train, Loss loss, double max_examples, int, SignWeights weights) {
              ensure(weights == SignWeights{}, "CUDA has no class weights");
              return make_cuda_linear_engine(train, loss, max_examples);
            },
            "cuda " + devices[0].compute_capability()};
  return {"cpu",
          [](const Network&) { return kCpuArithmetic; },
          make_cpu_engine,
          [](const Network&, Precision) { return Precision::fp32; },
          scatter_on_cpu,
          make_cpu_linear_engine,
          "cpu " + std::string(simd_name(best_simd_level()))};
}

}  // namespace cudp

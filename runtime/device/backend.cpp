#include "runtime/device/backend.hpp"

#include <algorithm>
#include <string>
#include <variant>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/devices.hpp"

namespace cudp {
namespace {

constexpr int kMinMajor = 8;  // the oldest compute capability that the build has code for

const Backend* cuda_of_tests = nullptr;
bool is_found_by_tests = false;

std::string what_there_is(const std::vector<DeviceInfo>& devices) {
  if (!built_with_cuda()) return "a build without the CUDA backend";
  if (devices.empty()) return "none";
  return devices[0].name + " with " + devices[0].compute_capability();
}

/// The layers that runtime/device/cuda/layout.hpp has an alternative for.
bool has_on_cuda(const NetworkLayer& l) {
  if (const auto* const dense = std::get_if<Dense>(&l.layer)) return !dense->per_token;
  return std::holds_alternative<Conv2d>(l.layer) || std::holds_alternative<MaxPool2d>(l.layer) ||
         std::holds_alternative<AvgPool2d>(l.layer) || std::holds_alternative<GroupNorm>(l.layer) ||
         std::holds_alternative<Activate>(l.layer);
}

}  // namespace

void replace_cuda(const Backend* backend, bool is_found) {
  cuda_of_tests = backend;
  is_found_by_tests = is_found;
}

Device cpu_alone(Device requested, const std::string& what, const Say& say) {
  const std::string reason = what + " run on the CPU only so far";
  if (requested == Device::cuda)
    throw InputError("--device: expected cpu, since " + reason + ", found cuda");
  if (choose_backend(requested).name == "cuda") say("device: cpu, since " + reason);
  return Device::cpu;
}

Backend choose_backend(Device requested, const Network& network, const Say& say) {
  return choose_backend(std::ranges::all_of(network.layers, has_on_cuda)
                            ? requested
                            : cpu_alone(requested, "layers for texts", say));
}

Backend choose_backend(Device requested) {
  if (cuda_of_tests != nullptr &&
      (requested == Device::cuda || (requested == Device::automatic && is_found_by_tests)))
    return *cuda_of_tests;
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

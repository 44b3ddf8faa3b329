#include "runtime/device/backend.hpp"

#include <string>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/devices.hpp"

namespace cudp {
namespace {

constexpr int kMinMajor = 8;  // oldest compute capability that the build has code for

const Backend* cuda_of_tests = nullptr;
bool is_found_by_tests = false;

/// Returns the words after "found" in the error message about a CUDA device that was requested but
/// cannot be used: "none", or that this build has no CUDA backend. devices: the machine's CUDA
/// devices.
std::string none_of(const std::vector<DeviceInfo>& devices) {
  return built_with_cuda() || !devices.empty() ? "none" : "a build without the CUDA backend";
}

Backend cpu_backend() {
  return {"cpu",
          [](const Network&) { return kCpuArithmetic; },
          make_cpu_engine,
          [](const Network&, Precision, bool) { return Precision::fp32; },
          scatter_on_cpu,
          make_cpu_linear_engine,
          "cpu " + std::string(simd_name(best_simd_level()))};
}

}  // namespace

void replace_cuda(const Backend* backend, bool is_found) {
  cuda_of_tests = backend;
  is_found_by_tests = is_found;
}

bool can_use(Device requested, const std::vector<DeviceInfo>& devices) {
  const auto number = static_cast<std::size_t>(requested.number);
  const bool is_there = number < devices.size();
  const bool usable = is_there && devices[number].major >= kMinMajor;
  if (usable || !(requested == Device::cuda)) return usable;
  if (!is_there && !devices.empty())
    throw InputError("--device: expected cuda:0" +
                     (devices.size() > 1 ? " to cuda:" + std::to_string(devices.size() - 1)
                                         : ", the only CUDA device") +
                     ", found cuda:" + std::to_string(number));
  throw InputError("--device: expected a CUDA device of compute capability 8.0 or higher, found " +
                   (is_there
                        ? devices[number].name + " with " + devices[number].compute_capability()
                        : none_of(devices)));
}

Backend choose_backend(Device requested, const ReportLine& say) {
  if (cuda_of_tests != nullptr &&
      (requested == Device::cuda || (requested == Device::automatic && is_found_by_tests) ||
       (requested == Device::cpu && cuda_of_tests->name == "cpu"))) {
    (void)can_use(requested, {{.name = "made up", .major = kMinMajor}});
    Backend made_up = *cuda_of_tests;
    made_up.make_engine = [make = made_up.make_engine, say](const Network& network,
                                                            EngineSettings settings) {
      settings.say = say;
      return make(network, settings);
    };
    return made_up;
  }
  if (requested == Device::cpu) return cpu_backend();
  const std::vector<DeviceInfo> devices = cuda_devices();
  if (!can_use(requested, devices)) return cpu_backend();
  const int number = requested.number;
  const DeviceInfo& device = devices[static_cast<std::size_t>(number)];
  return {"cuda",
          [](const Network&) { return kCudaArithmetic; },
          [number, say](const Network& network, EngineSettings settings) {
            settings.device = number;
            settings.say = say;
            return make_cuda_engine(network, settings);
          },
          [number](const Network& network, Precision precision, bool transforms) {
            return cuda_precision(network, precision, transforms, number);
          },
          [number](const Dataset& images, int, const WorkDone& done) {
            return scatter_on_cuda(images, done, number);
          },
          [number](const Dataset& train, Loss loss, double max_examples, int, SignWeights weights) {
            return make_cuda_linear_engine(train, loss, max_examples, number, weights);
          },
          "cuda " + device.compute_capability(),
          [device](const Network& network, bool scatters) {
            return cuda_library_arithmetic(device, network, scatters);
          }};
}

}  // namespace cudp

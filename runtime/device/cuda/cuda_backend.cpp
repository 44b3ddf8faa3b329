#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/device_engine.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/lazy_libraries.hpp"
#include "runtime/device/cuda/linear.hpp"
#include "runtime/device/cuda/plans.hpp"
#include "runtime/device/cuda/scatter.hpp"

namespace cudp {

void cuda::CudaGpu::total_norms(const NormTotal& a) {
  validate(a);
  if (!has_cub()) {
    total_norms_by_kernel(*this, a);
    return;
  }
  const std::size_t bytes = cub_norm_total_bytes(a.n);
  if (bytes > cub_bytes_) {
    cub_scratch_ = UniqueHandle<void*, cudaFree>(allocate(bytes));
    cub_bytes_ = bytes;
  }
  check(cub_norm_total(a, cub_scratch_.get(), bytes, stream_.get()), "norm total");
}

bool built_with_cuda() { return true; }

std::vector<DeviceInfo> cuda_devices() {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    (void)cudaGetLastError();
    int driver = 0;
    const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    if (has_driver && status != cudaErrorNoDevice && status != cudaErrorStubLibrary)
      std::fprintf(stderr, "cudp: CUDA devices cannot be used: %s\n", cudaGetErrorString(status));
    return {};
  }
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    cuda::check(cudaGetDeviceProperties(&p, i), "read a device's properties");
    devices.push_back({p.name, p.major, p.minor, p.totalGlobalMem, p.multiProcessorCount});
  }
  return devices;
}

void open_cuda_device(int number) { (void)cuda::CudaGpu(number); }

std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings) {
  return std::make_unique<cuda::DeviceEngine>(cuda::CudaGpu(settings.device), network, settings);
}

Precision cuda_precision(const Network& network, Precision requested, bool transforms, int device) {
  return cuda::device_precision(network, cuda::CudaGpu(device).limits(), requested, transforms);
}

namespace {

/// Returns a library's version, as in "13.0.2". property: its cublasGetProperty or
/// cufftGetProperty. Property: type of the function.
template <class Property>
std::string version(Property property) {
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    (void)property(part, &number);
    if (!text.empty()) text += '.';
    text += std::to_string(number);
  }
  return text;
}

bool may_use_blas(const NetworkLayer& l) {
  return std::holds_alternative<Dense>(l.layer) &&
         std::int64_t{l.in.size()} * l.out.size() >= cuda::kLargeDense;
}

}  // namespace

std::string cuda_library_arithmetic(const DeviceInfo& device, const Network& network,
                                    bool scatters) {
  std::string text;
  if (std::any_of(network.layers.begin(), network.layers.end(), may_use_blas))
    text += ", cuBLAS " + version(cuda::cublas().property);
  if (scatters) text += ", cuFFT " + version(cuda::cufft().property);
  if (text.empty()) return text;
  text += ", " + std::to_string(device.multiprocessors) + " multiprocessors";
  if (const char* tf32 = std::getenv("NVIDIA_TF32_OVERRIDE"))
    text += std::string(", NVIDIA_TF32_OVERRIDE=") + tf32;
  return text;
}

void require_cudnn() {
  try {
    (void)cuda::cudnn_close(cuda::cudnn_open());
  } catch (const Error& e) {
    throw InputError(std::string("--evaluate-with: expected ours, since cuDNN cannot be used (") +
                     e.what() + "), found cudnn");
  }
}

std::unique_ptr<Engine> make_layer_wise_cuda_engine(const Network& network,
                                                    const EngineSettings& settings,
                                                    std::int64_t large_dense) {
  return std::make_unique<cuda::DeviceEngine>(cuda::CudaGpu(settings.device), network, settings,
                                              large_dense, false);
}

std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double max_examples, int device,
                                                      SignWeights weights) {
  return std::make_unique<cuda::DeviceLinear>(cuda::CudaGpu(device), train, loss, max_examples,
                                              weights);
}

std::vector<float> scatter_on_cuda(const Dataset& images, const WorkDone& done, int device) {
  cuda::CudaGpu gpu(device);
  cuda::DeviceScatter scatter(gpu, images.shape.height, images.shape.width);
  return scatter(images, done);
}

}  // namespace cudp

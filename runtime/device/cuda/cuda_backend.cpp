#include <cstdio>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/device_engine.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/linear.hpp"
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
    cub_scratch_ = Unique<void*, cudaFree>(allocate(bytes));
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

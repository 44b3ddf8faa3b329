#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/linear.hpp"

namespace cudp {

std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double max_examples, int device) {
  return std::make_unique<cuda::DeviceLinear<cuda::CudaGpu>>(cuda::CudaGpu(device), train, loss,
                                                             max_examples);
}

}  // namespace cudp

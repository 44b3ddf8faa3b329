#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/linear.hpp"

namespace cudp {

std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double most) {
  return std::make_unique<cuda::DeviceLinear<cuda::CudaGpu>>(cuda::CudaGpu(), train, loss, most);
}

}  // namespace cudp

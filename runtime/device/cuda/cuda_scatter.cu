#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/scatter.hpp"

namespace cudp {

std::vector<float> scatter_on_cuda(const Dataset& images, const WorkDone& done, int device) {
  cuda::CudaGpu gpu(device);
  cuda::DeviceScatter<cuda::CudaGpu> scatter(gpu, images.shape.height, images.shape.width);
  return scatter(images, done);
}

}  // namespace cudp

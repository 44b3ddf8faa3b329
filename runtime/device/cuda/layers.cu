#include "runtime/device/cuda/layers/activation.hpp"
#include "runtime/device/cuda/layers/conv2d.hpp"
#include "runtime/device/cuda/layers/dense.hpp"
#include "runtime/device/cuda/layers/embedding.hpp"
#include "runtime/device/cuda/layers/group_norm.hpp"
#include "runtime/device/cuda/layers/image.hpp"
#include "runtime/device/cuda/layers/mean_over_time.hpp"
#include "runtime/device/cuda/layers/pool.hpp"
#include "runtime/device/cuda/layers/recurrent.hpp"
#include "runtime/device/cuda/layers/token_dense.hpp"

namespace cudp::cuda::inline CUDP_SIMT {
namespace {

using Made = std::unique_ptr<CudaLayer>;

Made made(const Conv2d& l) { return std::make_unique<CudaConv2d>(l); }
Made made(const Dense& l) {
  if (l.per_token) return std::make_unique<CudaTokenDense>(l);
  return std::make_unique<CudaDense>();
}
Made made(const MaxPool2d& l) { return std::make_unique<CudaPool>(l); }
Made made(const AvgPool2d& l) { return std::make_unique<CudaPool>(l); }
Made made(const GroupNorm& l) { return std::make_unique<CudaGroupNorm>(l); }
Made made(const Activate& l) { return std::make_unique<CudaActivation>(l); }
Made made(const Embedding& l) { return std::make_unique<CudaEmbedding>(l); }
Made made(const Recurrent& l) { return std::make_unique<CudaRecurrent>(l); }
Made made(const MeanOverTime& l) { return std::make_unique<CudaMeanOverTime>(l); }

}  // namespace

std::unique_ptr<CudaLayer> make_input() { return std::make_unique<CudaInput>(); }
std::unique_ptr<CudaLayer> make_layer(const Layer& layer) {
  return std::visit([](const auto& l) { return made(l); }, layer);
}

}  // namespace cudp::cuda::inline CUDP_SIMT

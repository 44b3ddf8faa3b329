#pragma once
#include <cstdint>

#include "kernels/clipping/sums.hpp"
#include "kernels/features/scatter.hpp"
#include "kernels/features/second_moments.hpp"
#include "kernels/layers/activation.hpp"
#include "kernels/layers/conv2d.hpp"
#include "kernels/layers/group_norm.hpp"
#include "kernels/layers/image.hpp"
#include "kernels/layers/pool.hpp"
#include "kernels/linear/linear_model.hpp"
#include "kernels/products/gather_gemm.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/sample.hpp"
#include "kernels/update/update.hpp"

namespace cudp {

struct CpuKernels {
  int lanes;  ///< floats in a vector

#define CUDP_CPU_KERNEL(result, name, ...) result (*name)(__VA_ARGS__);
#include "kernels/cpu_kernels.def"
#undef CUDP_CPU_KERNEL
};

#ifdef CUDP_SIMD
namespace CUDP_SIMD {
#define CUDP_CPU_KERNEL(result, name, ...) result name(__VA_ARGS__);
#include "kernels/cpu_kernels.def"
#undef CUDP_CPU_KERNEL
}  // namespace CUDP_SIMD
#endif

}  // namespace cudp

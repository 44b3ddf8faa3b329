#include "runtime/device/cuda/toolkit.hpp"

#if __has_include( \
    <cub/device/device_reduce.cuh>) && __has_include(<thrust/iterator/transform_iterator.h>)
#define CUDP_HAS_CUB
#include <cub/device/device_reduce.cuh>

#include <thrust/iterator/transform_iterator.h>
#endif

namespace cudp::cuda {

#ifdef CUDP_HAS_CUB

namespace {

/// A norm in units.
struct NormUnits {
  double max_norm;
  double grid;
  __host__ __device__ unsigned long long operator()(float norm) const {
    return norm_units(norm, max_norm, grid);
  }
};

}  // namespace

bool has_cub() { return true; }

std::size_t cub_norm_total_bytes(std::int64_t n) {
  std::size_t bytes = 0;
  const NormTotal any{.norms = nullptr, .n = n, .max_norm = 1.0, .grid = 1.0, .total = nullptr};
  const auto units = thrust::make_transform_iterator(any.norms, NormUnits{1.0, 1.0});
  if (cub::DeviceReduce::Sum(nullptr, bytes, units, any.total, n) != cudaSuccess) return 0;
  return bytes;
}

cudaError_t cub_norm_total(const NormTotal& a, void* scratch, std::size_t bytes,
                           cudaStream_t stream) {
  const auto units = thrust::make_transform_iterator(a.norms, NormUnits{a.max_norm, a.grid});
  return cub::DeviceReduce::Sum(scratch, bytes, units, a.total, a.n, stream);
}

#else

bool has_cub() { return false; }
std::size_t cub_norm_total_bytes(std::int64_t) { return 0; }
cudaError_t cub_norm_total(const NormTotal&, void*, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

#endif

}  // namespace cudp::cuda

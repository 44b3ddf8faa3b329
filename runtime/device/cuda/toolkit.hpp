#pragma once
// What the CUDA toolkit's header libraries do for the engine, a function each. They are defined in
// toolkit.cu, the only file that includes those libraries. Each has a twin among our kernels, which
// runs where the libraries are missing, and under the emulator and the interpreter of PTX.
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/contribution/norm_total.hpp"

namespace cudp::cuda {

/// Whether this build has CUB and Thrust. Without them nobody may call the functions below.
bool has_cub();

/// Bytes of scratch memory for cub_norm_total over n norms.
std::size_t cub_norm_total_bytes(std::int64_t n);

/// As norm_total_kernel, whatever *total is before. scratch: device memory of so many bytes, from a
/// multiple of 256 on.
cudaError_t cub_norm_total(const NormTotal& a, void* scratch, std::size_t bytes,
                           cudaStream_t stream);

}  // namespace cudp::cuda

#pragma once
// What the CUDA toolkit's libraries do for the engine, a function each. They are defined in
// toolkit.cu, the only file that includes their headers but for cuBLAS' and cuFFT's. Each has a
// twin: one among our kernels, or plain loops in tests/support/simt/emulated_gpu.hpp. The twins run
// under the emulator and the interpreter of PTX, and those of CUB where the library is missing.
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/contribution/norm_total.hpp"
#include "kernels/layers/recurrent_batch.hpp"
#include "kernels/products/convolution_batch.hpp"
#include "kernels/products/dense_rows.hpp"

namespace cudp::cuda {

/// Whether this build has CUB and Thrust. Without them nobody may call the functions below.
bool has_cub();

/// Bytes of scratch memory for cub_norm_total over n norms.
std::size_t cub_norm_total_bytes(std::int64_t n);

/// As norm_total_kernel, whatever *total is before. scratch: device memory of so many bytes, from a
/// multiple of 256 on.
cudaError_t cub_norm_total(const NormTotal& a, void* scratch, std::size_t bytes,
                           cudaStream_t stream);

/// A handle of cuBLASLt, which comes with cuBLAS. Throws Error where it is not installed.
void* cublaslt_open();
/// Returns 0.
int cublaslt_close(void* handle);
/// DenseRows, with bias and maximum in the product's own kernel. scratch: device memory of so many
/// bytes. May be recorded. With run = false it only asks for the algorithm. Throws Error where
/// there is none.
void cublaslt_dense(void* handle, const DenseRows& a, void* scratch, std::size_t bytes,
                    cudaStream_t stream, bool run);

/// A handle of cuDNN. Throws Error where this build has not its headers, or this machine not the
/// library.
void* cudnn_open();
/// Returns 0.
int cudnn_close(void* handle);
/// ConvolutionBatch, by an algorithm that gives the same sums each time. scratch(n) gives device
/// memory of n bytes. Throws Error where there is no such algorithm.
void cudnn_convolve(void* handle, const ConvolutionBatch& a, void* (*scratch)(void*, std::size_t),
                    void* owner, cudaStream_t stream);
/// RecurrentBatch. Waits for the lengths, which cuDNN wants on the host; not to be recorded.
/// scratch: as above.
void cudnn_recur(void* handle, const RecurrentBatch& a, void* (*scratch)(void*, std::size_t),
                 void* owner, cudaStream_t stream);

}  // namespace cudp::cuda

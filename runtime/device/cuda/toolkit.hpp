#pragma once
// Functions through which the engine calls libraries of the CUDA toolkit. They are defined in
// toolkit.cu, the only file that includes the headers of these libraries, except for those of
// cuBLAS and cuFFT. Each computation has a reference implementation: a kernel of this project, or
// plain loops in tests/support/simt/emulated_gpu.hpp. The reference implementations run under the
// emulator and the PTX interpreter. The reference implementation of cub_norm_total() also runs in
// builds without CUB.
#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/contribution/norm_total.hpp"
#include "kernels/layers/recurrent_batch.hpp"
#include "kernels/products/convolution_batch.hpp"
#include "kernels/products/dense_rows.hpp"

namespace cudp::cuda {

/// Returns whether this build has the libraries CUB and Thrust. If not, cub_norm_total() and
/// cub_norm_total_bytes() must not be called.
bool has_cub();

/// Returns the size of the scratch memory that cub_norm_total() needs for n norms [bytes].
std::size_t cub_norm_total_bytes(std::int64_t n);

/// Computes the sum of stored gradient norms with the CUB library and writes it to *a.total. (In
/// contrast, norm_total_kernel adds to *a.total.) scratch: device memory of `bytes` bytes, aligned
/// to 256 bytes.
cudaError_t cub_norm_total(const NormTotal& a, void* scratch, std::size_t bytes,
                           cudaStream_t stream);

/// Loads cuBLASLt, a part of cuBLAS, and returns a handle. Throws Error if it is not installed.
void* cublaslt_open();
/// Destroys a handle that cublaslt_open() returned. Returns the library's status, 0 for success.
int cublaslt_close(void* handle);
/// Computes the output of a dense layer by cuBLASLt, in one kernel with bias and activation.
/// scratch: device memory of `bytes` bytes. The call may be recorded in a CUDA graph. run: if
/// false, only chooses cuBLASLt's algorithm and computes nothing. Throws Error if cuBLASLt has no
/// algorithm for this size. handle: handle of cuBLASLt.
void cublaslt_dense(void* handle, const DenseRows& a, void* scratch, std::size_t bytes,
                    cudaStream_t stream, bool run);

/// Loads cuDNN and returns a handle. Throws Error if cuDNN's headers were missing when this program
/// was built, or if the library is not installed on this machine.
void* cudnn_open();
/// Destroys a handle that cudnn_open() returned. Returns the library's status, 0 for success.
int cudnn_close(void* handle);
/// Computes a convolution of a batch of images by cuDNN, with a deterministic algorithm.
/// scratch(owner, n) must return device memory of n bytes. Throws Error if cuDNN has no such
/// algorithm. handle: handle of cuDNN.
void cudnn_convolve(void* handle, const ConvolutionBatch& a, void* (*scratch)(void*, std::size_t),
                    void* owner, cudaStream_t stream);
/// Computes an LSTM or GRU for a batch of texts by cuDNN. Waits for the device to read the texts'
/// lengths, so it must not be recorded in a CUDA graph. scratch(owner, n) must return device memory
/// of n bytes. handle: handle of cuDNN.
void cudnn_recur(void* handle, const RecurrentBatch& a, void* (*scratch)(void*, std::size_t),
                 void* owner, cudaStream_t stream);

}  // namespace cudp::cuda

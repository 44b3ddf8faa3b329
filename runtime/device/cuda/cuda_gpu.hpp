#pragma once
// A CUDA device as the engine uses it: memory, launches on one stream, and recordings (captured
// CUDA graphs). Only this file allocates device memory and launches kernels.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/contribution/norm_total.hpp"
#include "kernels/features/scatter.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/lazy_libraries.hpp"
#include "runtime/device/cuda/nccl.hpp"
#include "runtime/device/cuda/out_of_memory.hpp"
#include "runtime/device/cuda/toolkit.hpp"
#include "runtime/device/rank_sums.hpp"

namespace cudp::cuda {

inline void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  (void)cudaGetLastError();  // a failed launch must not be reported again by the next call
  throw Error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(e) + " (" +
              cudaGetErrorName(e) + ")");
}

inline void check(cublasStatus_t s, const char* what) {
  if (s != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("cuBLAS: ") + what + ": " + cublas().status(s));
}

inline void check(cufftResult r, const char* what) {
  if (r != CUFFT_SUCCESS)
    throw Error(std::string("cuFFT: ") + what + ": error " + std::to_string(static_cast<int>(r)));
}

/// Owner of a cuFFT plan. (UniqueHandle cannot own it, because any number may be a valid handle.)
class FourierHandle {
 public:
  FourierHandle() { check(cufft().create(&handle_.emplace()), "start"); }
  FourierHandle(FourierHandle&& o) noexcept : handle_(std::exchange(o.handle_, std::nullopt)) {}
  FourierHandle& operator=(FourierHandle&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  FourierHandle(const FourierHandle&) = delete;
  FourierHandle& operator=(const FourierHandle&) = delete;
  ~FourierHandle() {
    if (handle_ && cufft().destroy(*handle_) != CUFFT_SUCCESS)
      std::fputs("cudp: a plan of cuFFT was not released\n", stderr);
  }
  cufftHandle get() const { return *handle_; }

 private:
  std::optional<cufftHandle> handle_;
};

/// Owner of a CUDA handle. Its destructor never throws. Handle: type of the handle. destroy:
/// function that destroys it.
template <class Handle, auto destroy>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(Handle h) : handle_(h) {}
  UniqueHandle(UniqueHandle&& o) noexcept : handle_(std::exchange(o.handle_, Handle{})) {}
  UniqueHandle& operator=(UniqueHandle&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() {
    if (handle_ != Handle{} && static_cast<int>(destroy(handle_)) != 0)
      std::fputs("cudp: a CUDA handle was not released\n", stderr);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

/// A CUDA device: its memory, and a CUDA stream in which kernels are launched one after the other.
/// A second stream is for copies (copy_beside()).
class CudaGpu {
 public:
  /// Opens the CUDA device of this number. Throws Error if there is none that this build has code
  /// for.
  explicit CudaGpu(int device = 0) {
    check(cudaSetDevice(device), "choose the device");
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "create a stream");
    stream_ = UniqueHandle<cudaStream_t, cudaStreamDestroy>(s);
    int shared = 0;
    check(cudaDeviceGetAttribute(&limits_.multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "read the number of multiprocessors");
    check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "read the size of shared memory");
    limits_.shared_bytes = static_cast<std::size_t>(shared);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "read a device's properties");
    memory_ = properties.totalGlobalMem;
    uuid_.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "read the driver's version");
    constexpr int kCapturesDependents = 12030;  // CUDA 12.3
    const char* const wish = std::getenv("CUDP_DEPENDENT_LAUNCHES");
    allows_dependents_ = properties.major >= 9 && CUDART_VERSION >= kCapturesDependents &&
                         driver >= kCapturesDependents && wish != nullptr &&
                         std::string_view(wish) == "1";
  }

  const DeviceLimits& limits() const { return limits_; }
  /// Total size of the device's memory, free or not [bytes].
  std::size_t memory() const { return memory_; }
  std::size_t free_memory() const {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "read the size of free memory");
    return free;
  }

  /// Allows launches of `kernel` to use as much shared memory as the device has. bytes: shared
  /// memory that the next launch needs. Throws Error if the device has less. Call it before every
  /// launch with more than 48 KB of shared memory, not only once: the limit belongs to the kernel,
  /// and another user of the kernel may have lowered it. P: types of the kernel's arguments.
  template <class... P>
  void allow_shared(void (*kernel)(P...), std::size_t bytes) {
    cudaFuncAttributes of{};
    check(cudaFuncGetAttributes(&of, kernel), "read a kernel's attributes");
    const std::size_t max_bytes = limits_.shared_bytes - of.sharedSizeBytes;
    if (bytes > max_bytes) throw Error("CUDA: a kernel needs more shared memory than there is");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(max_bytes)),
          "allow a kernel its shared memory");
  }

  /// Allocates device memory. Throws OutOfMemory if the device has less free memory than this.
  void* allocate(std::size_t bytes) {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      // The message leaves out the size: it depends on the number of training examples.
      throw OutOfMemory("CUDA: the device has no memory left");
    }
    check(status, "allocate memory");
    return p;
  }
  void release(void* p) {
    if (cudaFree(p) != cudaSuccess) std::fputs("cudp: device memory was not released\n", stderr);
  }
  void clear(void* p, std::size_t bytes) {
    if (loads_only_) return;
    check(cudaMemsetAsync(p, 0, bytes, stream_.get()), "clear memory");
  }
  /// Copies host memory to the device and waits until the copy is done, so the caller may then
  /// change `from`. (If it did not wait, ordinary host memory would have to stay unchanged for an
  /// unknown time.)
  void upload(void* to, const void* from, std::size_t bytes) {
    settle();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "upload");
    check(cudaStreamSynchronize(stream_.get()), "wait for the device");
  }
  /// Returns whether fill_scratch() overwrites memory. Always false here: only the emulated device
  /// of the tests overwrites scratch memory with a test value.
  bool fills_scratch() const { return false; }
  void fill_scratch(void*, std::size_t) {}
  /// Allocates host memory that the device can read directly.
  void* allocate_pinned(std::size_t bytes) {
    void* p = nullptr;
    check(cudaMallocHost(&p, bytes), "allocate pinned memory");
    return p;
  }
  void release_pinned(void* p) {
    if (cudaFreeHost(p) != cudaSuccess)
      std::fputs("cudp: pinned memory was not released\n", stderr);
  }
  /// Copies from pinned host memory to the device without waiting. The caller must not change
  /// `from` until the host has next waited for the device.
  void upload_pinned(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "upload");
  }
  /// A CUDA event, which marks a point in one of the two CUDA streams: that of kernel launches, or
  /// that of copies by copy_beside().
  using Mark = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
  /// Returns a new mark (CUDA event) that is not set yet. The first call also creates the CUDA
  /// stream for copies, so call it before copy_beside().
  Mark new_mark() {
    if (copies_.get() == nullptr) {
      cudaStream_t s = nullptr;
      check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "create a stream");
      copies_ = UniqueHandle<cudaStream_t, cudaStreamDestroy>(s);
    }
    cudaEvent_t e = nullptr;
    check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "create an event");
    return Mark(e);
  }
  /// Copies from pinned host memory to the device in the CUDA stream for copies, so that the copy
  /// overlaps with launched kernels. The caller must not change `from` until the copy is done: call
  /// mark_copies() after this call and then wait() for that mark.
  void copy_beside(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_.get()), "upload");
  }
  /// Sets the mark m in the stream of launches, after all launches so far.
  void mark(const Mark& m) { check(cudaEventRecord(m.get(), stream_.get()), "mark launches"); }
  /// Sets the mark m in the stream of copies, after all copies made by copy_beside() so far.
  void mark_copies(const Mark& m) { check(cudaEventRecord(m.get(), copies_.get()), "mark copies"); }
  /// Makes later copies by copy_beside() wait, on the device, until the launches before mark m are
  /// done. Requires that mark() has set m.
  void hold_copies(const Mark& m) {
    check(cudaStreamWaitEvent(copies_.get(), m.get(), 0), "let copies wait");
  }
  /// Makes later launches wait, on the device, until the copies before mark m are done. Requires
  /// that mark_copies() has set m.
  void await_copies(const Mark& m) {
    check(cudaStreamWaitEvent(stream_.get(), m.get(), 0), "let launches wait");
  }
  /// Blocks the host until all work before mark m is done: launches or copies, depending on the
  /// stream in which the mark was set.
  void wait(const Mark& m) { check(cudaEventSynchronize(m.get()), "wait for copies"); }
  /// Copies from device memory to device memory without waiting.
  void copy(void* to, const void* from, std::size_t bytes) {
    if (loads_only_) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get()), "copy");
  }
  /// Copies to host memory. Waits for all earlier work.
  void download(void* to, const void* from, std::size_t bytes) {
    settle();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_.get()), "download");
    check(cudaStreamSynchronize(stream_.get()), "wait for the device");
  }

  /// Launches a kernel with the given arguments. Defined only in sources that nvcc compiles. name:
  /// name of the kernel in error messages. P, A: types of the kernel's parameters and of the
  /// arguments. s: launch shape.
  template <class... P, class... A>
  void launch(const char* name, void (*kernel)(P...), const LaunchShape& s, const A&... args);
  /// Launches a kernel that may begin before the previous kernel launch has ended (programmatic
  /// dependent launch). The kernel must follow the rules of kernels/common/dependent.cuh. If the
  /// environment variable CUDP_DEPENDENT_LAUNCHES is not 1, or if the device, the driver or the
  /// kernel's code does not support it, it is an ordinary launch.
  template <class... P, class... A>
  void launch_dependent(const char* name, void (*kernel)(P...), const LaunchShape& s,
                        const A&... args);

  /// Creates the cuBLAS handles. Call it before sgemm() and dense(), and not inside record().
  /// precision: precision of the products that sgemm() computes.
  void prepare_blas(Precision precision) {
    cublasHandle_t h = nullptr;
    check(cublas().create(&h), "start");
    blas_ = UniqueHandle<cublasHandle_t, destroy_cublas>(h);
    blas_lt_ = UniqueHandle<void*, cublaslt_close>(cublaslt_open());
    check(cublas().set_stream(h, stream_.get()), "choose the stream");
    // The workspace is allocated here, because an allocation by cuBLAS itself cannot be recorded.
    workspace_ = UniqueHandle<void*, cudaFree>(allocate(kWorkspace));
    check(cublas().set_workspace(h, workspace_.get(), kWorkspace), "take the workspace");
    const bool tf32 = precision == Precision::tf32;
    check(cublas().set_math_mode(h, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH),
          "choose the precision");
    // The first product loads the kernels, which must not happen while recording.
    auto* const one = static_cast<float*>(workspace_.get());
    clear(one, 3 * sizeof(float));
    sgemm('N', 'N', 1, 1, 1, one, 1, one + 1, 1, 0.0f, one + 2, 1);
  }

  /// Computes the matrix product c = op(a) op(b) + beta c, in column-major order as in BLAS. op_a,
  /// op_b: N for the matrix itself, T for its transpose. c: m rows and n columns. k: number of
  /// products in each element. lda, ldb, ldc: distances between consecutive columns of a, b and c
  /// [floats].
  void sgemm(char op_a, char op_b, int m, int n, int k, const float* a, int lda, const float* b,
             int ldb, float beta, float* c, int ldc) {
    if (loads_only_) return;
    const auto op = [](char o) { return o == 'T' ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const float one = 1.0f;
    check(cublas().sgemm(blas_.get(), op(op_a), op(op_b), m, n, k, &one, a, lda, b, ldb, &beta, c,
                         ldc),
          "multiply");
  }

  /// Computes a dense layer's output, one row per example, with cuBLASLt. Requires prepare_blas().
  void dense(const DenseRows& a) {
    validate(a);
    cublaslt_dense(blas_lt_.get(), a, workspace_.get(), kWorkspace, stream_.get(), !loads_only_);
  }

  /// Opens cuDNN. Call before convolve() and recur(). Throws Error if cuDNN is not available.
  void prepare_dnn() {
    if (dnn_.get() == nullptr) dnn_ = UniqueHandle<void*, cudnn_close>(cudnn_open());
  }
  /// Computes a convolution of a batch with cuDNN. Must not be called inside record().
  void convolve(const ConvolutionBatch& a) {
    validate(a);
    const auto scratch = [](void* self, std::size_t bytes) {
      return static_cast<CudaGpu*>(self)->dnn_scratch(bytes);
    };
    cudnn_convolve(dnn_.get(), a, scratch, this, stream_.get());
  }
  void recur(const RecurrentBatch& a) {
    validate(a);
    const auto scratch = [](void* self, std::size_t bytes) {
      return static_cast<CudaGpu*>(self)->dnn_scratch(bytes);
    };
    cudnn_recur(dnn_.get(), a, scratch, this, stream_.get());
  }

  /// Computes in place the Fourier transforms of the images in z: `images` complex images of rows x
  /// columns pixels, one after the other. The inverse transform does not divide by the number of
  /// pixels. The first call for a size creates a cuFFT plan, so it must not be inside record().
  void fourier(int rows, int columns, int images, ComplexFloat* z, bool inverse) {
    const auto [at, is_new] = fourier_plans_.try_emplace({rows, columns, images});
    if (is_new) {
      int size[2] = {rows, columns};
      std::size_t workspace = 0;
      check(cufft().make_plan(at->second.get(), 2, size, nullptr, 1, rows * columns, nullptr, 1,
                              rows * columns, CUFFT_C2C, images, &workspace),
            "make a plan");
      check(cufft().set_stream(at->second.get(), stream_.get()), "choose the stream");
    }
    auto* const data = reinterpret_cast<cufftComplex*>(z);
    check(cufft().transform(at->second.get(), data, data, inverse ? CUFFT_INVERSE : CUFFT_FORWARD),
          "transform");
  }

  /// Computes the sum of stored gradient norms that `a` describes and writes it to *a.total. Uses
  /// the CUB library if the build has it. Must not be called inside record().
  void total_norms(const NormTotal& a);

  /// Returns the properties of this device that ranks (processes) exchange to decide whether their
  /// devices can add up sums directly.
  DeviceSums device_sums() const {
    DeviceSums s{.device = uuid_};
    try {
      const int version = nccl_version();
      s.library = nccl_name(version);
      s.may_share = nccl_may_share(version);
    } catch (const Error& e) {
      s.refusal = e.what();
    }
    return s;
  }
  static std::string id_for_sums() { return NcclRanks::new_id(); }
  /// Joins the group of ranks (processes) over which sum_over_ranks() adds up arrays with NCCL. All
  /// ranks must call it, with the same id, which one of them has created. Throws Error if joining
  /// fails.
  void join_ranks(Ranks& ranks, const std::string& id) {
    nccl_ = std::make_unique<NcclRanks>(ranks, id);
  }
  void leave_ranks() { nccl_.reset(); }
  /// Replaces words [n] by their sums over all ranks (processes), modulo 2^64, with NCCL. It may be
  /// called inside record() once it has been called outside with the same n. Requires join_ranks().
  /// Afterwards every wait for the device also checks whether NCCL, or a rank, has failed.
  void sum_over_ranks(std::uint64_t* words, std::size_t n) {
    if (loads_only_) return;
    nccl_->sum(words, n, stream_.get());
  }

  /// An executable CUDA graph. record(work) calls `work` and captures its launches without running
  /// them; replay() runs them. `work` may launch kernels and clear memory, but must not allocate,
  /// upload or download. It is called twice: the first call only loads the kernels, because drivers
  /// before CUDA 12.3 cannot load them during a capture.
  using Recording = UniqueHandle<cudaGraphExec_t, cudaGraphExecDestroy>;
  Recording record(const std::function<void()>& work) {
    load(work);
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "record a step");
    cudaGraph_t raw = nullptr;
    try {
      work();
    } catch (...) {
      (void)cudaStreamEndCapture(stream_.get(), &raw);
      if (raw != nullptr) (void)cudaGraphDestroy(raw);
      throw;
    }
    check(cudaStreamEndCapture(stream_.get(), &raw), "record a step");
    const UniqueHandle<cudaGraph_t, cudaGraphDestroy> graph(raw);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0), "make a recorded step ready");
    return Recording(exec);
  }
  void replay(const Recording& r) { check(cudaGraphLaunch(r.get(), stream_.get()), "replay"); }

 private:
  /// If ranks (processes) add up sums with NCCL: waits until the work in the CUDA stream is done,
  /// and throws Error if a rank has failed. Without this check, the host would wait for the failed
  /// rank for ever. Does nothing without NCCL.
  void settle() {
    if (nccl_ == nullptr) return;
    nccl_->wait([this] {
      const cudaError_t status = cudaStreamQuery(stream_.get());
      if (status == cudaErrorNotReady) return false;
      check(status, "wait for the device");
      return true;
    });
  }

  /// Calls `work`, which launches kernels, in a mode in which a launch loads its kernel but does
  /// not run it. Used before recording, because old drivers cannot load kernels during a capture.
  void load(const std::function<void()>& work) {
    loads_only_ = true;
    try {
      work();
    } catch (...) {
      loads_only_ = false;
      throw;
    }
    loads_only_ = false;
  }

  void* dnn_scratch(std::size_t bytes) {
    if (bytes > dnn_bytes_) {
      dnn_scratch_ = UniqueHandle<void*, cudaFree>(allocate(bytes));
      dnn_bytes_ = bytes;
    }
    return dnn_scratch_.get();
  }

  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // workspace of cuBLAS [bytes]

  bool loads_only_ = false;
  bool allows_dependents_ = false;  // if false, launch_dependent() is an ordinary launch
  DeviceLimits limits_;
  std::size_t memory_ = 0;
  std::string uuid_;
  UniqueHandle<cudaStream_t, cudaStreamDestroy> stream_;
  UniqueHandle<cudaStream_t, cudaStreamDestroy> copies_;  // null before new_mark()
  UniqueHandle<void*, cudaFree> workspace_;
  UniqueHandle<void*, cudaFree> cub_scratch_;
  std::size_t cub_bytes_ = 0;
  UniqueHandle<void*, cudaFree> dnn_scratch_;
  std::size_t dnn_bytes_ = 0;
  UniqueHandle<cublasHandle_t, destroy_cublas> blas_;
  UniqueHandle<void*, cublaslt_close> blas_lt_;
  UniqueHandle<void*, cudnn_close> dnn_;
  std::map<std::tuple<int, int, int>, FourierHandle> fourier_plans_;
  std::unique_ptr<NcclRanks> nccl_;
};

#ifdef __CUDACC__
template <class... P, class... A>
void CudaGpu::launch(const char* name, void (*kernel)(P...), const LaunchShape& s,
                     const A&... args) {
  if (loads_only_) {
    cudaFuncAttributes loaded{};
    check(cudaFuncGetAttributes(&loaded, kernel), name);
    return;
  }
  const auto dim = [](const Extent& e) { return dim3(e.x, e.y, e.z); };
  kernel<<<dim(s.grid), dim(s.block), s.shared_bytes, stream_.get()>>>(args...);
  check(cudaGetLastError(), name);
}

template <class... P, class... A>
void CudaGpu::launch_dependent(const char* name, void (*kernel)(P...), const LaunchShape& s,
                               const A&... args) {
  // A dependent launch requires that the kernel waits for the previous launch (wait_for_primary()).
  // That wait exists only in code that was compiled from PTX for compute capability 9.0 or newer. A
  // device of 9.0 may also run code from older PTX.
  constexpr int kPtxWithWaits = 90;
  cudaFuncAttributes of{};
  check(cudaFuncGetAttributes(&of, kernel), name);
  if (loads_only_) return;
  if (!allows_dependents_ || of.ptxVersion < kPtxWithWaits) return launch(name, kernel, s, args...);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(s.grid.x, s.grid.y, s.grid.z);
  config.blockDim = dim3(s.block.x, s.block.y, s.block.z);
  config.dynamicSmemBytes = s.shared_bytes;
  config.stream = stream_.get();
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, args...), name);
}
#endif

}  // namespace cudp::cuda

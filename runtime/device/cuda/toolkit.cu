#include <array>
#include <cstdint>
#include <string>

#include <cublasLt.h>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/late_libraries.hpp"
#include "runtime/device/cuda/toolkit.hpp"

#if __has_include(<cudnn.h>)
#define CUDP_HAS_CUDNN
#include <cudnn.h>
#endif

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

namespace {

template <class Status>
void need(Status status, const char* library, const char* what) {
  if (static_cast<int>(status) != 0)
    throw Error(std::string(library) + ": " + what + ": error " +
                std::to_string(static_cast<int>(status)));
}

struct CublasLt {
  LateLibrary library{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)};
  decltype(&cublasLtCreate) create = library.find("cublasLtCreate");
  decltype(&cublasLtDestroy) destroy = library.find("cublasLtDestroy");
  decltype(&cublasLtMatmul) multiply = library.find("cublasLtMatmul");
  decltype(&cublasLtMatmulDescCreate) make_product = library.find("cublasLtMatmulDescCreate");
  decltype(&cublasLtMatmulDescDestroy) end_product = library.find("cublasLtMatmulDescDestroy");
  decltype(&cublasLtMatmulDescSetAttribute) set_product =
      library.find("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatrixLayoutCreate) make_matrix = library.find("cublasLtMatrixLayoutCreate");
  decltype(&cublasLtMatrixLayoutDestroy) end_matrix = library.find("cublasLtMatrixLayoutDestroy");
  decltype(&cublasLtMatmulPreferenceCreate) make_preference =
      library.find("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) end_preference =
      library.find("cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference =
      library.find("cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = library.find("cublasLtMatmulAlgoGetHeuristic");
};
const CublasLt& cublaslt() {
  static const CublasLt functions;
  return functions;
}

/// A descriptor and the function that ends it.
template <class T>
class Descriptor {
 public:
  Descriptor(T made, cublasStatus_t (*end)(T)) : made_(made), end_(end) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { (void)end_(made_); }
  T get() const { return made_; }

 private:
  T made_;
  cublasStatus_t (*end_)(T);
};

constexpr const char* kLt = "cuBLASLt";

Descriptor<cublasLtMatrixLayout_t> matrix(int rows, int columns) {
  cublasLtMatrixLayout_t m = nullptr;
  need(cublaslt().make_matrix(&m, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                              static_cast<std::uint64_t>(columns), rows),
       kLt, "describe a matrix");
  return {m, cublaslt().end_matrix};
}

}  // namespace

void* cublaslt_open() {
  cublasLtHandle_t h = nullptr;
  need(cublaslt().create(&h), kLt, "start");
  return h;
}
int cublaslt_close(void* handle) {
  return static_cast<int>(cublaslt().destroy(static_cast<cublasLtHandle_t>(handle)));
}

// Row-major matrices are their own transposes to BLAS: y' = weight x'.
void cublaslt_dense(void* handle, const DenseRows& a, void* scratch, std::size_t bytes,
                    cudaStream_t stream, bool run) {
  const CublasLt& lt = cublaslt();
  const auto h = static_cast<cublasLtHandle_t>(handle);
  cublasLtMatmulDesc_t made = nullptr;
  need(
      lt.make_product(
          &made, a.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          CUDA_R_32F),
      kLt, "describe a product");
  const Descriptor<cublasLtMatmulDesc_t> product(made, lt.end_product);
  const auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& value) {
    need(lt.set_product(product.get(), what, &value, sizeof value), kLt, "describe a product");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, a.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(a.bias));
  const auto weight = matrix(a.inputs, a.outputs);
  const auto x = matrix(a.inputs, a.rows);
  const auto y = matrix(a.outputs, a.rows);
  cublasLtMatmulPreference_t wish = nullptr;
  need(lt.make_preference(&wish), kLt, "choose an algorithm");
  const Descriptor<cublasLtMatmulPreference_t> preference(wish, lt.end_preference);
  const std::uint64_t max_bytes = bytes;
  need(lt.set_preference(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max_bytes,
                         sizeof max_bytes),
       kLt, "choose an algorithm");
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  need(lt.choose(h, product.get(), weight.get(), x.get(), y.get(), y.get(), preference.get(), 1,
                 &best, &found),
       kLt, "choose an algorithm");
  if (found == 0) throw Error("cuBLASLt: it has no algorithm for a dense layer");
  if (!run) return;
  const float one = 1.0f;
  const float none = 0.0f;
  need(lt.multiply(h, product.get(), &one, a.weight, weight.get(), a.x, x.get(), &none, a.y,
                   y.get(), a.y, y.get(), &best.algo, scratch, bytes, stream),
       kLt, "multiply");
}

#ifdef CUDP_HAS_CUDNN

namespace {

struct Cudnn {
  LateLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR)};
  decltype(&cudnnCreate) create = library.find("cudnnCreate");
  decltype(&cudnnDestroy) destroy = library.find("cudnnDestroy");
  decltype(&cudnnSetStream) set_stream = library.find("cudnnSetStream");
  decltype(&cudnnCreateTensorDescriptor) make_tensor = library.find("cudnnCreateTensorDescriptor");
  decltype(&cudnnDestroyTensorDescriptor) end_tensor = library.find("cudnnDestroyTensorDescriptor");
  decltype(&cudnnSetTensor4dDescriptor) set_tensor = library.find("cudnnSetTensor4dDescriptor");
  decltype(&cudnnCreateFilterDescriptor) make_weight = library.find("cudnnCreateFilterDescriptor");
  decltype(&cudnnDestroyFilterDescriptor) end_weight = library.find("cudnnDestroyFilterDescriptor");
  decltype(&cudnnSetFilter4dDescriptor) set_weight = library.find("cudnnSetFilter4dDescriptor");
  decltype(&cudnnCreateConvolutionDescriptor) make_convolution =
      library.find("cudnnCreateConvolutionDescriptor");
  decltype(&cudnnDestroyConvolutionDescriptor) end_convolution =
      library.find("cudnnDestroyConvolutionDescriptor");
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution =
      library.find("cudnnSetConvolution2dDescriptor");
  decltype(&cudnnSetConvolutionMathType) set_precision =
      library.find("cudnnSetConvolutionMathType");
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) choose =
      library.find("cudnnGetConvolutionForwardAlgorithm_v7");
  decltype(&cudnnConvolutionForward) convolve = library.find("cudnnConvolutionForward");
};
const Cudnn& cudnn() {
  static const Cudnn functions;
  return functions;
}

constexpr const char* kDnn = "cuDNN";

/// The descriptors of a convolution.
struct Convolution {
  cudnnTensorDescriptor_t x = nullptr;
  cudnnTensorDescriptor_t y = nullptr;
  cudnnFilterDescriptor_t weight = nullptr;
  cudnnConvolutionDescriptor_t form = nullptr;

  Convolution(const ConvolutionBatch& a, cudnnMathType_t math) {
    const Cudnn& dnn = cudnn();
    try {
      need(dnn.make_tensor(&x), kDnn, "describe images");
      need(dnn.make_tensor(&y), kDnn, "describe images");
      need(dnn.make_weight(&weight), kDnn, "describe weights");
      need(dnn.make_convolution(&form), kDnn, "describe a convolution");
      need(dnn.set_tensor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, a.examples, a.channels, a.height,
                          a.width),
           kDnn, "describe images");
      need(dnn.set_tensor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, a.examples, a.columns,
                          a.out_height(), a.out_width()),
           kDnn, "describe images");
      need(dnn.set_weight(weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, a.columns, a.channels,
                          a.kernel, a.kernel),
           kDnn, "describe weights");
      need(dnn.set_convolution(form, a.pad, a.pad, a.stride, a.stride, 1, 1,
                               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
           kDnn, "describe a convolution");
      need(dnn.set_precision(form, math), kDnn, "choose the precision");
    } catch (...) {
      end();
      throw;
    }
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  ~Convolution() { end(); }

 private:
  void end() {
    const Cudnn& dnn = cudnn();
    if (x != nullptr) (void)dnn.end_tensor(x);
    if (y != nullptr) (void)dnn.end_tensor(y);
    if (weight != nullptr) (void)dnn.end_weight(weight);
    if (form != nullptr) (void)dnn.end_convolution(form);
  }
};

}  // namespace

void* cudnn_open() {
  cudnnHandle_t h = nullptr;
  need(cudnn().create(&h), kDnn, "start");
  return h;
}
int cudnn_close(void* handle) {
  return static_cast<int>(cudnn().destroy(static_cast<cudnnHandle_t>(handle)));
}

void cudnn_convolve(void* handle, const ConvolutionBatch& a, void* (*scratch)(void*, std::size_t),
                    void* owner, cudaStream_t stream) {
  const auto h = static_cast<cudnnHandle_t>(handle);
  need(cudnn().set_stream(h, stream), kDnn, "choose the stream");
  const cudnnMathType_t math = a.precision == Precision::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  const Convolution c(a, math);
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
  int count = 0;
  need(cudnn().choose(h, c.x, c.weight, c.form, c.y, static_cast<int>(found.size()), &count,
                      found.data()),
       kDnn, "choose an algorithm");
  const float one = 1.0f;
  const float none = 0.0f;
  for (int i = 0; i < count; ++i) {  // the fastest first
    const cudnnConvolutionFwdAlgoPerf_t& f = found[static_cast<std::size_t>(i)];
    if (f.status != CUDNN_STATUS_SUCCESS || f.determinism != CUDNN_DETERMINISTIC ||
        (math == CUDNN_FMA_MATH && f.mathType != CUDNN_FMA_MATH))
      continue;
    need(cudnn().convolve(h, &one, c.x, a.x, c.weight, a.weight, c.form, f.algo,
                          scratch(owner, f.memory), f.memory, &none, c.y, a.y),
         kDnn, "convolve");
    return;
  }
  throw Error("cuDNN: it has no algorithm for a convolution");
}

#else

void* cudnn_open() { throw Error("CUDA: this build has no cuDNN, its headers were not found"); }
int cudnn_close(void*) { return 0; }
void cudnn_convolve(void*, const ConvolutionBatch&, void* (*)(void*, std::size_t), void*,
                    cudaStream_t) {
  throw Error("CUDA: this build has no cuDNN");
}

#endif

}  // namespace cudp::cuda

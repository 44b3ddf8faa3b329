#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/lazy_libraries.hpp"
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

/// Function object that converts a gradient norm to an integer multiple of the grid, as
/// norm_units() does.
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
  LazyLibrary library{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)};
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

/// Owner of a library's descriptor, which it destroys.
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

// BLAS reads row-major matrices as their transposes: y' = weight x'.
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
  LazyLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR)};
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

/// The descriptors with which cuDNN describes a convolution.
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
  for (int i = 0; i < count; ++i) {  // fastest first
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

namespace {

/// Functions of cuDNN that only recurrent layers use.
struct CudnnRecurrent {
  const LazyLibrary& library = cudnn().library;
  decltype(&cudnnSetTensorNdDescriptor) set_tensor = library.find("cudnnSetTensorNdDescriptor");
  decltype(&cudnnGetTensorNdDescriptor) get_tensor = library.find("cudnnGetTensorNdDescriptor");
  decltype(&cudnnCreateDropoutDescriptor) make_dropout =
      library.find("cudnnCreateDropoutDescriptor");
  decltype(&cudnnDestroyDropoutDescriptor) end_dropout =
      library.find("cudnnDestroyDropoutDescriptor");
  decltype(&cudnnSetDropoutDescriptor) set_dropout = library.find("cudnnSetDropoutDescriptor");
  decltype(&cudnnCreateRNNDescriptor) make_layer = library.find("cudnnCreateRNNDescriptor");
  decltype(&cudnnDestroyRNNDescriptor) end_layer = library.find("cudnnDestroyRNNDescriptor");
  decltype(&cudnnSetRNNDescriptor_v8) set_layer = library.find("cudnnSetRNNDescriptor_v8");
  decltype(&cudnnCreateRNNDataDescriptor) make_texts = library.find("cudnnCreateRNNDataDescriptor");
  decltype(&cudnnDestroyRNNDataDescriptor) end_texts =
      library.find("cudnnDestroyRNNDataDescriptor");
  decltype(&cudnnSetRNNDataDescriptor) set_texts = library.find("cudnnSetRNNDataDescriptor");
  decltype(&cudnnGetRNNWeightSpaceSize) weight_bytes = library.find("cudnnGetRNNWeightSpaceSize");
  decltype(&cudnnGetRNNWeightParams) find_weight = library.find("cudnnGetRNNWeightParams");
  decltype(&cudnnGetRNNTempSpaceSizes) work_bytes = library.find("cudnnGetRNNTempSpaceSizes");
  decltype(&cudnnRNNForward) forward = library.find("cudnnRNNForward");
};
const CudnnRecurrent& cudnn_recurrent() {
  static const CudnnRecurrent functions;
  return functions;
}

/// The descriptors with which cuDNN describes a recurrent layer.
struct RecurrentForm {
  cudnnDropoutDescriptor_t dropout = nullptr;  // no dropout, but cuDNN requires a descriptor
  cudnnRNNDescriptor_t layer = nullptr;
  cudnnRNNDataDescriptor_t x = nullptr;
  cudnnRNNDataDescriptor_t y = nullptr;
  cudnnTensorDescriptor_t states = nullptr;
  cudnnTensorDescriptor_t matrix = nullptr;
  cudnnTensorDescriptor_t bias = nullptr;

  RecurrentForm(cudnnHandle_t h, const RecurrentBatch& a, const std::vector<int>& lengths) {
    const CudnnRecurrent& rnn = cudnn_recurrent();
    try {
      need(rnn.make_dropout(&dropout), kDnn, "describe no dropout");
      need(rnn.set_dropout(dropout, h, 0.0f, nullptr, 0, 0), kDnn, "describe no dropout");
      need(rnn.make_layer(&layer), kDnn, "describe a recurrent layer");
      need(rnn.set_layer(layer, CUDNN_RNN_ALGO_STANDARD, a.is_lstm ? CUDNN_LSTM : CUDNN_GRU,
                         CUDNN_RNN_DOUBLE_BIAS,
                         a.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                         CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                         a.precision == Precision::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH,
                         a.inputs, a.hidden, a.hidden, 1, dropout, CUDNN_RNN_PADDED_IO_ENABLED),
           kDnn, "describe a recurrent layer");
      float padding = 0.0f;
      const auto texts = [&](cudnnRNNDataDescriptor_t& d, int numbers) {
        need(rnn.make_texts(&d), kDnn, "describe texts");
        need(rnn.set_texts(d, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
                           a.places, a.examples, numbers, lengths.data(), &padding),
             kDnn, "describe texts");
      };
      texts(x, a.inputs);
      texts(y, a.directions * a.hidden);
      for (cudnnTensorDescriptor_t* t : {&states, &matrix, &bias})
        need(cudnn().make_tensor(t), kDnn, "describe states and weights");
      const int sizes[3] = {a.directions, a.examples, a.hidden};
      const int strides[3] = {a.examples * a.hidden, a.hidden, 1};
      need(rnn.set_tensor(states, CUDNN_DATA_FLOAT, 3, sizes, strides), kDnn,
           "describe the states");
    } catch (...) {
      end();
      throw;
    }
  }
  RecurrentForm(const RecurrentForm&) = delete;
  RecurrentForm& operator=(const RecurrentForm&) = delete;
  ~RecurrentForm() { end(); }

 private:
  void end() {
    const CudnnRecurrent& rnn = cudnn_recurrent();
    if (dropout != nullptr) (void)rnn.end_dropout(dropout);
    if (layer != nullptr) (void)rnn.end_layer(layer);
    for (cudnnRNNDataDescriptor_t d : {x, y})
      if (d != nullptr) (void)rnn.end_texts(d);
    for (cudnnTensorDescriptor_t t : {states, matrix, bias})
      if (t != nullptr) (void)cudnn().end_tensor(t);
  }
};

/// Returns the number of elements of the tensor that t describes; 0 if it does not exist.
std::int64_t size_of(cudnnTensorDescriptor_t t) {
  cudnnDataType_t type{};
  int dimensions = 0;
  int sizes[3] = {};
  int strides[3] = {};
  need(cudnn_recurrent().get_tensor(t, 3, &type, &dimensions, sizes, strides), kDnn,
       "ask for a weight's size");
  return dimensions == 0 ? 0 : std::int64_t{sizes[0]} * sizes[1] * sizes[2];
}

/// Copies a recurrent layer's parameters to `space` in cuDNN's order: one matrix after another, row
/// by row. For each direction the weights of inputs come first, then those of states. The order of
/// the gates does not change. h: cuDNN's handle. form: cuDNN's descriptors of the layer.
void copy_weights(cudnnHandle_t h, const RecurrentForm& form, const RecurrentBatch& a, void* space,
                  std::size_t bytes, cudaStream_t stream) {
  const auto copy = [&](void* to, cudnnTensorDescriptor_t described, const float* from,
                        std::int64_t n) {
    if (from == nullptr) return;  // a bias that is 0
    if (size_of(described) != n) throw Error("cuDNN: a weight has another size");
    need(cudaMemcpyAsync(to, from, static_cast<std::size_t>(n) * sizeof(float),
                         cudaMemcpyDeviceToDevice, stream),
         "CUDA", "copy a weight");
  };
  need(cudaMemsetAsync(space, 0, bytes, stream), "CUDA", "clear the weights");
  for (int d = 0; d < a.directions; ++d)
    for (int i = 0; i < 2 * a.gates(); ++i) {
      const DirectionWeights& w = a.weights(d);
      const bool of_states = i >= a.gates();
      const std::int64_t row = std::int64_t{i % a.gates()} * a.hidden;
      const int columns = of_states ? a.hidden : a.inputs;
      const float* const bias = of_states ? w.state_bias : w.bias;
      void* to = nullptr;
      void* bias_to = nullptr;
      need(cudnn_recurrent().find_weight(h, form.layer, d, bytes, space, i, form.matrix, &to,
                                         form.bias, &bias_to),
           kDnn, "find a weight's place");
      copy(to, form.matrix, (of_states ? w.states : w.inputs) + row * columns,
           std::int64_t{a.hidden} * columns);
      copy(bias_to, form.bias, bias == nullptr ? nullptr : bias + row, a.hidden);
    }
}

}  // namespace

void cudnn_recur(void* handle, const RecurrentBatch& a, void* (*scratch)(void*, std::size_t),
                 void* owner, cudaStream_t stream) {
  const auto h = static_cast<cudnnHandle_t>(handle);
  need(cudnn().set_stream(h, stream), kDnn, "choose the stream");
  std::vector<int> lengths(static_cast<std::size_t>(a.examples));
  const std::size_t length_bytes = lengths.size() * sizeof(int);
  need(cudaMemcpyAsync(lengths.data(), a.length, length_bytes, cudaMemcpyDeviceToHost, stream),
       "CUDA", "copy lengths");
  need(cudaStreamSynchronize(stream), "CUDA", "wait for lengths");
  for (int& n : lengths) n = std::clamp(n, 1, a.places);

  const CudnnRecurrent& rnn = cudnn_recurrent();
  const RecurrentForm form(h, a, lengths);
  std::size_t weight_bytes = 0;
  std::size_t work_bytes = 0;
  std::size_t reserve_bytes = 0;  // cuDNN needs this memory for training only
  need(rnn.weight_bytes(h, form.layer, &weight_bytes), kDnn, "ask for the weights' memory");
  need(rnn.work_bytes(h, form.layer, CUDNN_FWD_MODE_INFERENCE, form.x, &work_bytes, &reserve_bytes),
       kDnn, "ask for memory");
  const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  auto* const lengths_there = static_cast<std::byte*>(
      scratch(owner, aligned(length_bytes) + aligned(weight_bytes) + work_bytes));
  std::byte* const weights = lengths_there + aligned(length_bytes);
  std::byte* const work = weights + aligned(weight_bytes);
  need(cudaMemcpyAsync(lengths_there, lengths.data(), length_bytes, cudaMemcpyHostToDevice, stream),
       "CUDA", "copy lengths");
  copy_weights(h, form, a, weights, weight_bytes, stream);
  need(rnn.forward(h, form.layer, CUDNN_FWD_MODE_INFERENCE,
                   reinterpret_cast<const std::int32_t*>(lengths_there), form.x, a.x, form.y, a.y,
                   form.states, nullptr, nullptr, form.states, nullptr, nullptr, weight_bytes,
                   weights, work_bytes, work, 0, nullptr),
       kDnn, "go over texts");
}

#else

void* cudnn_open() { throw Error("CUDA: this build has no cuDNN, its headers were not found"); }
int cudnn_close(void*) { return 0; }
void cudnn_convolve(void*, const ConvolutionBatch&, void* (*)(void*, std::size_t), void*,
                    cudaStream_t) {
  throw Error("CUDA: this build has no cuDNN");
}
void cudnn_recur(void*, const RecurrentBatch&, void* (*)(void*, std::size_t), void*, cudaStream_t) {
  throw Error("CUDA: this build has no cuDNN");
}

#endif

}  // namespace cudp::cuda

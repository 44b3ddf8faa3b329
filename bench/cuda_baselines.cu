// The toolkit's libraries on work of our kernels: cuDNN's convolutions and recurrent layers,
// cuBLASLt's dense layers, CUB's selection. They sum over a batch and give no example's own
// gradient, so they are no replacement; they say what a kernel without that could reach. The
// libraries are opened when a benchmark needs one. Weights and inputs are zeros: times do not
// depend on them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <benchmark/benchmark.h>

#include "bench/cuda_baselines.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/lazy_libraries.hpp"

#if __has_include(<cudnn.h>)
#define CUDP_BENCH_CUDNN
#include <cudnn.h>
#endif
#if __has_include(<cublasLt.h>)
#define CUDP_BENCH_CUBLASLT
#include <cublasLt.h>
#endif
#if __has_include(<cub/device/device_select.cuh>)
#define CUDP_BENCH_CUB
#include <cub/device/device_select.cuh>

#include <thrust/iterator/counting_iterator.h>
#endif

namespace cudp::bench {
namespace {

using cuda::CudaGpu;
using cuda::LazyLibrary;
using Floats = cuda::Buffer<float>;
using Bytes = cuda::Buffer<std::uint8_t>;

/// Any library's status.
template <class Status>
void need(Status s, const char* what) {
  if (static_cast<int>(s) != 0)
    throw Error(std::string(what) + ": status " + std::to_string(static_cast<int>(s)));
}

Floats zeros(CudaGpu& gpu, std::size_t n) {
  Floats f(gpu, n);
  f.clear();
  cuda::check(cudaDeviceSynchronize(), "clear");  // libraries work on another stream
  return f;
}

/// Rounds of `work` on the default stream; the clock stops when they are done.
void measure(benchmark::State& state, double flops, std::int64_t items,
             const std::function<void()>& work) {
  constexpr int kRounds = 20;
  work();
  cuda::check(cudaDeviceSynchronize(), "the first round");
  for (auto _ : state) {
    for (int i = 0; i < kRounds; ++i) work();
    cuda::check(cudaDeviceSynchronize(), "wait");
  }
  const double rounds = kRounds * static_cast<double>(state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(rounds) * items);
  using benchmark::Counter;
  state.counters["round_seconds"] = Counter(rounds, Counter::kIsRate | Counter::kInvert);
  if (flops > 0) state.counters["GFLOP/s"] = Counter(rounds * flops * 1e-9, Counter::kIsRate);
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  benchmark::RegisterBenchmark(("baseline/" + name).c_str(),
                               [body](benchmark::State& s) {
                                 try {
                                   body(s);
                                 } catch (const std::exception& e) {
                                   s.SkipWithError(e.what());
                                 }
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

#ifdef CUDP_BENCH_CUDNN

struct Cudnn {
  LazyLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR)};
  template <class F>
  F* find(F*, const char* name) const {
    return library.find(name);
  }
};
/// A function of cuDNN, by its own name.
#define CUDP_CUDNN(name) cudnn().find(static_cast<decltype(&name)>(nullptr), #name)

const Cudnn& cudnn() {
  static const Cudnn library;
  return library;
}

/// A handle or descriptor of cuDNN.
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, std::function<void(T)>>;
template <class T, class Create, class Destroy>
Owned<T> own(Create create, Destroy destroy) {
  T made{};
  need(create(&made), "make a descriptor");
  return Owned<T>(made, [destroy](T t) { (void)destroy(t); });
}
Owned<cudnnHandle_t> handle() {
  return own<cudnnHandle_t>(CUDP_CUDNN(cudnnCreate), CUDP_CUDNN(cudnnDestroy));
}
Owned<cudnnTensorDescriptor_t> tensor(int n, int c, int h, int w) {
  auto t = own<cudnnTensorDescriptor_t>(CUDP_CUDNN(cudnnCreateTensorDescriptor),
                                        CUDP_CUDNN(cudnnDestroyTensorDescriptor));
  need(CUDP_CUDNN(cudnnSetTensor4dDescriptor)(t.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h,
                                              w),
       "describe a tensor");
  return t;
}

enum class Pass { forward, input_gradient, weight_gradient };

struct Convolution {
  const char* name;
  int channels, side, columns, kernel, stride, pad, batch;
  int out() const { return (side + 2 * pad - kernel) / stride + 1; }
};

/// By the algorithm that cuDNN thinks the fastest, of those that give the same sums each time.
void convolve(benchmark::State& state, const Convolution& c, Pass pass, bool tf32) {
  CudaGpu gpu;
  const auto h = handle();
  const auto x = tensor(c.batch, c.channels, c.side, c.side);
  const auto y = tensor(c.batch, c.columns, c.out(), c.out());
  const auto w = own<cudnnFilterDescriptor_t>(CUDP_CUDNN(cudnnCreateFilterDescriptor),
                                              CUDP_CUDNN(cudnnDestroyFilterDescriptor));
  need(CUDP_CUDNN(cudnnSetFilter4dDescriptor)(w.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                              c.columns, c.channels, c.kernel, c.kernel),
       "describe the weights");
  const auto conv = own<cudnnConvolutionDescriptor_t>(
      CUDP_CUDNN(cudnnCreateConvolutionDescriptor), CUDP_CUDNN(cudnnDestroyConvolutionDescriptor));
  need(CUDP_CUDNN(cudnnSetConvolution2dDescriptor)(conv.get(), c.pad, c.pad, c.stride, c.stride, 1,
                                                   1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
       "describe the convolution");
  const cudnnMathType_t math = tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  need(CUDP_CUDNN(cudnnSetConvolutionMathType)(conv.get(), math), "choose the precision");
  const auto batch = static_cast<std::size_t>(c.batch);
  const Floats x_data = zeros(gpu, batch * static_cast<std::size_t>(c.channels) *
                                       static_cast<std::size_t>(c.side * c.side));
  const Floats y_data = zeros(gpu, batch * static_cast<std::size_t>(c.columns) *
                                       static_cast<std::size_t>(c.out() * c.out()));
  const Floats w_data =
      zeros(gpu, static_cast<std::size_t>(c.columns * c.channels * c.kernel * c.kernel));
  const float one = 1.0f;
  const float none = 0.0f;
  const double flops =
      2.0 * c.batch * c.columns * c.channels * c.kernel * c.kernel * c.out() * c.out();
  constexpr int kMax = 8;
  int found = 0;
  // The first that gives the same sums each time, and can have its precision.
  const auto best = [&](const auto& results) {
    for (int i = 0; i < found; ++i)
      if (results[static_cast<std::size_t>(i)].status == CUDNN_STATUS_SUCCESS &&
          results[static_cast<std::size_t>(i)].determinism == CUDNN_DETERMINISTIC &&
          results[static_cast<std::size_t>(i)].mathType == math)
        return results[static_cast<std::size_t>(i)];
    throw Error("cuDNN has no algorithm for it");
  };
  if (pass == Pass::forward) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, kMax> results{};
    need(CUDP_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7)(h.get(), x.get(), w.get(), conv.get(),
                                                            y.get(), kMax, &found, results.data()),
         "choose an algorithm");
    const auto a = best(results);
    const Bytes space(gpu, a.memory);
    measure(state, flops, c.batch, [&] {
      need(CUDP_CUDNN(cudnnConvolutionForward)(h.get(), &one, x.get(), x_data.get(), w.get(),
                                               w_data.get(), conv.get(), a.algo, space.get(),
                                               a.memory, &none, y.get(), y_data.get()),
           "convolve");
    });
  } else if (pass == Pass::input_gradient) {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, kMax> results{};
    need(CUDP_CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7)(
             h.get(), w.get(), y.get(), conv.get(), x.get(), kMax, &found, results.data()),
         "choose an algorithm");
    const auto a = best(results);
    const Bytes space(gpu, a.memory);
    measure(state, flops, c.batch, [&] {
      need(CUDP_CUDNN(cudnnConvolutionBackwardData)(h.get(), &one, w.get(), w_data.get(), y.get(),
                                                    y_data.get(), conv.get(), a.algo, space.get(),
                                                    a.memory, &none, x.get(), x_data.get()),
           "input gradient");
    });
  } else {
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kMax> results{};
    need(CUDP_CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7)(
             h.get(), x.get(), y.get(), conv.get(), w.get(), kMax, &found, results.data()),
         "choose an algorithm");
    const auto a = best(results);
    const Bytes space(gpu, a.memory);
    measure(state, flops, c.batch, [&] {
      need(CUDP_CUDNN(cudnnConvolutionBackwardFilter)(h.get(), &one, x.get(), x_data.get(), y.get(),
                                                      y_data.get(), conv.get(), a.algo, space.get(),
                                                      a.memory, &none, w.get(), w_data.get()),
           "weight gradient");
    });
  }
}

struct Layer {
  int inputs, hidden, words, batch;
};

/// An LSTM of one direction over texts of equal length: forward, or forward and both gradients
/// back.
void recur(benchmark::State& state, const Layer& l, bool back) {
  CudaGpu gpu;
  const auto h = handle();
  const auto rnn = own<cudnnRNNDescriptor_t>(CUDP_CUDNN(cudnnCreateRNNDescriptor),
                                             CUDP_CUDNN(cudnnDestroyRNNDescriptor));
  const auto dropout = own<cudnnDropoutDescriptor_t>(CUDP_CUDNN(cudnnCreateDropoutDescriptor),
                                                     CUDP_CUDNN(cudnnDestroyDropoutDescriptor));
  need(CUDP_CUDNN(cudnnSetDropoutDescriptor)(dropout.get(), h.get(), 0.0f, nullptr, 0, 0),
       "describe no dropout");
  need(CUDP_CUDNN(cudnnSetRNNDescriptor_v8)(rnn.get(), CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
                                            CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
                                            CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                            CUDNN_DEFAULT_MATH, l.inputs, l.hidden, l.hidden, 1,
                                            dropout.get(), CUDNN_RNN_PADDED_IO_DISABLED),
       "describe the layer");
  const std::vector<int> lengths(static_cast<std::size_t>(l.batch), l.words);
  float padding = 0.0f;
  const auto sequence = [&](int numbers) {
    auto d = own<cudnnRNNDataDescriptor_t>(CUDP_CUDNN(cudnnCreateRNNDataDescriptor),
                                           CUDP_CUDNN(cudnnDestroyRNNDataDescriptor));
    need(CUDP_CUDNN(cudnnSetRNNDataDescriptor)(d.get(), CUDNN_DATA_FLOAT,
                                               CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, l.words,
                                               l.batch, numbers, lengths.data(), &padding),
         "describe texts");
    return d;
  };
  const auto x = sequence(l.inputs);
  const auto y = sequence(l.hidden);
  const auto states = own<cudnnTensorDescriptor_t>(CUDP_CUDNN(cudnnCreateTensorDescriptor),
                                                   CUDP_CUDNN(cudnnDestroyTensorDescriptor));
  const int dims[3] = {1, l.batch, l.hidden};
  const int strides[3] = {l.batch * l.hidden, l.hidden, 1};
  need(CUDP_CUDNN(cudnnSetTensorNdDescriptor)(states.get(), CUDNN_DATA_FLOAT, 3, dims, strides),
       "describe the states");
  const cudnnForwardMode_t mode = back ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  std::size_t weights = 0;
  std::size_t work = 0;
  std::size_t reserve = 0;
  need(CUDP_CUDNN(cudnnGetRNNWeightSpaceSize)(h.get(), rnn.get(), &weights), "weights");
  need(CUDP_CUDNN(cudnnGetRNNTempSpaceSizes)(h.get(), rnn.get(), mode, x.get(), &work, &reserve),
       "room");
  const auto places = static_cast<std::size_t>(l.batch) * static_cast<std::size_t>(l.words);
  const Floats x_data = zeros(gpu, places * static_cast<std::size_t>(l.inputs));
  const Floats dx_data = zeros(gpu, back ? x_data.size() : 0);
  const Floats y_data = zeros(gpu, places * static_cast<std::size_t>(l.hidden));
  const Floats dy_data = zeros(gpu, back ? y_data.size() : 0);
  const Floats weight = zeros(gpu, weights / sizeof(float));
  const Floats dweight = zeros(gpu, back ? weight.size() : 0);
  const Bytes work_space(gpu, work);
  const Bytes reserve_space(gpu, reserve);
  cuda::Buffer<std::int32_t> device_lengths(gpu, lengths.size());
  device_lengths.upload(std::vector<std::int32_t>(lengths.begin(), lengths.end()));
  const double flops = 2.0 * 4.0 * l.hidden * (l.inputs + l.hidden) * static_cast<double>(places);
  measure(state, (back ? 3.0 : 1.0) * flops, l.batch, [&] {
    need(CUDP_CUDNN(cudnnRNNForward)(h.get(), rnn.get(), mode, device_lengths.get(), x.get(),
                                     x_data.get(), y.get(), y_data.get(), states.get(), nullptr,
                                     nullptr, states.get(), nullptr, nullptr, weights, weight.get(),
                                     work, work_space.get(), reserve, reserve_space.get()),
         "forward");
    if (!back) return;
    need(CUDP_CUDNN(cudnnRNNBackwardData_v8)(h.get(), rnn.get(), device_lengths.get(), y.get(),
                                             y_data.get(), dy_data.get(), x.get(), dx_data.get(),
                                             states.get(), nullptr, nullptr, nullptr, states.get(),
                                             nullptr, nullptr, nullptr, weights, weight.get(), work,
                                             work_space.get(), reserve, reserve_space.get()),
         "input gradient");
    need(CUDP_CUDNN(cudnnRNNBackwardWeights_v8)(
             h.get(), rnn.get(), CUDNN_WGRAD_MODE_ADD, device_lengths.get(), x.get(), x_data.get(),
             states.get(), nullptr, y.get(), y_data.get(), weights, dweight.get(), work,
             work_space.get(), reserve, reserve_space.get()),
         "weight gradient");
  });
}

void register_cudnn() {
  static constexpr Convolution kConvolutions[] = {{"cnn/conv1", 1, 28, 16, 8, 2, 2, 512},
                                                  {"cnn/conv2", 16, 13, 32, 4, 2, 0, 512},
                                                  {"cifar-cnn/conv1", 3, 32, 32, 3, 1, 1, 512},
                                                  {"cifar-cnn/conv2", 32, 32, 32, 3, 1, 1, 512},
                                                  {"cifar-cnn/conv4", 64, 16, 64, 3, 1, 1, 512},
                                                  {"cifar-cnn/conv6", 128, 8, 128, 3, 1, 1, 512}};
  static constexpr struct {
    const char* name;
    Pass pass;
  } kPasses[] = {{"forward", Pass::forward},
                 {"input_gradient", Pass::input_gradient},
                 {"weight_gradient", Pass::weight_gradient}};
  for (const Convolution& c : kConvolutions)
    for (const auto& p : kPasses) {
      if (c.channels < 16 && p.pass == Pass::input_gradient) continue;  // the first layer has none
      for (const bool tf32 : {false, true})
        add(std::string("cudnn/") + c.name + "/" + p.name + (tf32 ? "_tf32" : ""),
            [c, p, tf32](benchmark::State& s) { convolve(s, c, p.pass, tf32); });
    }
  for (const Layer l :
       {Layer{100, 32, 80, 512}, Layer{100, 100, 256, 512}, Layer{256, 256, 80, 512}})
    for (const bool back : {false, true})
      add("cudnn/lstm/H:" + std::to_string(l.hidden) + "/T:" + std::to_string(l.words) +
              (back ? "/forward_back" : "/forward"),
          [l, back](benchmark::State& s) { recur(s, l, back); });
}

#else
void register_cudnn() {}
#endif

#ifdef CUDP_BENCH_CUBLASLT

struct CublasLt {
  LazyLibrary library{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)};
};
#define CUDP_CUBLASLT(name) static_cast<decltype(&name)>(cublaslt().library.find(#name))

const CublasLt& cublaslt() {
  static const CublasLt library;
  return library;
}

/// y = max(x weight' + bias, 0), rows [n, inputs].
void dense(benchmark::State& state, int inputs, int outputs, int n, bool tf32) {
  CudaGpu gpu;
  cublasLtHandle_t h = nullptr;
  need(CUDP_CUBLASLT(cublasLtCreate)(&h), "start");
  const Floats x = zeros(gpu, static_cast<std::size_t>(n) * static_cast<std::size_t>(inputs));
  const Floats y = zeros(gpu, static_cast<std::size_t>(n) * static_cast<std::size_t>(outputs));
  const Floats weight =
      zeros(gpu, static_cast<std::size_t>(outputs) * static_cast<std::size_t>(inputs));
  const Floats bias = zeros(gpu, static_cast<std::size_t>(outputs));
  constexpr std::size_t kSpace = std::size_t{32} << 20;
  const Bytes space(gpu, kSpace);
  cublasLtMatmulDesc_t product = nullptr;
  need(CUDP_CUBLASLT(cublasLtMatmulDescCreate)(
           &product, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
       "describe the product");
  const auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& v) {
    need(CUDP_CUBLASLT(cublasLtMatmulDescSetAttribute)(product, what, &v, sizeof v),
         "describe the product");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.get()));
  const auto matrix = [&](int rows, int columns) {
    cublasLtMatrixLayout_t m = nullptr;
    need(CUDP_CUBLASLT(cublasLtMatrixLayoutCreate)(&m, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                                   static_cast<std::uint64_t>(columns), rows),
         "describe a matrix");
    return m;
  };
  const auto a = matrix(inputs, outputs);
  const auto b = matrix(inputs, n);
  const auto c = matrix(outputs, n);
  cublasLtMatmulPreference_t preference = nullptr;
  need(CUDP_CUBLASLT(cublasLtMatmulPreferenceCreate)(&preference), "prefer");
  need(CUDP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute)(
           preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kSpace, sizeof kSpace),
       "prefer");
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  need(CUDP_CUBLASLT(cublasLtMatmulAlgoGetHeuristic)(h, product, a, b, c, c, preference, 1, &result,
                                                     &found),
       "choose an algorithm");
  if (found == 0) throw Error("cuBLASLt has no algorithm for it");
  const float one = 1.0f;
  const float none = 0.0f;
  measure(state, 2.0 * n * inputs * outputs, n, [&] {
    need(
        CUDP_CUBLASLT(cublasLtMatmul)(h, product, &one, weight.get(), a, x.get(), b, &none, y.get(),
                                      c, y.get(), c, &result.algo, space.get(), kSpace, nullptr),
        "multiply");
  });
  (void)CUDP_CUBLASLT(cublasLtMatmulPreferenceDestroy)(preference);
  for (const auto m : {a, b, c}) (void)CUDP_CUBLASLT(cublasLtMatrixLayoutDestroy)(m);
  (void)CUDP_CUBLASLT(cublasLtMatmulDescDestroy)(product);
  (void)CUDP_CUBLASLT(cublasLtDestroy)(h);
}

void register_cublaslt() {
  for (const bool tf32 : {false, true}) {
    const std::string end = tf32 ? "_tf32" : "";
    add("cublaslt/2048x128" + end, [=](benchmark::State& s) { dense(s, 2048, 128, 512, tf32); });
    add("cublaslt/784x1000" + end, [=](benchmark::State& s) { dense(s, 784, 1000, 512, tf32); });
    add("cublaslt/2000x1000" + end, [=](benchmark::State& s) { dense(s, 2000, 1000, 512, tf32); });
  }
}

#else
void register_cublaslt() {}
#endif

#ifdef CUDP_BENCH_CUB

/// Whether a number is drawn: a hash in place of the generator, as cheap as can be.
struct IsDrawn {
  std::uint32_t below;
  __host__ __device__ bool operator()(std::uint32_t i) const { return i * 2654435761u < below; }
};

void select(benchmark::State& state, std::int64_t n, double rate) {
  CudaGpu gpu;
  cuda::Buffer<std::uint32_t> to(gpu, static_cast<std::size_t>(n));
  cuda::Buffer<std::uint32_t> count(gpu, 1);
  const thrust::counting_iterator<std::uint32_t> numbers(0);
  const IsDrawn drawn{static_cast<std::uint32_t>(rate * 0x1p32)};
  std::size_t bytes = 0;
  need(cub::DeviceSelect::If(nullptr, bytes, numbers, to.get(), count.get(), n, drawn), "room");
  const Bytes space(gpu, bytes);
  measure(state, 0.0, n, [&] {
    need(cub::DeviceSelect::If(space.get(), bytes, numbers, to.get(), count.get(), n, drawn),
         "select");
  });
}

void register_cub() {
  add("cub/select/60000", [](benchmark::State& s) { select(s, 60'000, 512.0 / 60'000); });
  add("cub/select/100000000", [](benchmark::State& s) { select(s, 100'000'000, 1e-3); });
}

#else
void register_cub() {}
#endif

}  // namespace

void register_baselines() {
  register_cudnn();
  register_cublaslt();
  register_cub();
}

}  // namespace cudp::bench

// cuBLAS, cuFFT and CUB for programs whose kernels the interpreter runs: what
// tests/support/simt/emulated_gpu.hpp computes, as work of a stream. Opened as lazy_libraries.hpp
// opens them: these programs are linked with --wrap=dlopen,--wrap=dlsym.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <cublas_v2.h>

#include <cufft.h>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/toolkit.hpp"
#include "tests/support/plain_convolution.hpp"
#include "tests/support/plain_recurrent.hpp"
#include "tests/support/ptx/cuda_runtime.hpp"

namespace {
/// To nearest, ties away from zero, as cvt.rna.tf32.f32 rounds.
float to_tf32(float x) {
  if (!std::isfinite(x)) return x;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
}  // namespace

// In place of runtime/device/cuda/toolkit.cu, which is not linked then: the engine launches the
// kernels that are CUB's twins.
namespace cudp::cuda {
bool has_cub() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::fputs("ptx: CUB's kernels are not interpreted, their twins are\n", stderr);
  });
  return false;
}
std::size_t cub_norm_total_bytes(std::int64_t) { return 0; }
cudaError_t cub_norm_total(const NormTotal&, void*, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

void* cublaslt_open() { return new char; }
int cublaslt_close(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
void cublaslt_dense(void*, const DenseRows& a, void*, std::size_t, cudaStream_t stream, bool run) {
  if (!run) return;
  const auto work = [=](const ptx::StreamWork& w) {
    const auto inputs = static_cast<std::size_t>(a.inputs);
    const auto outputs = static_cast<std::size_t>(a.outputs);
    const auto rows = static_cast<std::size_t>(a.rows);
    const bool tf32 = a.precision == Precision::tf32;
    const float* const x = w.reads(a.x, rows * inputs, "a dense layer's input");
    const float* const weight = w.reads(a.weight, outputs * inputs, "a dense layer's weight");
    const float* const bias = w.reads(a.bias, outputs, "a dense layer's bias");
    float* const y = w.writes(a.y, rows * outputs, "a dense layer's output");
    for (std::size_t e = 0; e < rows; ++e)
      for (std::size_t j = 0; j < outputs; ++j) {
        float sum = 0.0f;
        for (std::size_t i = 0; i < inputs; ++i) {
          const float a_i = x[e * inputs + i];
          const float b_i = weight[j * inputs + i];
          sum += tf32 ? to_tf32(a_i) * to_tf32(b_i) : a_i * b_i;
        }
        sum += bias[j];
        y[e * outputs + j] = a.relu && sum < 0.0f ? 0.0f : sum;
      }
  };
  if (ptx::enqueue(stream, work) != cudaSuccess) throw Error("cuBLASLt: multiply: the twin failed");
}

void* cudnn_open() { return new char; }
int cudnn_close(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}
void cudnn_convolve(void*, const ConvolutionBatch& a, void* (*)(void*, std::size_t), void*,
                    cudaStream_t stream) {
  const auto work = [=](const ptx::StreamWork& w) {
    const auto examples = static_cast<std::size_t>(a.examples);
    ConvolutionBatch of = a;
    of.x = w.reads(a.x, examples * static_cast<std::size_t>(a.channels * a.height * a.width),
                   "a convolution's input");
    of.weight =
        w.reads(a.weight, static_cast<std::size_t>(a.columns * a.channels * a.kernel * a.kernel),
                "a convolution's weight");
    of.y = w.writes(a.y,
                    examples * static_cast<std::size_t>(a.columns * a.out_height() * a.out_width()),
                    "a convolution's output");
    convolve_plainly(of, a.precision == Precision::tf32);
  };
  if (ptx::enqueue(stream, work) != cudaSuccess) throw Error("cuDNN: convolve: the twin failed");
}
void cudnn_recur(void*, const RecurrentBatch& a, void* (*)(void*, std::size_t), void*,
                 cudaStream_t stream) {
  const auto work = [=](const ptx::StreamWork& w) {
    const auto places = static_cast<std::size_t>(a.examples) * static_cast<std::size_t>(a.places);
    const auto hidden = static_cast<std::size_t>(a.hidden);
    const std::size_t rows = static_cast<std::size_t>(a.gates()) * hidden;
    RecurrentBatch of = a;
    of.x = w.reads(a.x, places * static_cast<std::size_t>(a.inputs), "a recurrent layer's input");
    of.length = w.reads(a.length, static_cast<std::size_t>(a.examples), "texts' lengths");
    for (DirectionWeights* d : {&of.forth, &of.reverse}) {
      if (d->inputs == nullptr) continue;
      d->inputs =
          w.reads(d->inputs, rows * static_cast<std::size_t>(a.inputs), "weights of inputs");
      d->states = w.reads(d->states, rows * hidden, "weights of states");
      d->bias = w.reads(d->bias, rows, "a recurrent layer's bias");
      if (d->state_bias != nullptr) d->state_bias = w.reads(d->state_bias, rows, "states' bias");
    }
    of.y = w.writes(a.y, places * static_cast<std::size_t>(a.directions) * hidden,
                    "a recurrent layer's states");
    recur_plainly(of, a.precision == Precision::tf32);
  };
  if (ptx::enqueue(stream, work) != cudaSuccess) throw Error("cuDNN: recur: the twin failed");
}
}  // namespace cudp::cuda

namespace {

using cudp::ptx::StreamWork;

struct Blas {
  cudaStream_t stream = nullptr;
  bool is_tf32 = false;
};
Blas* blas(cublasHandle_t h) { return reinterpret_cast<Blas*>(h); }

/// A column-major matrix, or its transpose, whose columns were looked up one by one.
class Matrix {
 public:
  Matrix(const StreamWork& work, const float* data, int rows, int columns, int ld, bool transposed,
         bool is_tf32, const char* name)
      : rows_(transposed ? columns : rows), values_(static_cast<std::size_t>(rows) * columns) {
    for (int j = 0; j < columns; ++j) {
      const float* const column =
          work.reads(data + std::ptrdiff_t{j} * ld, static_cast<std::size_t>(rows), name);
      for (int i = 0; i < rows; ++i)
        values_[transposed ? j + static_cast<std::size_t>(i) * rows_
                           : i + static_cast<std::size_t>(j) * rows_] =
            is_tf32 ? to_tf32(column[i]) : column[i];
    }
  }
  float at(int i, int j) const { return values_[i + static_cast<std::size_t>(j) * rows_]; }

 private:
  std::size_t rows_;
  std::vector<float> values_;
};

struct Fourier {
  cudaStream_t stream = nullptr;
  int rows = 0, columns = 0, images = 0;
};
std::map<cufftHandle, Fourier>& plans() {
  static auto* const plans = new std::map<cufftHandle, Fourier>;
  return *plans;
}

/// n numbers `step` apart, by the definition.
void transform(std::complex<float>* line, int n, int step,
               const std::vector<std::complex<double>>& roots) {
  std::vector<std::complex<double>> from;
  for (int j = 0; j < n; ++j) from.emplace_back(line[std::ptrdiff_t{j} * step]);
  for (int k = 0; k < n; ++k) {
    std::complex<double> sum = 0.0;
    for (int j = 0; j < n; ++j)
      sum += from[static_cast<std::size_t>(j)] * roots[static_cast<std::size_t>(j) * k % n];
    line[std::ptrdiff_t{k} * step] = std::complex<float>(sum);
  }
}
std::vector<std::complex<double>> roots_of_one(int n, int direction) {
  std::vector<std::complex<double>> roots;
  for (int j = 0; j < n; ++j)
    roots.push_back(std::polar(1.0, direction * 2.0 * 3.14159265358979323846 * j / n));
  return roots;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* h) {
  *h = reinterpret_cast<cublasHandle_t>(new Blas);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
  delete blas(h);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream) {
  blas(h)->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode) {
  if (mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_TF32_TENSOR_OP_MATH)
    return CUBLAS_STATUS_INVALID_VALUE;
  blas(h)->is_tf32 = mode == CUBLAS_TF32_TENSOR_OP_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType, int* value) {
  *value = 0;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS         ? "success"
         : s == CUBLAS_STATUS_INVALID_VALUE ? "an argument is not valid"
                                            : "execution failed";
}
cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  const bool ta = op_a == CUBLAS_OP_T;
  const bool tb = op_b == CUBLAS_OP_T;
  if (m < 0 || n < 0 || k < 0 || lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) ||
      ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto work = [=, is_tf32 = blas(h)->is_tf32, alpha = *alpha,
                     beta = *beta](const StreamWork& w) {
    const Matrix left(w, a, ta ? k : m, ta ? m : k, lda, ta, is_tf32, "sgemm's left factor");
    const Matrix right(w, b, tb ? n : k, tb ? k : n, ldb, tb, is_tf32, "sgemm's right factor");
    std::vector<float> sums(static_cast<std::size_t>(m));
    for (int j = 0; j < n; ++j) {  // each sum term after term, as the emulator has it
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int l = 0; l < k; ++l) {
        const float factor = right.at(l, j);
        for (int i = 0; i < m; ++i) sums[static_cast<std::size_t>(i)] += left.at(i, l) * factor;
      }
      float* const to = c + std::ptrdiff_t{j} * ldc;
      if (beta != 0.0f) {
        const float* const old = w.reads(to, sums.size(), "sgemm's sum");
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = alpha * sums[i] + beta * old[i];
      } else {
        for (float& s : sums) s *= alpha;
      }
      std::memcpy(w.writes(to, sums.size(), "sgemm's product"), sums.data(),
                  sums.size() * sizeof(float));
    }
  };
  return cudp::ptx::enqueue(blas(h)->stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                  : CUBLAS_STATUS_EXECUTION_FAILED;
}

cufftResult cufftGetProperty(libraryPropertyType, int* value) {
  *value = 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftCreate(cufftHandle* h) {
  static cufftHandle next = 0;  // the first is 0, which is a plan as good as any
  *h = next++;
  plans()[*h] = {};
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle h) {
  return plans().erase(h) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftMakePlanMany(cufftHandle h, int rank, int* n, int* embedded, int stride,
                              int distance, int* out_embedded, int, int out_distance,
                              cufftType type, int images, std::size_t* workspace) {
  const auto at = plans().find(h);
  if (at == plans().end()) return CUFFT_INVALID_PLAN;
  if (rank != 2 || embedded != nullptr || out_embedded != nullptr || stride != 1 ||
      distance != n[0] * n[1] || out_distance != distance || type != CUFFT_C2C || images < 1)
    return CUFFT_INVALID_VALUE;
  at->second.rows = n[0];
  at->second.columns = n[1];
  at->second.images = images;
  *workspace = 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle h, cudaStream_t stream) {
  const auto at = plans().find(h);
  if (at == plans().end()) return CUFFT_INVALID_PLAN;
  at->second.stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftExecC2C(cufftHandle h, cufftComplex* from, cufftComplex* to, int direction) {
  const auto at = plans().find(h);
  if (at == plans().end() || at->second.images == 0) return CUFFT_INVALID_PLAN;
  if (from != to) return CUFFT_INVALID_VALUE;
  const auto work = [=, p = at->second](const StreamWork& w) {
    const auto size = static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.columns);
    const auto along = roots_of_one(p.columns, direction);
    const auto down = roots_of_one(p.rows, direction);
    w.reads(from, size * static_cast<std::size_t>(p.images), "a Fourier transform's input");
    auto* z = reinterpret_cast<std::complex<float>*>(
        w.writes(to, size * static_cast<std::size_t>(p.images), "a Fourier transform's output"));
    for (int i = 0; i < p.images; ++i, z += size) {
      for (int y = 0; y < p.rows; ++y)
        transform(z + std::ptrdiff_t{y} * p.columns, p.columns, 1, along);
      for (int x = 0; x < p.columns; ++x) transform(z + x, p.rows, p.columns, down);
    }
  };
  return cudp::ptx::enqueue(at->second.stream, work) == cudaSuccess ? CUFFT_SUCCESS
                                                                    : CUFFT_EXEC_FAILED;
}

// --- How they are opened ---

void* __real_dlopen(const char* name, int flags);
void* __real_dlsym(void* handle, const char* symbol);

namespace {

struct Twin {
  std::string_view name;
  void* function;
};
const Twin kTwins[] = {
    {"cublasCreate_v2", reinterpret_cast<void*>(cublasCreate_v2)},
    {"cublasDestroy_v2", reinterpret_cast<void*>(cublasDestroy_v2)},
    {"cublasSetStream_v2", reinterpret_cast<void*>(cublasSetStream_v2)},
    {"cublasSetWorkspace_v2", reinterpret_cast<void*>(cublasSetWorkspace_v2)},
    {"cublasSetMathMode", reinterpret_cast<void*>(cublasSetMathMode)},
    {"cublasSgemm_v2", reinterpret_cast<void*>(cublasSgemm_v2)},
    {"cublasGetProperty", reinterpret_cast<void*>(cublasGetProperty)},
    {"cublasGetStatusString", reinterpret_cast<void*>(cublasGetStatusString)},
    {"cufftGetProperty", reinterpret_cast<void*>(cufftGetProperty)},
    {"cufftCreate", reinterpret_cast<void*>(cufftCreate)},
    {"cufftDestroy", reinterpret_cast<void*>(cufftDestroy)},
    {"cufftMakePlanMany", reinterpret_cast<void*>(cufftMakePlanMany)},
    {"cufftSetStream", reinterpret_cast<void*>(cufftSetStream)},
    {"cufftExecC2C", reinterpret_cast<void*>(cufftExecC2C)},
};
char kHandle = 0;

}  // namespace

void* __wrap_dlopen(const char* name, int flags) {
  const std::string_view n = name != nullptr ? name : "";
  if (n.starts_with("libcublas.so") || n.starts_with("libcufft.so")) return &kHandle;
  return __real_dlopen(name, flags);
}
void* __wrap_dlsym(void* handle, const char* symbol) {
  if (handle != &kHandle) return __real_dlsym(handle, symbol);
  for (const Twin& t : kTwins)
    if (t.name == symbol) return t.function;
  return nullptr;
}

}  // extern "C"

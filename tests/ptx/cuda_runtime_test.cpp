// The CUDA runtime over the interpreter: kernels of hand-written modules, by both ways to launch;
// what streams, events and graphs order; errors as a device has them.
#include "tests/support/ptx/cuda_runtime.hpp"

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <cublas_v2.h>

#include <dlfcn.h>
#include <fatbinary_section.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/lazy_libraries.hpp"
#include "tests/ptx/fat_binaries.hpp"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFunction(void** module, const char* stub, char*, const char* name, int, void*,
                            void*, void*, void*, int*);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream);
}

namespace cudp::ptx {
namespace {

/// Thread t of 32 writes `value` + `by` to p[t].
std::string fill_text(int by) {
  return R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 fill_param_0, .param .u32 fill_param_1)
.maxntid 32, 1, 1
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [fill_param_0];
  ld.param.u32 %r1, [fill_param_1];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  add.s32 %r3, %r1, )" +
         std::to_string(by) + R"(;
  st.global.u32 [%rd4], %r3;
  ret;
}
)";
}

/// Shared memory: 16 bytes of its own, and as many as the launch has.
constexpr const char* kSharedText = R"(.version 9.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry shared()
{
  .reg .b32 %r<3>;
  .shared .align 16 .b8 own[16];
  mov.u32 %r1, dynamic;
  mov.u32 %r2, 7;
  st.shared.u32 [%r1], %r2;
  ret;
}
)";

/// Registers modules as an object does when it is loaded; they stay as long as the process.
struct Registered {
  static void module(const std::string& text,
                     const std::vector<std::pair<const void*, const char*>>& kernels) {
    auto* const bytes = new std::vector<std::uint8_t>(fat_binary({{text, 80, Packing::zstd}}));
    auto* const wrapper = new __fatBinC_Wrapper_t{
        FATBINC_MAGIC, 1, reinterpret_cast<const unsigned long long*>(bytes->data()), nullptr};
    void** const handle = __cudaRegisterFatBinary(wrapper);
    for (const auto& [stub, name] : kernels)
      __cudaRegisterFunction(handle, static_cast<const char*>(stub), nullptr, name, -1, nullptr,
                             nullptr, nullptr, nullptr, nullptr);
  }
};

char fill_stub, fill_twice_stub, late_stub, shared_stub;

class PtxRuntime : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Registered::module(fill_text(0), {{&fill_stub, "fill"}});
    Registered::module(fill_text(7), {{&late_stub, "fill"}});
    load(&fill_stub);
    Registered::module(fill_text(100), {{&fill_twice_stub, "fill"}});
    Registered::module(fill_text(200), {{&fill_twice_stub, "fill"}});
    Registered::module(kSharedText, {{&shared_stub, "shared"}});
  }

  /// Tests of other suites run in this process, too, and ask for the last error.
  void TearDown() override { (void)cudaGetLastError(); }

  static cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t s = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
    return s;
  }
  static void load(const void* stub) {
    cudaFuncAttributes loaded{};
    EXPECT_EQ(cudaFuncGetAttributes(&loaded, stub), cudaSuccess);
  }
  static int* memory() {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, 32 * sizeof(int)), cudaSuccess);
    return static_cast<int*>(p);
  }
  static cudaError_t fill(int* p, int value, cudaStream_t s, const void* stub = &fill_stub,
                          unsigned threads = 32) {
    void* arguments[] = {&p, &value};
    return cudaLaunchKernel(stub, 1, threads, arguments, 0, s);
  }
  static std::vector<int> content(const int* p, cudaStream_t s) {
    std::vector<int> v(32);
    EXPECT_EQ(cudaMemcpyAsync(v.data(), p, 32 * sizeof(int), cudaMemcpyDeviceToHost, s),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
    return v;
  }
  static std::vector<int> all(int value) { return std::vector<int>(32, value); }

  /// In a process of its own, which ends with the exit code of a fault, and says this.
  static void expect_fault(const std::function<void()>& work, const char* message) {
    EXPECT_EXIT(
        {
          work();
          std::exit(0);
        },
        testing::ExitedWithCode(kPtxFault), message);
  }
  static void expect_none(const std::function<void()>& work) {
    EXPECT_EXIT(
        {
          work();
          std::exit(0);
        },
        testing::ExitedWithCode(0), " 0 faults, 0 notes");
  }
};

TEST_F(PtxRuntime, LaunchesInBothWays) {
  const cudaStream_t s = stream();
  int* p = memory();
  ASSERT_EQ(fill(p, 3, s), cudaSuccess);
  EXPECT_EQ(content(p, s), all(3));
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, &fill_stub), cudaSuccess);
  int value = 4;
  void* arguments[] = {&p, &value};
  ASSERT_EQ(__cudaLaunchKernel(kernel, 1, 32, arguments, 0, s), cudaSuccess);
  EXPECT_EQ(content(p, s), all(4));
  EXPECT_EQ(cudaLaunchKernel(&value, 1, 32, arguments, 0, s), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
}

/// Two modules have the kernel under one stub: two streams run one copy each.
TEST_F(PtxRuntime, StreamsTakeTurnsAmongModules) {
  int found = 0;
  for (int i = 0; i < 2; ++i) {
    const cudaStream_t s = stream();
    int* const p = memory();
    for (int again = 0; again < 2; ++again) ASSERT_EQ(fill(p, 1, s, &fill_twice_stub), cudaSuccess);
    found += content(p, s).front();
  }
  EXPECT_EQ(found, 101 + 201);
}

TEST_F(PtxRuntime, RefusesLaunchesThatNoDeviceTakes) {
  const cudaStream_t s = stream();
  int* const p = memory();
  EXPECT_EQ(fill(p, 1, s, &fill_stub, 64), cudaErrorInvalidValue) << ".maxntid";
  EXPECT_EQ(fill(p, 1, s, &fill_stub, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(fill(p, 1, s, &fill_stub, 2048), cudaErrorInvalidConfiguration);
  (void)cudaGetLastError();

  cudaFuncAttributes a{};
  ASSERT_EQ(cudaFuncGetAttributes(&a, &shared_stub), cudaSuccess);
  EXPECT_EQ(a.sharedSizeBytes, 16u);
  const auto launch = [&](std::size_t shared) {
    return cudaLaunchKernel(&shared_stub, 1, 1, nullptr, shared, s);
  };
  int most = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), cudaSuccess);
  EXPECT_EQ(launch(48 * 1024 - 16), cudaSuccess);
  EXPECT_EQ(launch(48 * 1024), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(&shared_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
            cudaErrorInvalidValue)
      << "16 bytes are its own";
  ASSERT_EQ(
      cudaFuncSetAttribute(&shared_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, most - 16),
      cudaSuccess);
  EXPECT_EQ(launch(static_cast<std::size_t>(most) - 16), cudaSuccess);
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &shared_stub, 32,
                                                          static_cast<std::size_t>(most) - 16),
            cudaSuccess);
  EXPECT_EQ(blocks, 1);
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill_stub, 1024, 0),
            cudaSuccess);
  EXPECT_EQ(blocks, 0) << "it is compiled for 32 threads at most";
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
}

TEST_F(PtxRuntime, ChecksWhereCopiesGo) {
  const cudaStream_t s = stream();
  int* const p = memory();
  std::vector<int> host = all(5);
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, 32 * sizeof(int), kind, s);
  };
  EXPECT_EQ(copy(p, host.data(), cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(copy(host.data(), p, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(p, host.data(), cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host.data(), 0, 4, s), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  int* const q = memory();
  EXPECT_EQ(copy(q, p, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(content(q, s), all(5));
  expect_fault([&] { copy(host.data(), memory(), cudaMemcpyDeviceToHost); }, "nobody wrote");
  expect_fault([&] { cudaMemsetAsync(memory() + 1, 0, 32 * sizeof(int), s); },
               "outside of device memory");
}

/// Whatever comes after a fault fails, and the process too, even if it means to end well.
TEST_F(PtxRuntime, AFaultIsTheEndOfTheDevice) {
  const cudaStream_t s = stream();
  std::vector<int> host(32);
  expect_fault(
      [&] {
        int* const p = memory();
        if (fill(host.data(), 1, s) != cudaSuccess) std::exit(1);  // told later, as on a device
        if (cudaStreamSynchronize(s) != cudaErrorLaunchFailure) std::exit(2);
        if (cudaFree(p) != cudaErrorLaunchFailure) std::exit(3);
        if (cudaMemsetAsync(p, 0, 4, s) != cudaErrorLaunchFailure) std::exit(4);
        if (cudaGetLastError() != cudaErrorLaunchFailure) std::exit(5);
      },
      "FAULT: access outside of device memory(.|\n)*fill(.|\n)* 1 faults");
}

TEST_F(PtxRuntime, StreamsAreOrderedByEventsAndTheHostAlone) {
  int* const p = memory();
  const cudaStream_t a = stream();
  const cudaStream_t b = stream();
  expect_fault(
      [&] {
        fill(p, 1, a);
        fill(p, 2, b);
      },
      "race");
  expect_fault(
      [&] {
        fill(p, 1, a);
        cudaMemsetAsync(p, 0, 4, b);
      },
      "race");
  expect_none([&] {
    fill(p, 1, a);
    cudaStreamSynchronize(a);
    fill(p, 2, b);
  });
  cudaEvent_t e = nullptr;
  ASSERT_EQ(cudaEventCreate(&e), cudaSuccess);
  expect_none([&] {
    fill(p, 1, a);
    cudaEventRecord(e, a);
    cudaStreamWaitEvent(b, e, 0);
    fill(p, 2, b);
  });
  expect_fault(
      [&] {
        cudaEventRecord(e, a);
        fill(p, 1, a);  // after the event
        cudaStreamWaitEvent(b, e, 0);
        fill(p, 2, b);
      },
      "race");
  // The default stream waits for blocking streams, and they for it; for others it does not.
  const cudaStream_t blocking = stream(cudaStreamDefault);
  expect_none([&] {
    fill(p, 1, blocking);
    fill(p, 2, nullptr);
    fill(p, 3, blocking);
  });
  expect_fault(
      [&] {
        fill(p, 1, a);
        fill(p, 2, nullptr);
      },
      "race");
}

TEST_F(PtxRuntime, RecordsGraphs) {
  int* const p = memory();
  int* const q = memory();
  const cudaStream_t a = stream();
  const cudaStream_t b = stream();
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(p, 0, 32 * sizeof(int), a), cudaSuccess);
  const auto record = [&](int* second, bool joins) {
    EXPECT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(fill(p, 1, a), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(fork, a), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(b, fork, 0), cudaSuccess);
    EXPECT_EQ(fill(second, 2, b), cudaSuccess);
    EXPECT_EQ(fill(p, 3, a), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(join, b), cudaSuccess);
    EXPECT_EQ(joins ? cudaStreamWaitEvent(a, join, 0) : cudaSuccess, cudaSuccess);
    cudaGraph_t g = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(a, &g), joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    return g;
  };
  EXPECT_EQ(record(q, false), nullptr);
  (void)cudaGetLastError();
  const cudaGraph_t g = record(q, true);
  EXPECT_EQ(content(p, a), all(0)) << "nothing has run yet";
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(g), cudaSuccess);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, a), cudaSuccess);
  EXPECT_EQ(content(p, a), all(3));
  EXPECT_EQ(content(q, a), all(2));
  ASSERT_EQ(fill(q, 7, a), cudaSuccess) << "the stream goes on after all of the graph";
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);

  // Branches that write the same memory.
  expect_fault(
      [&] {
        const cudaGraph_t bad = record(p, true);
        cudaGraphExec_t e = nullptr;
        cudaGraphInstantiate(&e, bad, 0);
        cudaGraphLaunch(e, a);
      },
      "race");
}

/// As drivers before CUDA 12.3 do.
TEST_F(PtxRuntime, RefusesToLoadAKernelWhileItRecords) {
  const cudaStream_t s = stream();
  int* const p = memory();
  const auto record = [&] {
    EXPECT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const cudaError_t launched = fill(p, 1, s, &late_stub);
    cudaGraph_t g = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(s, &g),
              launched == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
    if (g != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(g), cudaSuccess);
    }
    return launched;
  };
  EXPECT_EQ(record(), cudaErrorStreamCaptureUnsupported);
  load(&late_stub);
  EXPECT_EQ(record(), cudaSuccess);
}

TEST_F(PtxRuntime, RefusesToWaitWhileItRecords) {
  const cudaStream_t s = stream();
  int* const p = memory();
  const std::function<cudaError_t()> calls[] = {
      [&] { return cudaStreamSynchronize(s); },
      [&] { return cudaStreamQuery(s); },
      [&] {
        void* q = nullptr;
        return cudaMalloc(&q, 4);
      },
      [&] { return cudaFree(p); },
      [&] {
        int host[32];
        return cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, s);
      },
  };
  for (const auto& call : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t g = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(g, nullptr);
  }
  (void)cudaGetLastError();
  EXPECT_EQ(cudaStreamSynchronize(s), cudaSuccess);
}

/// sgemm and the Fourier transform are work of a stream as kernels are.
TEST_F(PtxRuntime, LibrariesHaveTwins) {
  const cudaStream_t s = stream();
  cublasHandle_t h = nullptr;
  ASSERT_EQ(cuda::cublas().create(&h), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cuda::cublas().set_stream(h, s), CUBLAS_STATUS_SUCCESS);
  const auto device = [&](const std::vector<float>& v) {
    auto* const p = reinterpret_cast<float*>(memory());
    EXPECT_EQ(cudaMemcpyAsync(p, v.data(), v.size() * 4, cudaMemcpyHostToDevice, s), cudaSuccess);
    return p;
  };
  const auto host = [&](const float* p, std::size_t n) {
    std::vector<float> v(n);
    EXPECT_EQ(cudaMemcpyAsync(v.data(), p, n * 4, cudaMemcpyDeviceToHost, s), cudaSuccess);
    return v;
  };
  // [1 2; 3 4] times [5; 6], columns apart, and its transpose.
  const float* const a = device({1, 3, -1, 2, 4});
  const float* const b = device({5, 6});
  float* const c = device({10, 20});
  const float one = 1;
  const float none = 0;
  const auto multiply = [&](cublasOperation_t op, const float& beta) {
    return cuda::cublas().sgemm(h, op, CUBLAS_OP_N, 2, 1, 2, &one, a, 3, b, 2, &beta, c, 2);
  };
  ASSERT_EQ(multiply(CUBLAS_OP_N, none), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(host(c, 2), (std::vector<float>{17, 39}));
  ASSERT_EQ(multiply(CUBLAS_OP_T, one), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(host(c, 2), (std::vector<float>{17 + 23, 39 + 34}));
  EXPECT_EQ(
      cuda::cublas().sgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 2, &one, a, 1, b, 2, &none, c, 2),
      CUBLAS_STATUS_INVALID_VALUE);

  // In TF32: 1 + 2^-11 is a tie, which goes away from zero.
  ASSERT_EQ(cuda::cublas().set_math_mode(h, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  const float* const tie = device({1 + 0x1p-11f, 1 + 0x1p-12f});
  ASSERT_EQ(cuda::cublas().sgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, tie, 2, device({1}), 1,
                                 &none, c, 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(host(c, 2), (std::vector<float>{1 + 0x1p-10f, 1}));
  expect_fault(
      [&] {
        multiply(CUBLAS_OP_N, none);
        cudaMemsetAsync(c, 0, 8, stream());
      },
      "race");
  EXPECT_EQ(cuda::destroy_cublas(h), CUBLAS_STATUS_SUCCESS);

  cufftHandle plan = 0;
  ASSERT_EQ(cuda::cufft().create(&plan), CUFFT_SUCCESS);
  int size[] = {2, 3};
  std::size_t workspace = 1;
  ASSERT_EQ(cuda::cufft().make_plan(plan, 2, size, nullptr, 1, 6, nullptr, 1, 6, CUFFT_C2C, 1,
                                    &workspace),
            CUFFT_SUCCESS);
  ASSERT_EQ(cuda::cufft().set_stream(plan, s), CUFFT_SUCCESS);
  std::vector<float> z(12);
  z[2] = 6;  // one at (0, 1): its transform has the roots of one along every row
  auto* const images = reinterpret_cast<cufftComplex*>(device(z));
  ASSERT_EQ(cuda::cufft().transform(plan, images, images, CUFFT_FORWARD), CUFFT_SUCCESS);
  const auto there = host(&images->x, 12);
  EXPECT_NEAR(there[8], -3, 1e-6);
  EXPECT_NEAR(there[9], -6 * std::sqrt(0.75), 1e-6);
  ASSERT_EQ(cuda::cufft().transform(plan, images, images, CUFFT_INVERSE), CUFFT_SUCCESS);
  const auto back = host(&images->x, 12);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(back[i], 6 * z[i], 1e-5) << i;
  EXPECT_EQ(cuda::cufft().destroy(plan), CUFFT_SUCCESS);
  EXPECT_EQ(dlopen("libno-such-library.so.1", RTLD_NOW), nullptr);
}

}  // namespace
}  // namespace cudp::ptx

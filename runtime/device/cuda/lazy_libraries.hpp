#pragma once
// Functions of cuBLAS and cuFFT. The libraries are loaded when they are first needed, because
// loading takes 60 ms or more. Commands that use no device do not need them, and most models train
// without them.
#include <string>

#include <cublas_v2.h>

#include <cufft.h>

#include "runtime/device/cuda/lazy_library.hpp"

namespace cudp::cuda {

struct Cublas {
  LazyLibrary library{"libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)};
  decltype(&cublasCreate_v2) create = library.find("cublasCreate_v2");
  decltype(&cublasDestroy_v2) destroy = library.find("cublasDestroy_v2");
  decltype(&cublasSetStream_v2) set_stream = library.find("cublasSetStream_v2");
  decltype(&cublasSetWorkspace_v2) set_workspace = library.find("cublasSetWorkspace_v2");
  decltype(&cublasSetMathMode) set_math_mode = library.find("cublasSetMathMode");
  decltype(&cublasSgemm_v2) sgemm = library.find("cublasSgemm_v2");
  decltype(&cublasGetStatusString) status = library.find("cublasGetStatusString");
  decltype(&cublasGetProperty) property = library.find("cublasGetProperty");
};

struct Cufft {
  LazyLibrary library{"libcufft.so." + std::to_string(CUFFT_VER_MAJOR)};
  decltype(&cufftCreate) create = library.find("cufftCreate");
  decltype(&cufftDestroy) destroy = library.find("cufftDestroy");
  decltype(&cufftMakePlanMany) make_plan = library.find("cufftMakePlanMany");
  decltype(&cufftSetStream) set_stream = library.find("cufftSetStream");
  decltype(&cufftExecC2C) transform = library.find("cufftExecC2C");
  decltype(&cufftGetProperty) property = library.find("cufftGetProperty");
};

/// Returns the functions of cuBLAS. Throws Error if the library is not installed.
inline const Cublas& cublas() {
  static const Cublas functions;
  return functions;
}
inline const Cufft& cufft() {
  static const Cufft functions;
  return functions;
}

inline cublasStatus_t destroy_cublas(cublasHandle_t h) { return cublas().destroy(h); }

}  // namespace cudp::cuda

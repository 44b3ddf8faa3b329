#pragma once
// cuBLAS and cuFFT, opened when they are first needed: loading them costs 60 ms and more, which a
// command that asks nothing of a device should not pay, and a device can train most models
// without them.
#include <string>

#include <cublas_v2.h>

#include <cufft.h>
#include <dlfcn.h>

#include "runtime/error.hpp"

namespace cudp::cuda {

/// A shared library that stays open until the process ends.
class LateLibrary {
 public:
  /// Throws Error where the dynamic loader does not find `name`.
  explicit LateLibrary(const std::string& name)
      : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw Error("CUDA: open " + name + ": " + dlerror());
  }
  /// Sets `function` to the library's function of that name.
  template <class F>
  void find(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(dlsym(handle_, symbol));
    if (function == nullptr) throw Error("CUDA: " + name_ + " has no function " + symbol);
  }

 private:
  std::string name_;
  void* handle_;
};

struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;
  decltype(&cublasGetStatusString) status = nullptr;

  Cublas() {
    const LateLibrary library("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
    library.find(create, "cublasCreate_v2");
    library.find(destroy, "cublasDestroy_v2");
    library.find(set_stream, "cublasSetStream_v2");
    library.find(set_workspace, "cublasSetWorkspace_v2");
    library.find(sgemm, "cublasSgemm_v2");
    library.find(status, "cublasGetStatusString");
  }
};

struct Cufft {
  decltype(&cufftCreate) create = nullptr;
  decltype(&cufftDestroy) destroy = nullptr;
  decltype(&cufftMakePlanMany) make_plan = nullptr;
  decltype(&cufftSetStream) set_stream = nullptr;
  decltype(&cufftExecC2C) transform = nullptr;

  Cufft() {
    const LateLibrary library("libcufft.so." + std::to_string(CUFFT_VER_MAJOR));
    library.find(create, "cufftCreate");
    library.find(destroy, "cufftDestroy");
    library.find(make_plan, "cufftMakePlanMany");
    library.find(set_stream, "cufftSetStream");
    library.find(transform, "cufftExecC2C");
  }
};

/// Throws Error where the library is not installed.
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

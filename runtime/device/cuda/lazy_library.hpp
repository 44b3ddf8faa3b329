#pragma once
#include <string>

#include <dlfcn.h>

#include "runtime/base/error.hpp"

namespace cudp::cuda {

/// A shared library that stays open until the process ends.
class LazyLibrary {
 public:
  /// Address of a function of the library. It converts to the function pointer type that it is
  /// assigned to.
  struct Function {
    void* address;
    template <class F>
    operator F*() const {
      return reinterpret_cast<F*>(address);
    }
  };

  /// Throws Error if the dynamic loader does not find `name`.
  explicit LazyLibrary(const std::string& name)
      : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw Error("CUDA: open " + name + ": " + dlerror());
  }
  Function find(const char* symbol) const {
    const Function f{dlsym(handle_, symbol)};
    if (f.address == nullptr) throw Error("CUDA: " + name_ + " has no function " + symbol);
    return f;
  }

 private:
  std::string name_;
  void* handle_;
};

}  // namespace cudp::cuda

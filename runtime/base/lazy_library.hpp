#pragma once
#include <string>

#include <dlfcn.h>

#include "runtime/base/error.hpp"

namespace cudp {

/// A shared library that is opened when it is first needed, and stays open until the process ends.
class LazyLibrary {
 public:
  /// Address of a function or an object in the library. It converts to the pointer type that it is
  /// assigned to.
  struct Symbol {
    void* address;
    template <class T>
    operator T*() const {
      return reinterpret_cast<T*>(address);
    }
  };

  /// Opens the library. Throws Error if the dynamic loader does not find it. of: first word of
  /// error messages, such as "CUDA". name: file name of the library. scope: flag for dlopen();
  /// RTLD_GLOBAL if the library itself opens other libraries that use its symbols.
  LazyLibrary(std::string of, std::string name, int scope = RTLD_LOCAL)
      : of_(std::move(of)),
        name_(std::move(name)),
        handle_(dlopen(name_.c_str(), RTLD_NOW | scope)) {
    if (handle_ == nullptr) throw Error(of_ + ": open " + name_ + ": " + dlerror());
  }

  bool has(const char* symbol) const { return dlsym(handle_, symbol) != nullptr; }

  /// Returns the address of the function or object with this name. Throws Error if the library does
  /// not have it.
  Symbol find(const char* symbol) const {
    const Symbol s{dlsym(handle_, symbol)};
    if (s.address == nullptr) throw Error(of_ + ": " + name_ + " has no function " + symbol);
    return s;
  }

 private:
  std::string of_;
  std::string name_;
  void* handle_;
};

}  // namespace cudp

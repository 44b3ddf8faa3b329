#pragma once
#include <string>

#include "runtime/base/lazy_library.hpp"

namespace cudp::cuda {

/// A dynamic library of the CUDA toolkit, opened when it is first needed.
class LazyLibrary : public cudp::LazyLibrary {
 public:
  explicit LazyLibrary(const std::string& name) : cudp::LazyLibrary("CUDA", name) {}
};

}  // namespace cudp::cuda

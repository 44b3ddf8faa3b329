#pragma once
#include "runtime/base/error.hpp"

namespace cudp::cuda {

/// Error: a device has no memory left for an allocation.
struct OutOfMemory : Error {
  using Error::Error;
};

}  // namespace cudp::cuda

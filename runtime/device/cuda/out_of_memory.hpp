#pragma once
#include "runtime/base/error.hpp"

namespace cudp::cuda {

/// Thrown if a device has too little free memory for an allocation.
struct OutOfMemory : Error {
  using Error::Error;
};

}  // namespace cudp::cuda

#pragma once
#include <cstdint>

#include "kernels/random.hpp"
#include "kernels/sample.hpp"
#include "kernels/update.hpp"

namespace cudp {

struct CpuKernels {
  int lanes;  ///< floats in a vector
};

}  // namespace cudp

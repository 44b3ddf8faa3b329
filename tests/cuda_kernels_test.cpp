#include "tests/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/cuda_layer_tests.hpp"
#include "tests/cuda_product_tests.hpp"
#include "tests/cuda_scatter_tests.hpp"
#include "tests/cuda_sum_tests.hpp"

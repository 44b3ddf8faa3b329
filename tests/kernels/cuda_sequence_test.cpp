// Gradients of texts' weights, and products with them, under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/kernels/cuda_sequence_tests.hpp"
#include "tests/kernels/cuda_text_product_tests.hpp"

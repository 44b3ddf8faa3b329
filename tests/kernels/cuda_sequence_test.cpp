// Gradients of texts' weights under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/kernels/cuda_sequence_tests.hpp"

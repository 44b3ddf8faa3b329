// Steps of recurrent layers by tensor cores under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/kernels/cuda_recurrent_tests.hpp"

// The fused kernel of texts under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
class TestGpu : public EmulatedGpu {  // with as much shared memory as an H100's
 public:
  TestGpu() : EmulatedGpu(1, {.multiprocessors = 3, .shared_bytes = std::size_t{227} * 1024}) {}
};
}

#include "tests/kernels/recurrent_kernel_tests.hpp"

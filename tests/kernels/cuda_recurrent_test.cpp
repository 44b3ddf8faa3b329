// Steps of recurrent layers by tensor cores under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/kernels/cuda_recurrent_tests.hpp"
#include "tests/kernels/half_fill.hpp"

namespace cudp {
namespace {

class FilledSteps : public CudaSteps {
 protected:
  void before_pass(const device::RecurrentPass& a, bool back) override {
    if (fills_) simt::set_at_barrier(fill_steps(a, back, byte_));
  }
  bool fills_ = false;
  unsigned char byte_ = 0;
};

/// Every third text, beside others of any numbers.
TEST_P(FilledSteps, NoBitDependsOnWhatMemoryHolds) {
  Numbers n = numbers();
  const SharedFill zeros(0);
  const Left first = run_steps(n, all_texts(), GetParam().examples);
  fills_ = true;
  for (std::size_t e = 0; e < kTexts; ++e)
    for (std::size_t i = 0; e % 3 != 0 && i < static_cast<std::size_t>(gates_); ++i) {
      n.inputs[e * gates_ + i] = hostile(e + i);
      if (i < static_cast<std::size_t>(out_)) n.dy[e * out_ + i] = hostile(i + 1);
    }
  for (const unsigned char byte : kFills) {
    byte_ = byte;
    simt::set_first_byte(byte);
    const Left left = run_steps(n, all_texts(), GetParam().examples);
    for (int e = 0; e < kTexts; e += 3) expect_same(left, first, e);
  }
}
INSTANTIATE_TEST_SUITE_P(All, FilledSteps, kSteps, name_of_steps);

}  // namespace
}  // namespace cudp

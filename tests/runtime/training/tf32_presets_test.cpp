// `cudp train` with the presets of small networks on the emulated device, in TF32 by their fused
// kernels, compared with the CPU. tests/gpu/training_gpu_test.cpp does the same on a device.
#include "tests/support/tf32_presets.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

/// An emulated device with the shared memory of an H100, so that networks have fused kernels.
const Backend& emulated_h100() {
  static const Backend backend = [] {
    Backend b = emulated_cuda();
    b.make_engine = [](const Network& net, const EngineSettings& s) {
      return fused_engine(net, s, {.shared_bytes = std::size_t{227} * 1024});
    };
    b.precision = [](const Network&, Precision requested, bool) { return requested; };
    return b;
  }();
  return backend;
}
/// The CPU in its place.
const Backend& cpu_in_place() {
  static const Backend backend = [] {
    Backend b = choose_backend(Device::cpu);
    b.name = "cuda";
    b.arithmetic = [](const Network&) { return kCudaArithmetic; };
    return b;
  }();
  return backend;
}

std::vector<transcript::Record> trained(const std::filesystem::path& folder,
                                        const cases::Tf32Preset& p, const Backend& backend) {
  const TranscriptMemory memory;
  TrainConfig seeded;
  seeded.seed = 7;
  const Ended ended = run_observed(folder, cases::tf32_training(p, backend.arithmetic_name), [&] {
    replace_cuda(&backend);
    return new Transcript(SeededKey(seeded), memory.file());
  });
  EXPECT_EQ(ended.exit, 0) << ended.err;
  return transcript::decode(memory.content());
}

class Tf32Presets : public testing::TestWithParam<cases::Tf32Preset> {};

TEST_P(Tf32Presets, AddWhatTheCpuAdds) {
  const TemporaryFolder folder;
  cases::write_first_images(folder.path(), GetParam());
  const auto cpu = trained(folder.path(), GetParam(), cpu_in_place());
  cases::expect_tf32_sums(cpu, trained(folder.path(), GetParam(), emulated_h100()));
}
INSTANTIATE_TEST_SUITE_P(All, Tf32Presets, testing::ValuesIn(cases::kTf32Presets),
                         cases::name_of_preset);

}  // namespace
}  // namespace cudp

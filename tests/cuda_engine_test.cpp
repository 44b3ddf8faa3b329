#include "runtime/cuda/device_engine.hpp"
#include "tests/cuda_engine_tests.hpp"
#include "tests/emulated_gpu.hpp"

namespace cudp {
namespace {

std::unique_ptr<Engine> emulated(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  if (s.micro_batch == 0) s.micro_batch = 96;
  return std::make_unique<cuda::DeviceEngine<EmulatedGpu>>(EmulatedGpu(), net, s);
}

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(cases::kCases),
                                          testing::Values(DeviceBackend{"emulated", emulated})),
                         name_of);

}  // namespace
}  // namespace cudp

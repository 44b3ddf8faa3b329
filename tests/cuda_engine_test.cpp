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

/// Every dense layer by BLAS, which is otherwise for large ones.
std::unique_ptr<Engine> emulated_blas(const Network& net, const EngineSettings& settings) {
  return std::make_unique<cuda::DeviceEngine<EmulatedGpu>>(EmulatedGpu(), net, settings, 1);
}

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(cases::kCases),
                                          testing::Values(DeviceBackend{"emulated", emulated})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Blas, CudaEngine,
                         testing::Combine(testing::Values(cases::kCases[1], cases::kCases[3],
                                                          cases::kCases[6], cases::kCases[8]),
                                          testing::Values(DeviceBackend{"blas", emulated_blas})),
                         name_of);

}  // namespace
}  // namespace cudp

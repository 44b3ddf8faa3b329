#include "tests/runtime/device/cuda_engine_tests.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> v(std::begin(cases::kCases), std::end(cases::kCases));
  v.push_back({"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10});
  return v;
}
std::unique_ptr<Engine> layer_wise(const Network& net, const EngineSettings& s) {
  return layer_wise_engine(net, s);
}
/// Every dense layer by BLAS, which is otherwise for large ones.
std::unique_ptr<Engine> by_blas(const Network& net, const EngineSettings& s) {
  return layer_wise_engine(net, s, 1);
}
INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(all_cases()),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);
// What fused kernels do otherwise.
INSTANTIATE_TEST_SUITE_P(LayerWise, CudaEngine,
                         testing::Combine(testing::ValuesIn(all_cases()),
                                          testing::Values(DeviceBackend{"layer_wise", layer_wise})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Blas, CudaEngine,
                         testing::Combine(testing::ValuesIn(all_cases()),
                                          testing::Values(DeviceBackend{"blas", by_blas})),
                         name_of);

}  // namespace
}  // namespace cudp

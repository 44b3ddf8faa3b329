#include "runtime/cuda/devices.hpp"
#include "tests/cuda_engine_tests.hpp"

namespace cudp {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> v(std::begin(cases::kCases), std::end(cases::kCases));
  v.push_back({"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10});
  return v;
}
INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(all_cases()),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);
// What resident kernels do otherwise.
INSTANTIATE_TEST_SUITE_P(LayerWise, CudaEngine,
                         testing::Combine(testing::ValuesIn(all_cases()),
                                          testing::Values(DeviceBackend{
                                              "layer_wise", make_layer_wise_cuda_engine})),
                         name_of);

}  // namespace
}  // namespace cudp

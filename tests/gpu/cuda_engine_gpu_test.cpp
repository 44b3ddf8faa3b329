#include "runtime/cuda/devices.hpp"
#include "tests/cuda_engine_tests.hpp"

namespace cudp {
namespace {

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(cases::kCases),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);
// What a resident kernel does otherwise.
INSTANTIATE_TEST_SUITE_P(LayerWise, CudaEngine,
                         testing::Combine(testing::Values(Case{"cnn", "cnn", {1, 28, 28}, 10}),
                                          testing::Values(DeviceBackend{
                                              "layer_wise", make_layer_wise_cuda_engine})),
                         name_of);

}  // namespace
}  // namespace cudp

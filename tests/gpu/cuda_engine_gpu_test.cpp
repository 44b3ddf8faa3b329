#include "tests/cuda_engine_tests.hpp"

namespace cudp {
namespace {

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(cases::kCases),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);

}  // namespace
}  // namespace cudp

#include "tests/runtime/device/text_tensor_tests.hpp"

namespace cudp {
namespace {

INSTANTIATE_TEST_SUITE_P(Device, TextEngine,
                         testing::Values(TextBackend{"cuda", std::nullopt, make_cuda_engine}),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Device, TextEngineTensors,
                         testing::Values(TextBackend{"cuda", std::nullopt, make_cuda_engine}),
                         name_of_backend);

}  // namespace
}  // namespace cudp

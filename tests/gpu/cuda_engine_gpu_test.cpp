#include "runtime/cuda/devices.hpp"
#include "tests/cuda_engine_tests.hpp"

namespace cudp {
namespace {

const Case kScatterCnn{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10};

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(cases::kCases),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Scattering, CudaEngine,
                         testing::Combine(testing::Values(kScatterCnn),
                                          testing::Values(DeviceBackend{"cuda", make_cuda_engine})),
                         name_of);
// What a resident kernel does otherwise.
std::vector<Case> resident_cases() {
  std::vector<Case> v{kScatterCnn};
  for (const Case& c : cases::kCases)
    for (const char* name : {"logistic", "softmax", "svm", "mlp", "cnn"})
      if (c.name == std::string(name)) v.push_back(c);
  return v;
}
INSTANTIATE_TEST_SUITE_P(LayerWise, CudaEngine,
                         testing::Combine(testing::ValuesIn(resident_cases()),
                                          testing::Values(DeviceBackend{
                                              "layer_wise", make_layer_wise_cuda_engine})),
                         name_of);

}  // namespace
}  // namespace cudp

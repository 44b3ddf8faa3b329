#include "runtime/cuda/device_engine.hpp"
#include "runtime/cuda/devices.hpp"
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

/// Under TSan the emulator is a hundred times slower: small models show the same races.
std::vector<Case> emulated_cases() {
  std::vector<Case> v;
  for (const Case& c : cases::kCases)
    if (!simt::races_end_the_program() || cases::network_of(c).parameter_count < 5'000)
      v.push_back(c);
  return v;
}
std::vector<Case> blas_cases() {
  std::vector<Case> v;
  for (const Case& c : emulated_cases())
    for (const char* name : {"softmax", "mlp", "mixed", "unusual"})
      if (c.name == std::string(name)) v.push_back(c);
  return v;
}

INSTANTIATE_TEST_SUITE_P(All, CudaEngine,
                         testing::Combine(testing::ValuesIn(emulated_cases()),
                                          testing::Values(DeviceBackend{"emulated", emulated})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Blas, CudaEngine,
                         testing::Combine(testing::ValuesIn(blas_cases()),
                                          testing::Values(DeviceBackend{"blas", emulated_blas})),
                         name_of);

/// Says that every batch was too large for the recorded step.
class CrampedGpu : public EmulatedGpu {
 public:
  template <class... P, class... A>
  void launch(const char* name, void (*kernel)(P...), const LaunchShape& shape, const A&... args) {
    EmulatedGpu::launch(name, kernel, shape, args...);
  }
  void launch(const char* name, void (*kernel)(WatchBatch), const LaunchShape& shape,
              WatchBatch args) {
    args.capacity = 3;
    EmulatedGpu::launch(name, kernel, shape, args);
  }
};

TEST(CudaEngineCapacity, ATooLargeBatchMakesTheRunFail) {
  const Case& c = cases::kCases[0];
  const Network net = cases::network_of(c);
  EngineSettings s;
  s.sampling_threshold = std::uint64_t{1} << 32;
  s.micro_batch = 32;
  cuda::DeviceEngine<CrampedGpu> engine(CrampedGpu(), net, s);
  EXPECT_NO_THROW(cases::clipped_sum(engine, net, cases::examples_for(c, 3)));
  EXPECT_THROW(cases::clipped_sum(engine, net, cases::examples_for(c, 4)), Error);
}

TEST(CudaEngineCapacity, HoldsTwelveDeviationsAndNeverMoreThanThereIs) {
  EXPECT_EQ(cuda::batch_capacity(std::uint64_t{1} << 32, 1000), 1000);
  EXPECT_EQ(cuda::batch_capacity(0, 1000), 32);
  EXPECT_EQ(cuda::batch_capacity(std::uint64_t{1} << 31, 50), 50);
  // q n = 600, deviation 24.37
  const auto one_percent = static_cast<std::uint64_t>(std::ceil(0.01 * 0x1p32));
  EXPECT_EQ(cuda::batch_capacity(one_percent, 60'000), 925);
}

TEST(CudaEngineMicroBatch, IsOfWholeGroupsAndFitsTheMemory) {
  const auto in_flight = [](const char* model, Shape shape, int chosen) {
    const Network net = cases::network_of({model, model, shape, 10});
    return cuda::examples_in_flight(net, cuda::build_device_graph(net), chosen);
  };
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 0), 4096);
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 1), 32);
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 33), 64);
  EXPECT_EQ(in_flight("logistic", {120, 1, 1}, 0), 32768);
  EXPECT_EQ(in_flight("mlp", {2000, 1, 1}, 1), 256) << "2,000,000 weights go to BLAS by slabs";
  const int cifar = in_flight("cifar-cnn", {3, 32, 32}, 0);
  EXPECT_TRUE(cifar >= 512 && cifar < 2048 && cifar % 32 == 0) << cifar;
}

TEST(CudaEngineWithoutADevice, SaysWhatIsMissing) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a CUDA device";
  const Network net = cases::network_of(cases::kCases[0]);
  std::string said;
  try {
    make_cuda_engine(net, {});
  } catch (const Error& e) {
    said = e.what();
  }
  EXPECT_EQ(said.rfind(built_with_cuda() ? "CUDA: " : "this build has no CUDA backend", 0), 0u)
      << said;
}

}  // namespace
}  // namespace cudp

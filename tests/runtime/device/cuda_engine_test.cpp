#include <cstring>
#include <optional>
#include <random>

#include "runtime/device/cuda/batch_capacity.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "tests/runtime/device/cuda_engine_tests.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/simt/simt_emulator.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

std::unique_ptr<Engine> emulated(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  if (s.micro_batch == 0) s.micro_batch = 96;
  return layer_wise_engine(net, s);
}

/// Every dense layer by BLAS, which is otherwise for large ones.
std::unique_ptr<Engine> emulated_blas(const Network& net, const EngineSettings& settings) {
  return layer_wise_engine(net, settings, 1);
}

/// By a fused kernel, on a device with the shared memory of an H200 or of smaller ones.
std::unique_ptr<Engine> fused(const Network& net, const EngineSettings& settings,
                              std::size_t shared_bytes) {
  EngineSettings s = settings;
  if (s.micro_batch == 0) s.micro_batch = 96;
  return fused_engine(net, s, {.shared_bytes = shared_bytes});
}
std::unique_ptr<Engine> fused_whole(const Network& net, const EngineSettings& settings) {
  return fused(net, settings, std::size_t{227} * 1024);
}
std::unique_ptr<Engine> fused_small(const Network& net, const EngineSettings& settings) {
  return fused(net, settings, std::size_t{99} * 1024);
}

/// Under TSan the emulator is a hundred times slower: small models show the same races.
std::vector<Case> emulated_cases() {
  std::vector<Case> v;
  for (const Case& c : cases::kCases)
    if (!simt::races_end_the_program() || cases::network_of(c).parameter_count < 5'000)
      v.push_back(c);
  return v;
}
std::vector<Case> text_cases() {
  std::vector<Case> v;
  for (const Case& c : cases::kTextCases)
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
INSTANTIATE_TEST_SUITE_P(Texts, CudaEngine,
                         testing::Combine(testing::ValuesIn(text_cases()),
                                          testing::Values(DeviceBackend{"emulated", emulated})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Blas, CudaEngine,
                         testing::Combine(testing::ValuesIn(blas_cases()),
                                          testing::Values(DeviceBackend{"blas", emulated_blas})),
                         name_of);

/// Those with a fused kernel on a device whose blocks have so much shared memory.
std::vector<Case> fused_cases(std::size_t kilobytes) {
  std::vector<Case> all = emulated_cases(), v;
  if (!simt::races_end_the_program()) all.push_back({"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10});
  for (const Case& c : all)
    if (!cuda::fused_kernels_for(cases::network_of(c), {.shared_bytes = kilobytes * 1024},
                                 Precision::fp32)
             .empty())
      v.push_back(c);
  return v;
}
INSTANTIATE_TEST_SUITE_P(Fused, CudaEngine,
                         testing::Combine(testing::ValuesIn(fused_cases(227)),
                                          testing::Values(DeviceBackend{"fused", fused_whole})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(FusedSmall, CudaEngine,
                         testing::Combine(testing::ValuesIn(fused_cases(99)),
                                          testing::Values(DeviceBackend{"fused_small",
                                                                        fused_small})),
                         name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaEngine);

TEST(CudaEngineCapacity, ATooLargeBatchMakesTheRunFail) {
  const Case& c = cases::kCases[0];
  const Network net = cases::network_of(c);
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  s.micro_batch = 32;
  const auto engine = device_engine(net, s, {.batch_capacity = 3});
  EXPECT_NO_THROW(cases::clipped_sum(*engine, s.recipe, net, cases::examples_for(c, 3)));
  EXPECT_THROW(cases::clipped_sum(*engine, s.recipe, net, cases::examples_for(c, 4)), Error);
}

/// Rows of tables are on the device by their codes, and give what their dense floats give, bit for
/// bit: by the fused kernels and layer by layer, whatever an example adds.
TEST(CudaEngineTables, AreTheirDenseRows) {
  using cases::Adds;
  int fused = 0;
  for (const cases::CodedModel& model : cases::kCodedModels)
    for (const Adds adds :
         {Adds::flat, Adds::per_layer, Adds::automatic, Adds::directions, Adds::transformed})
      for (const bool may_be_fused : {true, false}) {
        const bool hostile = adds == Adds::automatic || adds == Adds::directions;
        cases::InfluenceCase c = cases::coded_case(model, adds, fused % 5 + 1, 40, hostile);
        c.settings.micro_batch = 16;
        c.settings.diagnostics = true;
        const TestDevice device{.shared_bytes = std::size_t{99} * 1024};
        const auto results = [&](const Dataset& data) {
          const auto engine = may_be_fused
                                  ? device_engine(c.net, c.settings, device)
                                  : layer_wise_engine(c.net, c.settings, cuda::kLargeDense, device);
          std::vector<float> all = cases::released_sum(*engine, c, data);
          all.push_back(static_cast<float>(engine->diagnostics().norm()));
          const std::size_t tested[] = {39, 26, 5, 5, 20};
          const std::vector<float> logits = engine->logits(select_examples(data, tested));
          all.insert(all.end(), logits.begin(), logits.end());
          if (adds == Adds::flat) {
            const std::uint32_t some[] = {0, 1, 31, 32, 39};
            const PerExample found = engine->per_example(some, true);
            all.insert(all.end(), found.gradients.begin(), found.gradients.end());
          }
          return all;
        };
        SCOPED_TRACE(testing::Message() << model.name << ", " << static_cast<int>(adds));
        const std::vector<float> got = results(c.data), want = results(dense(c.data));
        ASSERT_EQ(got.size(), want.size());
        EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0);
        ++fused;
      }
}

/// A table takes the memory of its records, not that of its dense rows.
TEST(CudaEngineTables, TakeTheMemoryOfTheirRecords) {
  RowLayout layout{.number_feature = {}, .codes = 1, .features = 200};
  constexpr std::size_t kRows = 20'000;
  std::vector<std::uint32_t> codes;
  codes.reserve(kRows);
  for (std::size_t i = 0; i < kRows; ++i) codes.push_back(i % 200);
  const Dataset table = coded_dataset(layout, {}, codes, std::vector<std::uint8_t>(kRows, 1), 2);
  const Network net = cases::network_of({"table", "logistic", table.shape, 2});
  EngineSettings s;
  s.micro_batch = 32;
  const TestDevice device{.memory = std::size_t{4} << 20};
  std::vector<std::string> said;
  s.say = [&](const std::string& line) { said.push_back(line); };
  device_engine(net, s, device)->load(table);
  EXPECT_TRUE(said.empty()) << said[0];
  device_engine(net, s, device)->load(dense(table));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].starts_with("device: rows are streamed: 0.0161 GB of rows, ")) << said[0];
}

/// By what the device reports, and by the network's layers.
TEST(FusedChoice, NeedsTheNetworkAndTheSharedMemory) {
  using enum Precision;
  const auto kernels = [](const char* model, Shape shape, int classes, std::size_t kilobytes,
                          Precision precision = tf32) {
    return cuda::fused_kernels_for(cases::network_of({"case", model, shape, classes}),
                                   {.multiprocessors = 1, .shared_bytes = kilobytes * 1024},
                                   precision);
  };
  const auto has = [&](const char* model, Shape shape, int classes, std::size_t kilobytes) {
    return !kernels(model, shape, classes, kilobytes).empty();
  };
  // Examples at once, of bytes and of any features.
  const auto groups = [](const std::vector<cuda::FusedKernel>& of) {
    std::string all;
    for (const cuda::FusedKernel& k : of)
      all += std::to_string(k.examples) + (k.wants_bytes ? "b" : "");
    return all;
  };
  EXPECT_EQ(groups(kernels("cnn", {1, 28, 28}, 10, 227)), "4b2b1b21");
  EXPECT_EQ(groups(kernels("cnn", {1, 28, 28}, 10, 163)), "2b1b21");
  EXPECT_EQ(groups(kernels("cnn", {1, 28, 28}, 10, 99)), "");
  EXPECT_EQ(groups(kernels("cnn", {1, 28, 28}, 10, 227, fp32)), "21");
  EXPECT_EQ(groups(kernels("scatter-cnn", {81, 7, 7}, 10, 227)), "21");
  EXPECT_EQ(groups(kernels("scatter-cnn", {81, 7, 7}, 10, 163)), "1");
  EXPECT_EQ(groups(kernels("scatter-cnn", {81, 7, 7}, 10, 227, fp32)), "1");
  EXPECT_EQ(kernels("cnn", {1, 28, 28}, 10, 227)[0].functions[2].kind, Activation::tanh);
  EXPECT_FALSE(has("scatter-cnn", {243, 8, 8}, 10, 227));
  EXPECT_FALSE(has("cnn", {1, 28, 28}, 9, 227));
  EXPECT_FALSE(has("cnn", {1, 32, 32}, 10, 227));
  EXPECT_FALSE(has("cnn", {3, 28, 28}, 10, 227));
  EXPECT_FALSE(has("cifar-cnn", {1, 28, 28}, 10, 227));
  const std::string text(builtin_model("cnn"));
  const auto changed = [&](const char* from, const char* to) {
    std::string other = text;
    other.replace(other.find(from), std::string(from).size(), to);
    return has(other.c_str(), {1, 28, 28}, 10, 227);
  };
  EXPECT_TRUE(changed("\"tanh\"", "\"relu\""));
  EXPECT_FALSE(changed("out = 16", "out = 15"));
  EXPECT_FALSE(changed("pad = 3", "pad = 2"));
  EXPECT_FALSE(
      changed("\"maxpool\", kernel = 2, stride = 1", "\"avgpool\", kernel = 2, stride = 1"));
  EXPECT_FALSE(changed("out = 32, kernel", "out = 31, kernel"));
  EXPECT_FALSE(changed("name = \"fc1\", out = 32", "name = \"fc1\", out = 33"));
  EXPECT_TRUE(increases({Activation::tempered_sigmoid, -1.0f, -2.0f, 0.0f}));
  EXPECT_FALSE(increases({Activation::tempered_sigmoid, -1.0f, 2.0f, 0.0f}))
      << "a pool before it would take another pixel";
}

constexpr const char* kTwoHidden = R"(
name = "two_hidden"
layers = [
  { type = "dense", name = "a", out = 256 },
  { type = "tanh" },
  { type = "dense", name = "b", out = 128 },
  { type = "relu" },
  { type = "dense", name = "c", out = "outputs" },
]
)";

/// Networks of dense layers: as many examples at once as kernels/fused/dense_rows.cuh states, and
/// the widest that it states.
TEST(FusedChoice, OfDenseLayersIsBySharedMemoryAndParameters) {
  const auto tile = [](const char* model, int features, int classes, std::size_t kilobytes) {
    const DeviceLimits limits{.multiprocessors = 1, .shared_bytes = kilobytes * 1024};
    const Network net = cases::network_of({"case", model, {features, 1, 1}, classes});
    const auto kernels = cuda::fused_kernels_for(net, limits, Precision::fp32);
    if (kernels.empty()) return 0;
    EXPECT_LE(kernels[0].shared_bytes, limits.shared_bytes);
    return kernels[0].dense.tile;
  };
  struct Row {
    const char* model;
    int features, classes;
    int tiles[3];
  };
  const Row rows[] = {{"logistic", 124, 2, {32, 32, 32}},  {"svm", 124, 2, {32, 32, 32}},
                      {"logistic", 784, 10, {32, 32, 25}}, {"scatter-linear", 3969, 10, {13, 9, 6}},
                      {"mlp", 60, 10, {25, 18, 11}},       {"mlp", 784, 10, {0, 0, 0}},
                      {kTwoHidden, 60, 10, {32, 32, 22}},  {kTwoHidden, 784, 10, {0, 0, 0}}};
  const std::size_t kilobytes[3] = {227, 163, 99};
  for (const Row& r : rows)
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(tile(r.model, r.features, r.classes, kilobytes[i]), r.tiles[i])
          << r.model << " " << r.features << " with " << kilobytes[i] << " KB";
  const int most[2][3] = {{14'479, 10'383, 6'287}, {7'999, 7'999, 6'143}};
  for (const int classes : {2, 10})
    for (int i = 0; i < 3; ++i) {
      const int features = most[classes / 10][i];
      EXPECT_GE(tile("logistic", features, classes, kilobytes[i]), kTileExamples) << features;
      EXPECT_EQ(tile("logistic", features + 1, classes, kilobytes[i]), 0) << features;
    }
}

/// Sums of transformed gradients have kernels of their own.
TEST(FusedChoice, OfTransformedGradientsIsBySharedMemory) {
  const auto bytes = [](const char* model, Shape shape, std::size_t kilobytes) {
    const DeviceLimits limits{.multiprocessors = 1, .shared_bytes = kilobytes * 1024};
    const Network net = cases::network_of({"case", model, shape, 10});
    const auto kernels = cuda::fused_kernels_for(net, limits, Precision::tf32, true);
    if (kernels.empty()) return std::size_t{0};
    EXPECT_LE(kernels[0].shared_bytes, limits.shared_bytes);
    EXPECT_NE(kernels[0].sum, cuda::fused_kernels_for(net, limits, Precision::tf32).at(0).sum);
    return kernels[0].shared_bytes;
  };
  EXPECT_GT(bytes("cnn", {1, 28, 28}, 227), bytes("cnn", {1, 28, 28}, 163) + 65'000);
  EXPECT_GT(bytes("cnn", {1, 28, 28}, 163), 0u);
  EXPECT_GT(bytes("scatter-cnn", {81, 7, 7}, 163), 0u);
  EXPECT_EQ(bytes("scatter-cnn", {81, 7, 7}, 99), 0u) << "layer by layer";
  EXPECT_GT(bytes("mlp", {60, 1, 1}, 99), 0u);
  EXPECT_EQ(bytes("mlp", {784, 1, 1}, 227), 0u);
}

/// Importance sampling by a fused kernel: the same bits on every device, and layer by layer the
/// same but for rounding.
TEST(FusedImportance, DependsOnTheExamplesAlone) {
  for (const Case& c :
       {Case{"cnn", "cnn", {1, 28, 28}, 10}, Case{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10},
        Case{"mlp", "mlp", {60, 1, 1}, 10}, Case{"svm", "svm", {16, 1, 1}, 2}}) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = cases::examples_for(c, net.parameter_count > 10'000 ? 8 : 90);
    EngineSettings s;
    s.key = {{1, 6, 1, 8, 0, 3}};
    s.recipe = {.draw = Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.2, .rate = 0.3}},
                .contribution = AcceptedDirection{}};
    const auto trained = [&](Engine& e) {
      e.load(data);
      e.set_state(cases::weights_for(net));
      e.measure_norms();
      e.run(s.recipe, 0, std::vector<StepScalars>(2, cases::still(0.05f)));
      return e.state();
    };
    const auto layers = layer_wise_engine(net, s, cuda::kLargeDense, {.multiprocessors = 3});
    const TrainState by_layers = trained(*layers);
    std::vector<float> parameters, norms;
    struct Made {
      int multiprocessors;
      std::size_t kilobytes;
    };
    for (const Made& d : {Made{1, 227}, Made{3, 99}, Made{132, 163}}) {
      if (cuda::fused_kernels_for(net, {.shared_bytes = d.kilobytes * 1024}, Precision::fp32)
              .empty())
        continue;
      const auto engine = fused_engine(
          net, s, {.shared_bytes = d.kilobytes * 1024, .multiprocessors = d.multiprocessors});
      const TrainState got = trained(*engine);
      if (parameters.empty()) {
        parameters = got.parameters;
        norms = got.norms;
      }
      EXPECT_EQ(got.parameters, parameters) << d.multiprocessors << ", " << d.kilobytes;
      EXPECT_EQ(got.norms, norms) << d.multiprocessors << ", " << d.kilobytes;
    }
    const auto [error, size] =
        cases::distance(parameters.data(), by_layers.parameters.data(), parameters.size());
    EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
    for (std::size_t i = 0; i < norms.size(); ++i)
      EXPECT_NEAR(norms[i], by_layers.norms[i], 2e-5f * by_layers.norms[i] + 1e-15f) << i;
  }
}

/// Coordinate-wise clipping by a fused kernel: the same bits on every device and with every
/// micro-batch, and what the layers and the oracle give but for rounding.
TEST(FusedCoordinates, DependOnTheExamplesAlone) {
  for (const Case& c :
       {Case{"cnn", "cnn", {1, 28, 28}, 10}, Case{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10},
        Case{"mlp", "mlp", {60, 1, 1}, 10}, Case{"svm", "svm", {16, 1, 1}, 2}}) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = cases::examples_for(c, net.parameter_count > 10'000 ? 8 : 90);
    TrainState start = cases::weights_for(net);
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    for (std::size_t j = 0; j < net.parameter_count; ++j) {
      start.deviation.push_back(0.02f * std::exp(normal(random)));
      start.mean.push_back(start.deviation.back() * normal(random));
    }
    EngineSettings s;
    s.key = {{1, 6, 1, 8, 0, 3}};
    s.recipe = {.draw = Poisson{std::uint64_t{1} << 31}, .contribution = TransformedGradient{}};
    s.diagnostics = true;
    StepScalars scalars = cases::still(0.05f);
    scalars.noise_std = 0.4f;
    scalars.inverse_batch = 2.0f / static_cast<float>(data.size());
    const auto trained = [&](Engine& e) {
      e.load(data);
      e.set_state(start);
      e.run(s.recipe, 0, std::vector<StepScalars>(2, scalars));
      return e.state();
    };
    const auto near = [](const std::vector<float>& a, const std::vector<float>& b, double within) {
      const auto [error, size] = cases::distance(a.data(), b.data(), b.size());
      EXPECT_TRUE(error <= within * size) << error << " of " << size;
    };
    reference::ReferenceEngine oracle(net, s);
    const TrainState want = trained(oracle);
    const auto layers = layer_wise_engine(net, s, cuda::kLargeDense, {.multiprocessors = 3});
    const TrainState by_layers = trained(*layers);
    const Diagnostics seen = oracle.diagnostics();
    std::optional<TrainState> first;
    struct Made {
      int multiprocessors;
      std::size_t kilobytes;
      int micro_batch;
    };
    for (const Made& d : {Made{1, 227, 0}, Made{132, 163, 0}, Made{3, 99, 0}, Made{3, 227, 5}}) {
      SCOPED_TRACE(testing::Message() << d.multiprocessors << ", " << d.kilobytes);
      const std::size_t bytes = d.kilobytes * 1024;
      if (cuda::fused_kernels_for(net, {.shared_bytes = bytes}, Precision::fp32).empty()) continue;
      s.micro_batch = d.micro_batch;
      const auto engine =
          fused_engine(net, s, {.shared_bytes = bytes, .multiprocessors = d.multiprocessors});
      const TrainState got = trained(*engine);
      const Diagnostics all = engine->diagnostics();
      EXPECT_EQ(all.examples, seen.examples);
      EXPECT_EQ(all.clipped, seen.clipped);
      EXPECT_NEAR(all.norm(), seen.norm(), 2e-5 * seen.norm());
      near(got.parameters, want.parameters, 1e-5);
      near(got.mean, want.mean, 1e-4);
      near(got.deviation, want.deviation, 1e-4);
      near(got.parameters, by_layers.parameters, 1e-5);
      if (cuda::fused_kernels_for(net, {.shared_bytes = bytes}, Precision::fp32, true).empty())
        continue;
      if (!first) first = got;
      EXPECT_EQ(got.parameters, first->parameters);
      EXPECT_EQ(got.mean, first->mean);
      EXPECT_EQ(got.deviation, first->deviation);
    }
  }
}

TEST(CudaEngineCapacity, HoldsTwelveDeviationsAndNeverMoreThanThereIs) {
  EXPECT_EQ(cuda::batch_capacity(Poisson{std::uint64_t{1} << 32}, 1000), 1000);
  EXPECT_EQ(cuda::batch_capacity(Poisson{0}, 1000), 32);
  EXPECT_EQ(cuda::batch_capacity(Poisson{std::uint64_t{1} << 31}, 50), 50);
  // q n = 600, deviation 24.37
  const auto one_percent = static_cast<std::uint64_t>(std::ceil(0.01 * 0x1p32));
  EXPECT_EQ(cuda::batch_capacity(Poisson{one_percent}, 60'000), 925);
}

TEST(CudaEngineMicroBatch, IsOfWholeGroupsAndFitsTheMemory) {
  const auto in_flight = [](const char* model, Shape shape, int chosen, std::size_t gib = 4,
                            std::int64_t wanted = 0) {
    const Network net = cases::network_of({model, model, shape, 10});
    return cuda::examples_in_flight(net, cuda::build_layout(net), chosen, gib << 30, wanted);
  };
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 0), 4096);
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 1), 32);
  EXPECT_EQ(in_flight("cnn", {1, 28, 28}, 33), 64);
  EXPECT_EQ(in_flight("logistic", {120, 1, 1}, 0), 32768);
  EXPECT_EQ(in_flight("mlp", {2000, 1, 1}, 1), 256) << "2,000,000 weights go to BLAS by slabs";
  const std::int64_t cifar = in_flight("cifar-cnn", {3, 32, 32}, 0);
  EXPECT_TRUE(cifar >= 512 && cifar < 2048 && cifar % 32 == 0) << cifar;
  EXPECT_EQ(in_flight("cifar-cnn", {3, 32, 32}, 0, 80, 2500), 2528) << "all that a step wants";
  EXPECT_EQ(in_flight("cifar-cnn", {3, 32, 32}, 0, 80, 32), cifar);
  EXPECT_EQ(in_flight("cifar-cnn", {3, 32, 32}, 96, 80, 2500), 96);
  const std::int64_t quarter = in_flight("cifar-cnn", {3, 32, 32}, 0, 8, 1'000'000);
  EXPECT_TRUE(quarter > 3 * cifar / 2 && quarter < 3 * cifar) << quarter;
}

TEST(TensorLayers, FusedKernelsOfConvolutionsUseThemAndOthersDoNot) {
  DeviceLimits limits{.multiprocessors = 1, .shared_bytes = std::size_t{227} * 1024};
  const auto precision = [&](const char* model, Shape shape, Precision requested,
                             bool transforms = false) {
    return cuda::device_precision(cases::network_of({"case", model, shape, 10}), limits, requested,
                                  transforms);
  };
  using enum Precision;
  EXPECT_EQ(precision("cnn", {1, 28, 28}, tf32), tf32);
  EXPECT_EQ(precision("cnn", {1, 28, 28}, fp32), fp32);
  EXPECT_EQ(precision("mlp", {60, 1, 1}, tf32), fp32);
  EXPECT_EQ(precision("cifar-cnn", {3, 32, 32}, tf32), tf32);
  EXPECT_EQ(precision("cifar-cnn", {3, 32, 32}, fp32), fp32);
  limits.shared_bytes = std::size_t{99} * 1024;  // of which transformed gradients have too little
  EXPECT_EQ(precision("scatter-cnn", {81, 7, 7}, tf32), tf32);
  EXPECT_EQ(precision("scatter-cnn", {81, 7, 7}, tf32, true), tf32)
      << "layer by layer all the same";
  EXPECT_EQ(precision("logistic", {124, 1, 1}, tf32, true), fp32) << "ten outputs gain nothing";
}

/// As many texts at once as shared memory holds; longer texts, and other networks, go layer by
/// layer.
TEST(FusedChoice, OfTextsIsByTheirLengthAndLayers) {
  const DeviceLimits h100{.multiprocessors = 132, .shared_bytes = std::size_t{227} * 1024};
  const auto texts = [&](const Case& c, Precision precision = Precision::tf32,
                         bool transforms = false) {
    const auto kernels = cuda::fused_kernels_for(cases::network_of(c), h100, precision, transforms);
    return kernels.empty() ? 0 : kernels.back().examples;
  };
  const auto imdb = [](int words, int columns = 100) {
    return Case{"imdb", "imdb-rnn", {1, 1, words}, 2, {50, columns}};
  };
  EXPECT_EQ(texts(imdb(80)), 8);
  EXPECT_EQ(texts(imdb(81)), 4);
  EXPECT_EQ(texts(imdb(160)), 4);
  EXPECT_EQ(texts(imdb(161)), 2);
  EXPECT_EQ(texts(imdb(500)), 1);
  EXPECT_EQ(texts(imdb(5000)), 0);
  EXPECT_EQ(texts(imdb(80), Precision::tf32, true), 8);
  EXPECT_EQ(texts(imdb(80), Precision::fp32), 0) << "its operands are fp16 numbers";
  EXPECT_EQ(texts(imdb(80, 50)), 0) << "another table of words";
  for (const Case& c : cases::kTextCases) {
    if (std::string(c.name) != "imdb_rnn") {
      EXPECT_EQ(texts(c), 0) << c.name;
    }
  }
}

/// What a library gives is as near to what our kernels give as sums in another order are.
TEST(CudaEvaluation, ALibraryConvolvesAsOurKernelsDo) {
  for (const Case& c : emulated_cases()) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = cases::examples_for(c, 37);
    const TrainState state = cases::weights_for(net);
    EngineSettings s;
    s.micro_batch = 32;
    std::vector<float> logits[2];
    for (const bool by_library : {false, true}) {
      s.evaluate_with = by_library ? EvaluateWith::cudnn : EvaluateWith::ours;
      DeviceLog log;
      const auto engine = device_engine(net, s, {.log = &log});
      engine->set_state(state);
      logits[by_library ? 1 : 0] = engine->logits(data);
      const auto convolutions = std::ranges::count_if(net.layers, [](const NetworkLayer& l) {
        return std::holds_alternative<Conv2d>(l.layer);
      });
      EXPECT_EQ(std::ranges::count(log.launches, "library's convolution"),
                by_library ? 2 * convolutions : 0);
    }
    const auto [error, size] =
        cases::distance(logits[1].data(), logits[0].data(), logits[0].size());
    EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
  }
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

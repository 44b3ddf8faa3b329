// Layers for texts on the CPU and under the emulator.
#include "kernels/products/sequence_gradient.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "runtime/methods/registry.hpp"
#include "tests/runtime/device/text_tensor_tests.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

TEST(Texts, AdaClipRefusesATableThatIsTrained) {
  const MethodEntry& adaclip = method_entry("adaclip");
  TrainConfig config;
  for (const Case& c : cases::kTextCases) {
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 1);
    if (!std::get<Embedding>(net.layers[0].layer).trainable) {
      EXPECT_NO_THROW(adaclip.fit(config, net, data));
      continue;
    }
    try {
      adaclip.fit(config, net, data);
      ADD_FAILURE() << c.name;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find("--model: expected no trainable embedding"),
                std::string::npos);
    }
  }
}

TEST(Texts, OthersTextsAreRefused) {
  const Case& c = cases::kTextCases[0];
  const Network net = cases::network_of(c);
  for (const bool on_cpu : {true, false}) {
    const auto engine = on_cpu ? make_cpu_engine(net, {}) : device_engine(net, {});
    Dataset other = texts_for(c, 3);
    other.words += 1;
    EXPECT_THROW(engine->load(other), InputError);
    other = texts_for(c, 3);
    other.vectors = nullptr;
    EXPECT_THROW(engine->load(other), InputError);
  }
}

/// Of a table only the rows that a text may touch are rounded to the grid.
TEST(Texts, RoundingOfATableStaysSmall) {
  const Network net = build_network(parse_model(builtin_model("imdb-lstm"), "imdb-lstm", 2),
                                    {1, 1, 256}, 2, {.words = 10'004, .columns = 0});
  const double error = sensitivity_rounding_error(net, kCpuArithmetic);
  EXPECT_LE(error, 5e-4);
  // The least error of a norm, and 256 rows of 100 beside the other layers' 80,602.
  EXPECT_NEAR(error, 0x1p-13 + 0.5 * std::sqrt(256.0 * 100.0 + 80'602.0) * 0x1p-20, 1e-6);
}

const TextBackend kCpus[] = {
    {"baseline", SimdLevel::baseline}, {"avx2", SimdLevel::avx2}, {"avx512", SimdLevel::avx512}};
INSTANTIATE_TEST_SUITE_P(Levels, TextEngine, testing::ValuesIn(kCpus), name_of_backend);

std::unique_ptr<Engine> emulated_texts(const Network& net, const EngineSettings& settings) {
  EngineSettings s = settings;
  if (s.micro_batch == 0) s.micro_batch = 32;
  return device_engine(net, s, {.shared_bytes = std::size_t{227} * 1024});
}
INSTANTIATE_TEST_SUITE_P(Cuda, TextEngine,
                         testing::Values(TextBackend{"emulated", std::nullopt, emulated_texts}),
                         name_of_backend);
INSTANTIATE_TEST_SUITE_P(Cuda, TextEngineTensors,
                         testing::Values(TextBackend{"emulated", std::nullopt, emulated_texts}),
                         name_of_backend);

/// One layer whose U is in shared memory on large devices and comes in slabs on small ones: by
/// asynchronous copies where its rows are whole fours, and by others.
constexpr const char* kWide = R"(
name = "wide"
loss = "softmax"
layers = [
  { type = "embedding", name = "e", trainable = true, columns = 5 },
  { type = "lstm", name = "a", hidden = 72, bidirectional = true, output = "sequence" },
  { type = "gru", name = "b", hidden = 70 },
  { type = "dense", name = "c", out = "outputs" },
]
)";

constexpr const char* kWider = R"(
name = "wider"
layers = [
  { type = "embedding", name = "e", trainable = true, columns = 3 },
  { type = "lstm", name = "a", hidden = 140, output = "mean" },
  { type = "dense", name = "c", out = "outputs" },
]
)";

/// All that an engine makes of texts: each one's, and the sum of a batch's.
std::vector<float> all_of(Engine& engine, const Network& net, const EngineSettings& s,
                          const Dataset& data) {
  engine.load(data);
  engine.set_state(weights_for(net));
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0u);
  const PerExample single = engine.per_example(all, true);
  std::vector<float> numbers = single.gradients;
  for (const auto& more : {single.squared_norms, single.losses, engine.logits(data),
                           clipped_sum(engine, s.recipe, net, data, 0.3f)})
    numbers.insert(numbers.end(), more.begin(), more.end());
  return numbers;
}

/// Neither shared memory nor multiprocessors, by which a block's share is chosen, nor the
/// micro-batch changes a bit.
TEST(CudaTexts, BitsDoNotDependOnTheDevice) {
  struct Tried {
    Case c;
    Precision precision = Precision::fp32;
  };
  std::vector<Tried> all;
  for (const Case& c : cases::kTextCases) all.push_back({c});
  for (const Precision precision : {Precision::fp32, Precision::tf32})
    all.push_back({{"wide", kWide, {1, 1, 6}, 3, {31, 0}}, precision});
  // More units than a block has at work at once.
  all.push_back({{"wider", kWider, {1, 1, 5}, 2, {31, 0}}, Precision::tf32});
  constexpr std::size_t kKB = 1024;
  const TestDevice devices[] = {{.seed = 1, .shared_bytes = 227 * kKB, .multiprocessors = 1},
                                {.seed = 2, .shared_bytes = 48 * kKB, .multiprocessors = 3},
                                {.seed = 3, .shared_bytes = 99 * kKB, .multiprocessors = 132},
                                {.seed = 4, .shared_bytes = 163 * kKB, .multiprocessors = 9}};
  for (const auto& [c, precision] : all) {
    SCOPED_TRACE(c.name + std::string(precision == Precision::tf32 ? ", TF32" : ""));
    const bool is_small = c.model != kWide && c.model != kWider;
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 33);
    std::vector<float> first;
    for (const TestDevice& device : devices) {
      if (device.seed == 4 && is_small) continue;  // small layers are in all of them
      EngineSettings s;
      s.precision = precision;
      s.recipe.draw = Poisson{std::uint64_t{3} << 30};
      s.micro_batch = device.seed % 2 == 0 ? 32 : 0;
      const std::vector<float> got = all_of(*device_engine(net, s, device), net, s, data);
      if (first.empty()) first = got;
      EXPECT_TRUE(got == first) << "device " << device.seed;
    }
  }
}

/// imdb-rnn's layers with another recurrent one.
std::string whole_network(const std::string& recurrent) {
  return "name = 'whole'\nloss = 'softmax'\nactivation = 'relu'\nlayers = [{type = 'embedding', "
         "name "
         "= 'e'}, {type = 'dense', name = 'a', out = 32, per_token = true}, {type = 'activation'}, "
         "{name = 'r', " +
         recurrent +
         "}, {type = 'dense', name = 'b', out = 16}, {type = 'activation'}, {type = 'dense', name "
         "= "
         "'c', out = 'outputs'}]";
}

/// A network of texts as one kernel: neither the texts of a block nor the multiprocessors change a
/// bit, and every text is near what its layers give one by one.
void expect_same_bits_on_every_device(const Case& c) {
  SCOPED_TRACE(c.name);
  const Network net = cases::network_of(c);
  const Dataset data = texts_for(c, 33);
  constexpr std::size_t kKB = 1024;
  EXPECT_FALSE(cuda::fused_kernels_for(net, {.shared_bytes = 227 * kKB}, Precision::tf32).empty());
  const TestDevice devices[] = {{.seed = 1, .shared_bytes = 227 * kKB, .multiprocessors = 1},
                                {.seed = 2, .shared_bytes = 99 * kKB, .multiprocessors = 3},
                                {.seed = 3, .shared_bytes = 227 * kKB, .multiprocessors = 132}};
  EngineSettings s;
  s.recipe.draw = Poisson{std::uint64_t{3} << 30};
  const auto sums = [&](const TestDevice& device) {
    const auto engine = device_engine(net, s, device);
    engine->load(data);
    engine->set_state(weights_for(net));
    std::vector<float> numbers = engine->logits(data);
    const std::vector<float> sum = clipped_sum(*engine, s.recipe, net, data, 0.3f);
    numbers.insert(numbers.end(), sum.begin(), sum.end());
    return numbers;
  };
  const std::vector<float> by_layers = sums(devices[0]);
  s.precision = Precision::tf32;
  const std::vector<float> first = sums(devices[0]);
  EXPECT_FALSE(first == by_layers) << "of fp16 operands";
  double error = 0, size = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    error += std::pow(static_cast<double>(first[i]) - static_cast<double>(by_layers[i]), 2);
    size += std::pow(static_cast<double>(by_layers[i]), 2);
  }
  EXPECT_TRUE(std::sqrt(error) <= 1.5e-3 * std::sqrt(size)) << std::sqrt(error / size);
  for (const TestDevice& device : devices) {
    if (device.seed == 1) continue;
    EXPECT_TRUE(sums(device) == first) << "device " << device.seed;
  }
}
TEST(CudaTexts, AWholeNetworkGivesTheSameBitsOnEveryDevice) {
  expect_same_bits_on_every_device(cases::kTextCases[0]);
  for (const char* recurrent :
       {"type = 'gru', hidden = 32, bidirectional = true", "type = 'lstm', hidden = 64"}) {
    const std::string model = whole_network(recurrent);
    expect_same_bits_on_every_device({recurrent, model.c_str(), {1, 1, 24}, 2, {50, 100}});
  }
}

/// Half a tile where a layer would leave the other half empty.
TEST(CudaTexts, TilesOfGradientsFollowTheLayer) {
  const auto tiles = [](int rows, int columns) {
    return tiles_of(sequence_tile(rows, columns, Precision::fp32), rows, columns);
  };
  EXPECT_EQ(tiles(32, 128), 2) << "imdb-rnn's states, 32 x 64 each";
  EXPECT_EQ(tiles(33, 128), 2) << "64 x 64";
  EXPECT_EQ(tiles(100, 32), 2) << "imdb-rnn's words, 64 x 32";
  EXPECT_EQ(tiles(100, 33), 2);
  EXPECT_EQ(tiles(100, 400), 14) << "imdb-lstm's";
  for (const auto& [rows, columns] : {std::pair{32, 128}, {100, 32}, {100, 400}}) {
    const SequenceTileShape tile = sequence_tile(rows, columns, Precision::fp32);
    EXPECT_EQ(tile.rows == 64 && tile.columns == 64, columns == 400);
    const SequenceTileShape tensor = sequence_tile(rows, columns, Precision::tf32);
    EXPECT_TRUE(tensor.rows == 64 && tensor.columns == 64);
  }
}

/// How a block shares the steps follows from the device and the batch; as
/// runtime/device/cuda/README.md has it.
TEST(CudaTexts, BlocksFitTheSharedMemory) {
  constexpr std::size_t kH100 = 232'448, kA100 = 166'912, kAda = 101'376;
  const auto plan = [](int hidden, bool back, std::size_t shared, int capacity = 1 << 20) {
    const device::RecurrentPlan p = device::recurrent_plan(
        4, hidden, back, 2, capacity, {.multiprocessors = 132, .shared_bytes = shared});
    EXPECT_LE(p.shared_bytes, shared);
    return p;
  };
  for (const std::size_t shared : {kH100, kA100, kAda, cudp::kAlwaysShared})
    for (const int hidden : {1, 5, 17, 32, 64, 100, 128, 140})
      for (const bool back : {false, true})
        EXPECT_GE(plan(hidden, back, shared).examples, 4) << hidden << " of " << shared;
  EXPECT_TRUE(plan(32, false, kAda).is_resident);
  EXPECT_EQ(plan(32, true, kAda).examples, 32);
  EXPECT_TRUE(plan(100, false, kH100).is_resident);
  EXPECT_TRUE(plan(100, true, kH100).is_resident);
  EXPECT_FALSE(plan(100, false, kA100).is_resident);
  EXPECT_FALSE(plan(128, false, kH100).is_resident);
  EXPECT_EQ(plan(32, false, kH100, 512).examples, 8) << "few texts are spread over the device";
  EXPECT_EQ(plan(2000, false, kAda).examples, 0) << "no block holds it";
}

TEST(CudaTexts, BlocksOfTensorCoresFitTheSharedMemory) {
  constexpr std::size_t kH100 = 232'448, kA100 = 166'912, kAda = 101'376;
  const auto plan = [](int hidden, bool back, std::size_t shared, int capacity = 1 << 20,
                       int gates = 4) {
    const device::RecurrentPlan p = device::half_recurrent_plan(
        gates, hidden, back, 1, capacity, {.multiprocessors = 132, .shared_bytes = shared});
    EXPECT_LE(p.shared_bytes, shared);
    EXPECT_LE(device::recurrent_threads(p), device::max_recurrent_threads(p));
    return p;
  };
  for (const std::size_t shared : {kH100, kA100, kAda, cudp::kAlwaysShared})
    for (const int hidden : {64, 67, 100, 128, 140})
      for (const int gates : {3, 4})
        for (const bool back : {false, true})
          EXPECT_GE(plan(hidden, back, shared, 1 << 20, gates).examples, 8)
              << hidden << " of " << shared;
  struct Stated {
    int hidden;
    bool back;
    std::size_t shared;
    int examples, units;
    bool is_resident;
    std::size_t bytes;
  };
  for (const Stated& s :
       {Stated{64, false, kH100, 8, 64, true, 6'688}, Stated{64, true, kH100, 8, 64, true, 11'296},
        Stated{100, false, kH100, 8, 104, true, 11'040},
        Stated{100, true, kH100, 8, 104, true, 16'544},
        Stated{104, true, kAda, 8, 104, true, 16'672},
        Stated{140, false, kH100, 32, 64, false, 54'400},
        Stated{140, true, kH100, 32, 64, false, 95'872},
        Stated{140, true, cudp::kAlwaysShared, 16, 64, false, 47'936}}) {
    const device::RecurrentPlan p = plan(s.hidden, s.back, s.shared);
    EXPECT_EQ(p.examples, s.examples) << s.hidden;
    EXPECT_EQ(p.units, s.units) << s.hidden;
    EXPECT_EQ(p.is_resident, s.is_resident) << s.hidden;
    EXPECT_EQ(p.shared_bytes, s.bytes) << s.hidden;
  }
  EXPECT_EQ(plan(140, false, kH100, 512).examples, 8) << "few texts are spread over the device";
  EXPECT_EQ(plan(2000, true, kH100).examples, 0) << "no block holds it";
}

TEST(CudaTexts, ALayerThatNoBlockHoldsIsRefusedInOneLine) {
  const std::string model =
      "name = 'huge'\nlayers = [{type = 'embedding', name = 'e'}, {type = 'gru', name = 'a', "
      "hidden = 3000}, {type = 'dense', name = 'b', out = 'outputs'}]";
  const Network net = cases::network_of({"huge", model.c_str(), {1, 1, 3}, 2, {9, 2}});
  try {
    device_engine(net, {});
    ADD_FAILURE();
  } catch (const InputError& e) {
    EXPECT_EQ(std::string(e.what()),
              "--device: expected cpu, since a recurrent layer of 3000 units needs more shared "
              "memory than this device has, found cuda");
  }
}

/// Three steps of four texts, noise and all.
TEST(CudaTexts, ThePresetTrainsAsOnTheCpu) {
  struct Trained {
    const char* preset;
    Precision precision = Precision::fp32;
  };
  for (const auto& [preset, precision] :
       {Trained{"imdb-rnn"}, Trained{"imdb-lstm"}, Trained{"imdb-lstm", Precision::tf32},
        Trained{"imdb-mean"}, Trained{"sentences-lstm"}}) {
    SCOPED_TRACE(preset + std::string(precision == Precision::tf32 ? ", TF32" : ""));
    const bool has_vectors = std::string(preset).find("rnn") != std::string::npos ||
                             std::string(preset).find("mean") != std::string::npos;
    const Case c{preset, preset, {1, 1, 20}, 2, {60, has_vectors ? 100 : 0}};
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 4);
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 32};
    s.recipe.optimizer.kind = OptimizerKind::adam;
    s.key = {{1, 2, 3, 4, 5, 6, 7, 8}};
    s.threads = 1;
    const StepScalars step{.learning_rate = 0.01f,
                           .noise_std = 0.05f,
                           .inverse_batch = 0.25f,
                           .bias1 = 1,
                           .bias2 = 1,
                           .ema_decay = 0,
                           .clip_norm = 0.5f};
    TrainState after[2];
    for (const int on_device : {0, 1}) {
      s.precision = on_device == 1 ? precision : Precision::fp32;
      const auto engine = on_device == 1 ? emulated_texts(net, s) : make_cpu_engine(net, s);
      engine->load(data);
      TrainState start = weights_for(net);
      start.moment1.assign(net.parameter_count, 0.0f);
      start.moment2.assign(net.parameter_count, 0.0f);
      engine->set_state(start);
      engine->run(s.recipe, 0, std::vector(3, step));
      after[on_device] = engine->state();
    }
    const double tolerance = precision == Precision::tf32 ? 2e-3 : 1e-5;
    expect_near(after[1].parameters, after[0].parameters, tolerance);
    expect_near(after[1].moment1, after[0].moment1, tolerance);
  }
}

/// Nobody is drawn: what a run releases is its noise, and that is the CPU's, integer for integer.
TEST(CudaTexts, NoiseOfWholeRunsIsTheCpus) {
  for (const Case& c : cases::kTextCases) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    EngineSettings s;
    s.recipe.draw = Poisson{0};
    s.recipe.optimizer.kind = OptimizerKind::momentum;
    s.key = {{3, 1, 4, 1, 5, 9, 2, 6}};
    s.threads = 1;
    StepScalars step = cases::still(0.1f);
    step.noise_std = 0.7f;
    std::vector<float> released[2];
    for (const int on_device : {0, 1}) {
      const auto engine = on_device == 1 ? emulated_texts(net, s) : make_cpu_engine(net, s);
      engine->load(texts_for(c, 5));
      TrainState start = weights_for(net);
      start.moment1.assign(net.parameter_count, 0.0f);
      engine->set_state(start);
      engine->run(s.recipe, 2, std::vector(4, step));
      released[on_device] = engine->state().moment1;
    }
    EXPECT_EQ(released[1], released[0]);
  }
}

/// What a library gives is as near to what our kernels give as sums in another order are. Empty
/// texts, which it does not know, are among them.
TEST(CudaTexts, ALibraryGoesOverTextsAsOurKernelsDo) {
  std::vector<Case> all(std::begin(cases::kTextCases), std::end(cases::kTextCases));
  all.push_back({"wide", kWide, {1, 1, 6}, 3, {31, 0}});
  for (const Case& c : all) {
    SCOPED_TRACE(c.name);
    const Network net = cases::network_of(c);
    const Dataset data = texts_for(c, 37);
    EngineSettings s;
    s.micro_batch = 32;
    std::vector<float> logits[2];
    for (const bool by_library : {false, true}) {
      s.evaluate_with = by_library ? EvaluateWith::cudnn : EvaluateWith::ours;
      DeviceLog log;
      const auto engine = device_engine(net, s, {.log = &log});
      engine->set_state(weights_for(net));
      logits[by_library ? 1 : 0] = engine->logits(data);
      const auto layers = std::ranges::count_if(net.layers, [](const NetworkLayer& l) {
        return std::holds_alternative<Recurrent>(l.layer);
      });
      EXPECT_EQ(std::ranges::count(log.launches, "library's recurrent layer"),
                by_library ? 2 * layers : 0);
      EXPECT_EQ(std::ranges::count(log.launches, "recurrent"), by_library ? 0 : 2 * layers);
    }
    const auto [error, size] =
        cases::distance(logits[1].data(), logits[0].data(), logits[0].size());
    EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
  }
}

/// A text's numbers that are kept between forward and backward: six a unit, step and direction.
TEST(CudaTexts, MemoryOfATextIsAsStated) {
  struct Stated {
    const char* preset;
    int words;
    TextShape text;
    std::int64_t bytes;
  };
  for (const Stated& s : {Stated{"imdb-rnn", 80, {50, 100}, 122'880},
                          Stated{"imdb-lstm", 256, {10'004, 0}, 614'400}}) {
    const Network net = cases::network_of({s.preset, s.preset, {1, 1, s.words}, 2, s.text});
    const cuda::CudaLayout layout = cuda::build_layout(net);
    EXPECT_EQ(layout.storage.saved * 4, s.bytes) << s.preset;
    EXPECT_GE(cuda::examples_in_flight(net, layout, 0, std::size_t{80} << 30, 20'000), 20'000);
    EXPECT_LT(cuda::examples_in_flight(net, layout, 0, std::size_t{8} << 30, 20'000), 20'000)
        << "bounded by the device";
  }
}

}  // namespace
}  // namespace cudp

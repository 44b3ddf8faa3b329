// The launches of a step, a run's waits, and pairs of normals that double cannot decide: by the
// engine under the emulator, and one that only notes what it is asked for.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/gate/release_observer.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_device.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

using cases::Case;

// --- Launches ---

/// Examples of zeros for a network.
Dataset zeros_for(const Network& net, std::size_t examples) {
  Dataset data;
  data.shape = net.input;
  data.classes = net.classes;
  data.labels.resize(examples);
  if (net.text.words > 0) {
    data.words = net.text.words;
    data.tokens.resize(examples * static_cast<std::size_t>(net.input.size()));
    data.lengths.resize(examples);
    if (net.text.columns > 0)
      data.vectors = std::make_shared<const WordVectors>(
          WordVectors{net.text.words, net.text.columns,
                      std::vector<float>(static_cast<std::size_t>(net.text.words) *
                                         static_cast<std::size_t>(net.text.columns))});
    return data;
  }
  data.bytes.resize(examples * static_cast<std::size_t>(net.input.size()));
  return data;
}

/// The engine of a device with the limits of an H100 that only notes what it is asked for.
std::unique_ptr<Engine> noting_engine(const Network& net, const EngineSettings& s,
                                      const Dataset& data, DeviceLog& log) {
  auto engine = device_engine(net, s,
                              {.shared_bytes = std::size_t{227} * 1024,
                               .multiprocessors = 132,
                               .memory = std::size_t{80} << 30,
                               .log = &log,
                               .runs = false});
  engine->load(data);
  return engine;
}

struct Counted {
  double launches;   ///< a step, without those ahead
  double ahead;      ///< a run, for the batches of all its steps
  bool starts_next;  ///< a step starts the next one, and one launch the first one of a run
  int waits;         ///< a run
  int recordings;
  std::vector<std::string> of_a_step;
};

/// Takes out the launches that draw the batches of many steps. Returns how many there were.
std::size_t take_ahead(std::vector<std::string>& launches) {
  return std::erase_if(launches, [](const std::string& name) { return name.ends_with(" ahead"); });
}

/// Counts over two runs of four steps each, which have clipping norms of their own, and candidates
/// an importance rule of their own.
Counted count(const Network& net, StepRecipe recipe, const Dataset& data,
              Precision precision = Precision::fp32, double expected_batch = 0.0) {
  EngineSettings s;
  s.recipe = recipe;
  s.precision = precision;
  s.expected_batch = expected_batch;
  DeviceLog log;
  const auto engine = noting_engine(net, s, data, log);
  log = {};
  constexpr std::size_t kSteps = 4;
  std::vector<StepScalars> scalars(kSteps, cases::still(1.0f));
  const bool is_clipped = std::holds_alternative<ClippedGradient>(recipe.contribution);
  for (std::size_t i = 0; is_clipped && i < kSteps; ++i)
    scalars[i].clip_norm = 0.1f * static_cast<float>(i + 1);
  for (std::uint64_t run = 0; run < 2; ++run) {
    engine->run(recipe, kSteps * run, scalars);
    if (auto* const candidates = std::get_if<Candidates>(&recipe.draw)) candidates->rule.rate *= 2;
  }
  const std::size_t ahead = take_ahead(log.launches);
  const bool starts_next = std::ranges::count(log.launches, "begin") == 2;
  if (starts_next) std::erase(log.launches, "begin");
  Counted c{.launches = static_cast<double>(log.launches.size()) / (2.0 * kSteps),
            .ahead = static_cast<double>(ahead) / 2.0,
            .starts_next = starts_next,
            .waits = log.waits / 2,
            .recordings = log.recordings,
            .of_a_step = log.launches};
  c.of_a_step.resize(log.launches.size() / (2 * kSteps));
  return c;
}

Poisson batch_of(int expected, std::size_t examples = 60'000) {
  return {static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(expected) / static_cast<double>(examples) * 0x1p32))};
}

const Case kCnn{"cnn", "cnn", {1, 28, 28}, 10};
const Case kScatterCnn{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10};
const Case kMlp{"mlp", "mlp", {60, 1, 1}, 10};
const Case kLogistic{"logistic", "logistic", {124, 1, 1}, 2};
const Case kWideMlp{"wide_mlp", "mlp", {784, 1, 1}, 10};
const Case kImdbRnn{"imdb_rnn", "imdb-rnn", {1, 1, 80}, 2, {20'004, 100}};
const Case kImdbLstm{"imdb_lstm", "imdb-lstm", {1, 1, 256}, 2, {20'004, 0}};
const Case kImdbMean{"imdb_mean", "imdb-mean", {1, 1, 256}, 2, {20'004, 100}};
const Case kSentences{"sentences_lstm", "sentences-lstm", {1, 1, 12}, 2, {60, 0}};
const Case kCifar{"cifar_cnn", "cifar-cnn", {3, 32, 32}, 10};

/// 700 parameters, in 384 pairs: with noise of 2^39 units double leaves one in 240 undecided.
const Case kModel{"softmax", "logistic", {69, 1, 1}, 10};

StepRecipe clipped(Clipping kind = Clipping::flat, int batch = 512) {
  return {.draw = batch_of(batch), .contribution = ClippedGradient{kind}};
}
StepRecipe with_step_sizes(int batch) {
  StepRecipe r = clipped(Clipping::flat, batch);
  r.step_size = StepSizeSettings{};
  return r;
}
StepRecipe transformed(int batch) {
  return {.draw = batch_of(batch), .contribution = TransformedGradient{}};
}
StepRecipe candidates(int batch) {
  return {
      .draw = Candidates{{.clip = 1.0, .multiple = 5.0, .min_norm = 0.05, .rate = batch / 60e3}},
      .contribution = AcceptedDirection{}};
}

TEST(CudaSteps, FusedModelsTakeTwoLaunches) {
  const std::vector<std::string> two = {"fused sum", "finish"};
  for (const Case& model : {kCnn, kScatterCnn, kMlp, kLogistic}) {
    const Network net = cases::network_of(model);
    const Dataset data = zeros_for(net, 6'000);
    for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic})
      for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adamw}) {
        if (model.name == std::string("scatter_cnn") && kind != Clipping::flat) continue;
        SCOPED_TRACE(model.name);
        StepRecipe recipe = clipped(kind);
        recipe.optimizer.kind = optimizer;
        recipe.optimizer.keep_average = true;
        const Counted c = count(net, recipe, data);
        EXPECT_EQ(c.of_a_step, two);
        EXPECT_EQ(c.launches, 2.0);
        EXPECT_EQ(c.ahead, 2.0);
        EXPECT_TRUE(c.starts_next);
        EXPECT_EQ(c.waits, 1);
        EXPECT_EQ(c.recordings, 2) << "clipping norms are in device memory";
      }
  }
}

/// Class weights are part of the fused sum.
TEST(CudaSteps, ClassWeightsTakeNoOtherLaunches) {
  for (const Case& model : {kCnn, kScatterCnn, kMlp, kImdbRnn}) {
    const Network net = cases::network_of(model);
    EngineSettings s;
    s.recipe = clipped();
    s.precision = Precision::tf32;
    s.class_weights.assign(static_cast<std::size_t>(net.classes), 0.5f);
    DeviceLog log;
    const auto engine = noting_engine(net, s, zeros_for(net, 6'000), log);
    log = {};
    const StepScalars step = cases::still();
    engine->run(s.recipe, 0, {&step, 1});
    take_ahead(log.launches);
    EXPECT_EQ(log.launches, (std::vector<std::string>{"begin", "fused sum", "finish"}))
        << model.name;
  }
}

/// The device moves the norm, so that its steps are as others.
TEST(CudaSteps, AMovingClippingNormTakesNeitherLaunchesNorWaits) {
  const Network net = cases::network_of(kLogistic);
  EngineSettings s;
  s.recipe = clipped();
  s.diagnostics = true;
  DeviceLog log;
  const auto engine = noting_engine(net, s, zeros_for(net, 6'000), log);
  log = {};
  const ClipRule rule{.target = 0.25, .expected_batch = 512};
  const std::vector<StepScalars> given(5, cases::still());
  const std::vector<std::int64_t> noise(5, 100);
  for (const float clip : {1.0f, 2.0f})
    EXPECT_NE(check_followed(engine->run_following(s.recipe, 0, given, rule, clip, noise), rule,
                             clip, given),
              clip);
  EXPECT_EQ(take_ahead(log.launches), 2u) << "the second run is of the same steps";
  EXPECT_EQ(std::erase(log.launches, "begin"), 2u);
  EXPECT_EQ(log.launches.size(), 2u * 10);
  EXPECT_EQ(log.waits, 2);
  EXPECT_EQ(log.recordings, 2);
}

/// Every row of the table in runtime/device/cuda/README.md is counted anew.
TEST(CudaSteps, LaunchesOfAStepAreThoseOfTheTable) {
  struct Row {
    const char* network;
    Case model;
    int batch = 512;
    Precision precision = Precision::fp32;
  };
  const Row rows[] = {
      {"`cnn`", kCnn},
      {"`scatter-cnn`", kScatterCnn},
      {"`mlp` on 60 features", kMlp},
      {"`logistic` on 124 features", kLogistic},
      {"`mlp` on 784 features", kWideMlp},
      {"`cifar-cnn`, TF32", kCifar, 512, Precision::tf32},
      {"`cifar-cnn`, TF32, 2,048 examples", kCifar, 2048, Precision::tf32},
      {"`imdb-rnn`, 80 words", kImdbRnn},
      {"`imdb-rnn`, 80 words, TF32", kImdbRnn, 512, Precision::tf32},
      {"`imdb-lstm`, 256 words, TF32", kImdbLstm, 512, Precision::tf32},
      {"`imdb-mean`, 256 words", kImdbMean},
      {"`sentences-lstm`", kSentences},
  };
  const std::string page = content_of(golden_file("published_deltas.json").parent_path() /
                                      "../../runtime/device/cuda/README.md");
  for (const Row& r : rows) {
    const Network net = cases::network_of(r.model);
    const Dataset data = zeros_for(net, 60'000);
    const auto* const table = std::get_if<Embedding>(&net.layers[0].layer);
    std::string line = std::string("| ") + r.network + " |";
    for (const StepRecipe& recipe : {clipped(Clipping::flat, r.batch), with_step_sizes(r.batch),
                                     transformed(r.batch), candidates(r.batch)}) {
      if (table != nullptr && table->trainable &&
          std::holds_alternative<TransformedGradient>(recipe.contribution)) {
        line += " refused |";
        continue;
      }
      const Counted c = count(net, recipe, data, r.precision, r.batch);
      EXPECT_EQ(c.launches, std::floor(c.launches)) << r.network;
      line += " " + std::to_string(static_cast<int>(c.launches)) + " |";
      EXPECT_EQ(c.ahead, std::holds_alternative<Candidates>(recipe.draw) ? 0.0 : 2.0) << r.network;
      EXPECT_EQ(c.starts_next,
                !std::holds_alternative<Candidates>(recipe.draw) && !recipe.step_size.has_value())
          << r.network;
      EXPECT_EQ(c.waits, 1) << r.network;
      EXPECT_EQ(c.recordings, c.starts_next ? 2 : 1) << r.network;
    }
    EXPECT_NE(page.find(line + "\n"), std::string::npos) << "expected in the table: " << line;
  }
}

/// Coordinate-wise clipping: two launches in a step of two, and two more for every batch that
/// the blocks' integers hold (33,264 examples on 132 multiprocessors).
TEST(CudaSteps, CoordinatesTakeTwoLaunchesMore) {
  const std::vector<std::string> four = {"coordinate sums", "coordinate arrays", "fused sum",
                                         "finish"};
  for (const Case& model : {kCnn, kScatterCnn, kMlp, kLogistic}) {
    SCOPED_TRACE(model.name);
    const Network net = cases::network_of(model);
    EXPECT_EQ(count(net, transformed(512), zeros_for(net, 60'000), Precision::fp32, 512).of_a_step,
              four);
  }
  const Network net = cases::network_of(kLogistic);
  const auto large =
      count(net, transformed(40'000), zeros_for(net, 60'000), Precision::fp32, 40'000);
  EXPECT_EQ(large.launches, 6.0);
  EXPECT_EQ(std::ranges::count(large.of_a_step, "fused reduce"), 1);
}

/// scatter-cnn on a device whose blocks have 99 KB, as the table of kernels says.
TEST(CudaSteps, CoordinatesGoLayerByLayerWhereNoBlockHoldsThem) {
  const Network net = cases::network_of(kScatterCnn);
  EngineSettings s;
  s.recipe = transformed(512);
  s.expected_batch = 512;
  DeviceLog log;
  const auto engine = device_engine(net, s,
                                    {.shared_bytes = std::size_t{99} * 1024,
                                     .multiprocessors = 58,
                                     .memory = std::size_t{24} << 30,
                                     .log = &log,
                                     .runs = false});
  engine->load(zeros_for(net, 60'000));
  log = {};
  const StepScalars step = cases::still(1.0f);
  engine->run(s.recipe, 0, {&step, 1});
  EXPECT_EQ(std::ranges::count(log.launches, "fused sum"), 0);
  take_ahead(log.launches);
  EXPECT_EQ(std::erase(log.launches, "begin"), 1u);
  const std::string page = content_of(golden_file("published_deltas.json").parent_path() /
                                      "../../runtime/device/cuda/README.md");
  const std::string said =
      "layer by layer in " + std::to_string(log.launches.size()) + " launches |";
  EXPECT_NE(page.find(said), std::string::npos) << said;
}

TEST(CudaSteps, AboveFourMillionExamplesTheCountsAreScannedByThemselves) {
  const Case tiny{"tiny", "logistic", {1, 1, 1}, 2};
  for (const std::size_t extra : {0u, 1u}) {
    const std::size_t examples = (std::size_t{1} << 22) + extra;
    StepRecipe recipe = clipped();
    recipe.draw = batch_of(512, examples);
    const Network net = cases::network_of(tiny);
    const Counted c = count(net, recipe, zeros_for(net, examples));
    EXPECT_EQ(c.launches, 2.0);
    EXPECT_EQ(c.ahead, 2.0 + extra);
  }
}

TEST(CudaSteps, ALongRunIsSubmittedInParts) {
  const Network net = cases::network_of(kLogistic);
  EngineSettings s;
  s.recipe = clipped();
  DeviceLog log;
  const auto engine = noting_engine(net, s, zeros_for(net, 100), log);
  log = {};
  engine->run(s.recipe, 0, std::vector<StepScalars>(4097, cases::still()));
  EXPECT_EQ(take_ahead(log.launches), 2u * (4096 / 256 + 1));
  EXPECT_EQ(std::erase(log.launches, "begin"), 4096u / 256 + 1);
  EXPECT_EQ(log.launches.size(), 2u * 4097);
  EXPECT_EQ(log.waits, 2);
  EXPECT_EQ(log.recordings, 2);
}

/// Layer by layer, of a training set of texts: its evaluation waits once too.
TEST(CudaSteps, AnEvaluationOfTextsKeepsItsTestSet) {
  const Network net = cases::network_of(kSentences);
  DeviceLog log;
  const auto engine = device_engine(net, {}, {.log = &log, .runs = false});
  Dataset data = zeros_for(net, 100);
  (void)engine->logits(data);
  for (const bool changed : {false, true}) {
    if (changed) data.lengths.back() = 3;
    log = {};
    EXPECT_EQ(engine->logits(Dataset(data)).size(), 200u);
    EXPECT_EQ(log.waits, changed ? 5 : 1) << "words, lengths, labels, their number";
  }
}

/// A test set is uploaded once, and again where it is another one.
TEST(CudaSteps, AnEvaluationWaitsOnceAndKeepsItsTestSet) {
  for (const Case& model : {kCnn, kLogistic}) {
    const Network net = cases::network_of(model);
    EngineSettings s;
    s.micro_batch = 96;
    DeviceLog log;
    const auto engine = device_engine(
        net, s, {.shared_bytes = std::size_t{227} * 1024, .log = &log, .runs = false});
    Dataset data = zeros_for(net, 1'000);
    EXPECT_EQ(engine->logits(data).size(), 1'000u * static_cast<std::size_t>(net.outputs));
    for (const bool changed : {false, true}) {
      if (changed) data.bytes.back() = 1;
      log = {};
      (void)engine->logits(data);
      EXPECT_EQ(log.waits, changed ? 4 : 1) << "examples, labels, their number";
      EXPECT_EQ(log.launches, std::vector<std::string>{"fused forward"});
      log = {};
      (void)engine->logits(Dataset(data));
      EXPECT_EQ(log.waits, 1) << "they are known by what they are, not by where";
    }
  }
  // Layer by layer, a micro-batch after the other.
  const Network net = cases::network_of(kLogistic);
  EngineSettings s;
  s.micro_batch = 96;
  DeviceLog log;
  const auto engine = layer_wise_engine(net, s, cuda::kLargeDense, {.log = &log, .runs = false});
  const Dataset data = zeros_for(net, 1'000);
  for (int i = 0; i < 2; ++i) {
    log = {};
    (void)engine->logits(data);
  }
  EXPECT_EQ(log.waits, 1);
  EXPECT_EQ(std::ranges::count(log.launches, "load"), 11);
}

/// Where memory holds them all examples are in flight at once; else as many as it holds.
TEST(CudaSteps, AnEvaluationLayerByLayerTakesFewLaunches) {
  const Network net = cases::network_of(kCifar);
  const Dataset data = zeros_for(net, 10'000);
  for (const auto& [gib, launches] : {std::pair{80, 13u}, {24, 39u}}) {
    EngineSettings s;
    s.precision = Precision::tf32;
    DeviceLog log;
    const auto engine = device_engine(net, s,
                                      {.shared_bytes = std::size_t{227} * 1024,
                                       .multiprocessors = 132,
                                       .memory = static_cast<std::size_t>(gib) << 30,
                                       .log = &log,
                                       .runs = false});
    EXPECT_EQ(engine->logits(data).size(), 100'000u);
    EXPECT_EQ(log.launches.size(), launches) << gib << " GiB";
    EXPECT_LE(log.launches.size(), 40u);
  }
}

/// The norms of all examples, which importance sampling begins an epoch with.
TEST(CudaSteps, NormsOfAllExamplesTakeOneLaunchOfAFusedKernel) {
  for (const Case& model : {kCnn, kScatterCnn, kMlp, kLogistic}) {
    const Network net = cases::network_of(model);
    EngineSettings s;
    s.recipe = candidates(512);
    s.expected_batch = 512;
    DeviceLog log;
    const auto engine = noting_engine(net, s, zeros_for(net, 60'000), log);
    log = {};
    engine->measure_norms();
    EXPECT_EQ(log.launches, std::vector<std::string>{"fused norms"}) << model.name;
    EXPECT_EQ(log.waits, 0) << model.name;
    (void)engine->norm_total(1.0, 0x1p-20);
    EXPECT_EQ(log.launches.back(), "norm total");
    EXPECT_EQ(log.waits, 1) << "for the sum";
  }
}

/// A forward pass by a fused kernel gives the logits of the layers, of any number of examples.
TEST(CudaSteps, FusedKernelsEvaluateAsTheLayers) {
  const Case hidden{"hidden", "mlp", {7, 1, 1}, 4};
  for (const Case& model : {kCnn, kScatterCnn, kModel, hidden}) {
    SCOPED_TRACE(model.name);
    const Network net = cases::network_of(model);
    // More than the integers of three blocks would hold.
    const bool is_large = net.parameter_count > 10'000;
    const Dataset data = cases::examples_for(model, is_large ? 7 : 130);
    std::vector<float> logits[2];
    for (const int fused : {0, 1}) {
      const TestDevice device{.shared_bytes = std::size_t{227} * 1024};
      const auto engine = fused == 1 ? fused_engine(net, EngineSettings{}, device)
                                     : layer_wise_engine(net, {}, cuda::kLargeDense, device);
      engine->set_state(cases::weights_for(net));
      logits[fused] = engine->logits(data);
    }
    ASSERT_EQ(logits[0].size(), data.size() * static_cast<std::size_t>(net.outputs));
    ASSERT_EQ(logits[0].size(), logits[1].size());
    for (std::size_t i = 0; i < logits[0].size(); ++i)
      EXPECT_NEAR(logits[0][i], logits[1][i], 1e-5 * (1.0 + std::abs(logits[0][i]))) << i;
  }
}

// --- Undecided pairs ---

StepScalars loud() {
  StepScalars s = cases::still(0.25f);
  s.noise_std = 0x1p19f;
  return s;
}

EngineSettings settings_of(const StepRecipe& recipe) {
  EngineSettings s;
  s.recipe = recipe;
  s.key = {{11, 22, 33, 44, 55, 66, 77, 88}};
  s.micro_batch = 32;
  s.threads = 1;
  return s;
}

/// Nobody is drawn: sums are 0, and the same on every device.
StepRecipe noise_alone(OptimizerKind kind) {
  StepRecipe r{.draw = Poisson{0}};
  r.optimizer.kind = kind;
  r.optimizer.keep_average = true;
  return r;
}

TrainState start_of(const Network& net, const StepRecipe& r) {
  TrainState s = cases::weights_for(net);
  if (has_first_moment(r.optimizer.kind)) s.moment1.assign(net.parameter_count, 0.0f);
  if (has_second_moment(r.optimizer.kind)) s.moment2.assign(net.parameter_count, 0.0f);
  if (r.optimizer.keep_average) s.average = s.parameters;
  if (std::holds_alternative<TransformedGradient>(r.contribution)) {
    s.mean.assign(net.parameter_count, 0.25f);
    s.deviation.assign(net.parameter_count, 0.5f);
  }
  return s;
}

/// The numbers, from 0 on, of the last run's steps that the host completed. The launches behind
/// each completion tell how many steps were launched anew.
std::vector<std::size_t> stalled(const DeviceLog& log, std::size_t steps) {
  std::vector<std::size_t> at;
  std::size_t behind = 0;
  for (auto l = log.launches.rbegin(); l != log.launches.rend(); ++l) {
    if (*l == "finish") ++behind;
    if (*l != "finish pairs") continue;
    // All that came behind this one are steps, but for those left out after each later one.
    std::size_t left_out = 0;
    for (const std::size_t later : at) left_out += steps - 1 - later;
    at.push_back(steps - 1 - (behind - left_out));
  }
  std::reverse(at.begin(), at.end());
  return at;
}

class UndecidedPairs : public testing::Test {
 protected:
  /// Makes a run on the CPU and one under the emulator, from step `first` on.
  void run(const StepRecipe& recipe, std::uint64_t first, std::size_t steps,
           const StepScalars& scalars) {
    const EngineSettings s = settings_of(recipe);
    const Dataset data = cases::examples_for(kModel, 33);
    const auto cpu = make_cpu_engine(net_, s);
    log_ = {};
    const auto device = device_engine(net_, s, {.log = &log_});
    for (Engine* e : {cpu.get(), device.get()}) {
      e->load(data);
      e->set_state(start_of(net_, recipe));
      log_ = {};
      e->run(recipe, first, std::vector<StepScalars>(steps, scalars));
      (e == cpu.get() ? want_ : got_) = e->state();
    }
    stalled_ = stalled(log_, steps);
  }

  const Network net_ = cases::network_of(kModel);
  DeviceLog log_;
  TrainState want_, got_;
  std::vector<std::size_t> stalled_;
};

void expect_near(const std::vector<float>& got, const std::vector<float>& want, float within,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t j = 0; j < got.size(); ++j)
    ASSERT_TRUE(std::abs(got[j] - want[j]) <= within * std::abs(want[j]))
        << what << " " << j << ": " << got[j] << ", " << want[j];
}

TEST_F(UndecidedPairs, AreTheCpusInEveryStepOfARun) {
  constexpr std::size_t kSteps = 3;
  std::set<std::size_t> seen;
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov, OptimizerKind::adam,
        OptimizerKind::adamw})
    for (std::uint64_t first = 0; first < 6; first += kSteps) {
      SCOPED_TRACE(testing::Message() << "optimizer " << static_cast<int>(kind) << ", " << first);
      run(noise_alone(kind), first, kSteps, loud());
      seen.insert(stalled_.begin(), stalled_.end());
      EXPECT_EQ(got_.moment1, want_.moment1);
      expect_near(got_.parameters, want_.parameters, 2e-6f, "parameter");
      expect_near(got_.moment2, want_.moment2, 2e-6f, "second moment");
      expect_near(got_.average, want_.average, 2e-6f, "average");
    }
  EXPECT_EQ(seen, (std::set<std::size_t>{0, 1, 2})) << "the first, a middle and the last step";
}

/// Of importance sampling, of which nobody is a candidate.
TEST_F(UndecidedPairs, OfDirectionsAreTheCpusToo) {
  StepRecipe r = noise_alone(OptimizerKind::momentum);
  r.draw = Candidates{{.clip = 1.0, .multiple = 1.0, .min_norm = 1e-9, .rate = 1e-9}};
  r.contribution = AcceptedDirection{};
  run(r, 3, 6, loud());
  EXPECT_FALSE(stalled_.empty());
  EXPECT_EQ(got_.moment1, want_.moment1);
  EXPECT_EQ(got_.norms, want_.norms);
  expect_near(got_.parameters, want_.parameters, 2e-6f, "parameter");
}

TEST_F(UndecidedPairs, WaitWithTheirStepSizeAndCoordinates) {
  StepRecipe adaptive = noise_alone(OptimizerKind::momentum);
  adaptive.optimizer.momentum = 0.0f;
  adaptive.step_size = StepSizeSettings{.weight = 4.0, .period = 2, .min_growth = 0.5};
  run(adaptive, 3, 5, loud());
  EXPECT_FALSE(stalled_.empty());
  EXPECT_EQ(got_.moment1, want_.moment1);
  EXPECT_NEAR(got_.step_size_sum, want_.step_size_sum, 1e-9 * want_.step_size_sum);
  expect_near(got_.parameters, want_.parameters, 2e-5f, "parameter");

  StepRecipe transformed = noise_alone(OptimizerKind::momentum);
  transformed.contribution = TransformedGradient{};
  run(transformed, 3, 5, loud());
  EXPECT_FALSE(stalled_.empty());
  expect_near(got_.moment1, want_.moment1, 2e-5f, "moment");
  expect_near(got_.parameters, want_.parameters, 2e-5f, "parameter");
  expect_near(got_.mean, want_.mean, 2e-5f, "mean");
  expect_near(got_.deviation, want_.deviation, 2e-5f, "deviation");
}

/// A step is seldom left with one undecided pair alone, and the host waits once for each stall.
TEST_F(UndecidedPairs, TakeAWaitForEachStepThatHasSome) {
  run(noise_alone(OptimizerKind::momentum), 0, 8, loud());
  ASSERT_GE(stalled_.size(), 2u);
  EXPECT_TRUE(std::is_sorted(stalled_.begin(), stalled_.end()));
  EXPECT_EQ(std::set<std::size_t>(stalled_.begin(), stalled_.end()).size(), stalled_.size())
      << "no step is completed twice";
  EXPECT_EQ(log_.recordings, 2);
}

/// Steps whose examples differ are left out and taken again: batches, norms and counts too.
TEST_F(UndecidedPairs, LeaveTheStepsBehindThemToBeTakenAnew) {
  StepRecipe r{.draw = Poisson{std::uint64_t{1} << 31}};
  EngineSettings s = settings_of(r);
  s.diagnostics = true;
  const Dataset data = cases::examples_for(kModel, 200);
  StepScalars quiet = loud();
  quiet.learning_rate = 0.0f;
  std::size_t stalls = 0;
  for (const bool may_be_fused : {true, false}) {
    DeviceLog log;
    const TestDevice device{.log = &log};
    const auto engine = may_be_fused ? fused_engine(net_, s, device)
                                     : layer_wise_engine(net_, s, std::int64_t{1} << 20, device);
    engine->load(data);
    engine->set_state(cases::weights_for(net_));
    log = {};
    engine->run(r, 0, std::vector<StepScalars>(6, quiet));
    stalls += stalled(log, 6).size();
    std::uint64_t drawn = 0;
    for (std::uint64_t step = 0; step < 6; ++step) drawn += engine->sampled(step).size();
    EXPECT_EQ(engine->diagnostics().examples, drawn) << "each step is counted once";
  }
  EXPECT_GT(stalls, 0u);
}

/// As many batches are drawn at once as there is memory for, twice as many as before if runs follow
/// each other. A run whose batches are not there draws them again. Steps are the same.
TEST_F(UndecidedPairs, BatchesDrawnAheadAreThoseOfSingleSteps) {
  constexpr std::size_t kSteps = 7;
  StepRecipe r{.draw = Poisson{std::uint64_t{1} << 28}};
  r.optimizer.kind = OptimizerKind::momentum;
  EngineSettings s = settings_of(r);
  s.diagnostics = true;
  Dataset data = cases::examples_for(kModel, 300);
  data.first = 512;
  struct Way {
    std::size_t memory, steps_of_a_run, pairs_of_launches, begins;  // without stalls
  };
  const Way ways[] = {{std::size_t{4} << 30, kSteps, 1, 1},    // all of them at once
                      {std::size_t{3} << 19, kSteps, 3, 3},    // three
                      {std::size_t{900} << 10, kSteps, 0, 0},  // none ahead
                      {std::size_t{4} << 30, 1, 3, kSteps},    // 1, 2 and 4
                      {std::size_t{3} << 19, 4, 3, 4}};
  std::vector<TrainState> states;
  std::vector<Diagnostics> seen;
  for (const float noise : {0.0f, 0x1p19f})
    for (const Way& way : std::span(ways).first(noise == 0.0f ? std::size(ways) : 2)) {
      SCOPED_TRACE(testing::Message() << way.memory << ", " << way.steps_of_a_run);
      DeviceLog log;
      const auto engine = device_engine(net_, s, {.memory = way.memory, .log = &log});
      engine->load(data);
      engine->set_state(start_of(net_, r));
      log = {};
      StepScalars scalars = cases::still(0.25f);
      scalars.noise_std = noise;
      for (std::size_t at = 0; at < kSteps; at += way.steps_of_a_run)
        engine->run(r, 5 + at,
                    std::vector<StepScalars>(std::min(way.steps_of_a_run, kSteps - at), scalars));
      const auto pairs = static_cast<std::size_t>(std::ranges::count(log.launches, "flags ahead"));
      if (noise == 0.0f)
        EXPECT_EQ(pairs, way.pairs_of_launches);
      else
        EXPECT_GE(std::ranges::count(log.launches, "finish pairs"), 1);
      EXPECT_EQ(std::ranges::count(log.launches, "flags") > 0, way.pairs_of_launches == 0);
      const auto begins = static_cast<std::size_t>(std::ranges::count(log.launches, "begin"));
      EXPECT_TRUE(noise != 0.0f || begins == way.begins) << "the step before starts the others";
      states.push_back(engine->state());
      seen.push_back(engine->diagnostics());
      const std::size_t same = states.size() <= std::size(ways) ? 0 : std::size(ways);
      EXPECT_EQ(states.back().parameters, states[same].parameters);
      EXPECT_EQ(states.back().moment1, states[same].moment1);
      std::uint64_t drawn = 0;
      for (std::uint64_t step = 5; step < 5 + kSteps; ++step) drawn += engine->sampled(step).size();
      EXPECT_EQ(seen.back().examples, drawn);
      EXPECT_EQ(seen.back().norm_units, seen[same].norm_units);
    }
}

/// Batches that are kept are those of the training set, and of the steps, that are there: after
/// steps that were left out, steps that are taken once more, another training set and another rate.
TEST_F(UndecidedPairs, KeptBatchesAreThoseOfTheirSteps) {
  constexpr std::uint64_t kThreshold = std::uint64_t{1} << 30;
  const Dataset sets[] = {cases::examples_for(kModel, 300), cases::examples_for(kModel, 200)};
  struct Run {
    std::size_t set;
    std::uint64_t first;
    std::size_t steps;
    std::ptrdiff_t draws;
    std::uint64_t threshold = kThreshold;
  };
  // Drawn: 0..2, 3..8 of the first set; 4, 20 and 21..22 of the second, and 22 at each rate.
  const Run runs[] = {{0, 0, 3, 1},  {0, 3, 1, 1},  {0, 6, 3, 0},
                      {0, 4, 2, 0},  {1, 4, 1, 1},  {1, 20, 1, 1},
                      {1, 21, 1, 1}, {1, 22, 1, 0}, {1, 22, 1, 1, kThreshold / 2},
                      {1, 22, 1, 1}};
  DeviceLog log;
  const EngineSettings settings = settings_of({.draw = Poisson{kThreshold}});
  const auto engine = device_engine(net_, settings, {.log = &log});
  const StepScalars scalars = cases::still(0.25f);
  for (const Run& run : runs) {
    const StepRecipe r{.draw = Poisson{run.threshold}};
    SCOPED_TRACE(testing::Message() << "set " << run.set << ", step " << run.first);
    const auto trained = [&](Engine& of, bool loads) {
      if (loads) of.load(sets[run.set]);
      of.set_state(start_of(net_, r));
      log = {};
      of.run(r, run.first, std::vector<StepScalars>(run.steps, scalars));
      return of.state().parameters;
    };
    const bool is_first = &run == runs || run.set != (&run - 1)->set;
    const std::vector<float> got = trained(*engine, is_first);
    EXPECT_EQ(std::ranges::count(log.launches, "flags ahead"), run.draws);
    EXPECT_EQ(got, trained(*device_engine(net_, settings, {}), true));
  }
}

/// Batches of one or more epochs are drawn together, and one launch allocates the examples of as
/// many epochs as there is memory for. Steps are the same.
TEST_F(UndecidedPairs, AllocatedBatchesDrawnAheadAreThoseOfSingleSteps) {
  constexpr std::size_t kSteps = 9;
  StepRecipe r{.draw = Allocation{4}};
  r.optimizer.kind = OptimizerKind::momentum;
  EngineSettings s = settings_of(r);
  s.diagnostics = true;
  Dataset data = cases::examples_for(kModel, 300);
  data.first = 512;
  struct Way {
    std::size_t memory, steps_of_a_run;
    std::ptrdiff_t draws, begins, epochs;
  };
  // Steps 6 to 14 are of epochs 1, 2 and 3. Two epochs, of 512 examples, take 4 KB of memory, a
  // batch ahead 0.9 KB.
  const Way ways[] = {{std::size_t{4} << 30, kSteps, 1, 1, 1},
                      {std::size_t{4} << 20, kSteps, 3, 3, 2},
                      {std::size_t{900} << 10, kSteps, 0, 0, 3},
                      {std::size_t{4} << 30, 1, 4, 9, 1}};
  std::vector<TrainState> states;
  const auto cpu = make_cpu_engine(net_, s);
  cpu->load(data);
  for (const Way& way : ways) {
    SCOPED_TRACE(testing::Message() << way.memory << ", " << way.steps_of_a_run);
    DeviceLog log;
    const auto engine = device_engine(net_, s, {.memory = way.memory, .log = &log});
    engine->load(data);
    engine->set_state(start_of(net_, r));
    log = {};
    StepScalars scalars = cases::still(0.25f);
    scalars.noise_std = 0.0f;
    for (std::size_t at = 0; at < kSteps; at += way.steps_of_a_run)
      engine->run(r, 6 + at,
                  std::vector<StepScalars>(std::min(way.steps_of_a_run, kSteps - at), scalars));
    EXPECT_EQ(std::ranges::count(log.launches, "flags ahead"), way.draws);
    EXPECT_EQ(std::ranges::count(log.launches, "begin"), way.begins);
    EXPECT_EQ(std::ranges::count(log.launches, "allocate"), way.epochs);
    states.push_back(engine->state());
    EXPECT_EQ(states.back().parameters, states[0].parameters);
    EXPECT_EQ(states.back().moment1, states[0].moment1);
    std::uint64_t drawn = 0;
    for (std::uint64_t step = 6; step < 6 + kSteps; ++step) {
      EXPECT_EQ(engine->sampled(step), cpu->sampled(step)) << step;
      drawn += cpu->sampled(step).size();
    }
    EXPECT_EQ(engine->diagnostics().examples, drawn);
  }
}

/// The engine's own steps and the host's, one after the other, of one emulated device.
struct Followed {
  FollowedSteps steps;
  TrainState state;
  Diagnostics seen;
  std::size_t stalls = 0;
};
Followed follow(const Network& net, const ClipRule& rule, std::size_t steps, bool by_device) {
  StepRecipe r{.draw = Poisson{std::uint64_t{1} << 31}};
  EngineSettings s = settings_of(r);
  s.diagnostics = true;
  DeviceLog log;
  const auto engine = device_engine(net, s, {.log = &log});
  engine->load(cases::examples_for(kModel, 200));
  engine->set_state(cases::weights_for(net));
  StepScalars given = loud();
  given.learning_rate = 1e-9f;
  const std::vector<StepScalars> scalars(steps, given);
  std::vector<std::int64_t> noise(steps);
  for (std::size_t i = 0; i < steps; ++i)
    noise[i] = static_cast<std::int64_t>(i * 2'654'435'761u % 40'000'000u) - 20'000'000;
  log = {};
  Followed f;
  f.steps = by_device ? engine->run_following(r, 7, scalars, rule, 1.5f, noise)
                      : engine->Engine::run_following(r, 7, scalars, rule, 1.5f, noise);
  EXPECT_NO_THROW(check_followed(f.steps, rule, 1.5f, scalars));
  if (by_device) {
    f.stalls = stalled(log, steps).size();
    EXPECT_EQ(log.waits, 1 + 3 * static_cast<int>(f.stalls)) << "the bits, the pairs and the end";
    EXPECT_EQ(log.recordings, 2);
  }
  f.state = engine->state();
  f.seen = engine->diagnostics();
  f.seen += f.steps.diagnostics;
  return f;
}

/// A clipping norm moves once its step is complete, and as the host moves it: to the bit.
TEST_F(UndecidedPairs, DelayAMovingClippingNorm) {
  for (const bool normalised : {false, true}) {
    const ClipRule rule{.target = 0.3,
                        .rate = 0.4,
                        .min_clip = 0.01,
                        .max_clip = 100.0,
                        .expected_batch = 100.0,
                        .grid = 0x1p-20,
                        .noise_multiplier = 0x1.8p18,
                        .sensitivity = 1.0625,
                        .normalised = normalised};
    const Followed device = follow(net_, rule, 8, true);
    const Followed host = follow(net_, rule, 8, false);
    EXPECT_GE(device.stalls, 2u);
    EXPECT_EQ(device.steps.noisy_counts, host.steps.noisy_counts);
    std::set<float> norms;
    for (std::size_t i = 0; i < 8; ++i) {
      norms.insert(device.steps.scalars[i].clip_norm);
      EXPECT_EQ(device.steps.scalars[i].clip_norm, host.steps.scalars[i].clip_norm) << i;
      EXPECT_EQ(device.steps.scalars[i].noise_std, host.steps.scalars[i].noise_std) << i;
      EXPECT_EQ(device.steps.scalars[i].inverse_batch, host.steps.scalars[i].inverse_batch) << i;
    }
    EXPECT_EQ(norms.size(), 8u) << "it moves";
    EXPECT_EQ(device.state.parameters, host.state.parameters);
    EXPECT_EQ(device.seen.examples, host.seen.examples);
    EXPECT_EQ(device.seen.clipped, host.seen.clipped);
  }
}

TEST_F(UndecidedPairs, AreTheHostsWhereTheNoiseOfSomeNormsIsOutOfRange) {
  // One norm in two would have more than 2^40 units of noise: the host checks every step.
  const ClipRule rule{.rate = 0.01,
                      .min_clip = 0.25,
                      .max_clip = 0.25,
                      .expected_batch = 100.0,
                      .grid = 0x1p-20,
                      .noise_multiplier = 0x1.8p19};
  StepRecipe r{.draw = Poisson{0}};
  EngineSettings s = settings_of(r);
  s.diagnostics = true;
  DeviceLog log;
  const auto engine = device_engine(net_, s, {.log = &log});
  engine->load(cases::examples_for(kModel, 20));
  engine->set_state(cases::weights_for(net_));
  log = {};
  const std::vector<StepScalars> given(3, loud());
  const std::vector<std::int64_t> noise(3, 0);
  const FollowedSteps steps = engine->run_following(r, 0, given, rule, 0.25f, noise);
  EXPECT_GE(log.waits, 3) << "a run for each step";
  EXPECT_EQ(check_followed(steps, rule, 0.25f, given), 0.25f);
}

// --- Rooms ---

/// A batch that is larger than a recorded step has room for is drawn again once it has.
TEST(CudaRoom, GrowsWithoutALostStep) {
  const Network net = cases::network_of(kModel);
  const Dataset data = cases::examples_for(kModel, 200);
  StepRecipe r = {.draw = Candidates{{.clip = 1.0, .multiple = 4.0, .min_norm = 0.5, .rate = 0.2}},
                  .contribution = AcceptedDirection{}};
  TrainState got[2];
  for (const double expected_batch : {0.0, 1e-3}) {
    EngineSettings s = settings_of(r);
    s.expected_batch = expected_batch;
    DeviceLog log;
    const auto engine = device_engine(net, s, {.log = &log});
    engine->load(data);
    engine->set_state(cases::weights_for(net));
    engine->measure_norms();
    log = {};
    StepScalars scalars = cases::still(0.05f);
    scalars.noise_std = 0.3f;
    scalars.inverse_batch = 0.1f;
    engine->run(r, 0, std::vector<StepScalars>(5, scalars));
    EXPECT_EQ(log.recordings, expected_batch > 0.0 ? 2 : 1);
    got[expected_batch > 0.0 ? 1 : 0] = engine->state();
  }
  EXPECT_EQ(got[0].parameters, got[1].parameters);
  EXPECT_EQ(got[0].norms, got[1].norms);
}

/// A recorded step takes its batch at once where the device has memory for it.
TEST(CudaRoom, FollowsTheMemoryOfTheDevice) {
  const Network net = cases::network_of(kCifar);
  const Dataset data = zeros_for(net, 60'000);
  EngineSettings s;
  s.recipe = clipped(Clipping::flat, 2048);
  std::vector<std::size_t> launches;
  for (const std::size_t gib : {4u, 8u, 80u}) {
    DeviceLog log;
    const auto engine = device_engine(net, s, {.memory = gib << 30, .log = &log, .runs = false});
    engine->load(data);
    log = {};
    engine->run(s.recipe, 0, std::vector<StepScalars>(1, cases::still()));
    launches.push_back(log.launches.size());
  }
  EXPECT_GT(launches[0], launches[1]);
  EXPECT_GT(launches[1], launches[2]);
}

TEST(CudaRoom, ThereAreFewerExamplesInFlightWhereMemoryHasRunOut) {
  const Network net = cases::network_of(kModel);
  const Dataset data = cases::examples_for(kModel, 200);
  StepRecipe r{.draw = Poisson{std::uint64_t{1} << 31}};
  std::vector<std::vector<float>> trained, logits;
  std::vector<std::string> said;
  for (const std::size_t memory : {std::size_t{4} << 30, std::size_t{3} << 20}) {
    EngineSettings s = settings_of(r);
    s.micro_batch = 0;
    s.say = [&](const std::string& line) { said.push_back(line); };
    const auto engine = layer_wise_engine(net, s, cuda::kLargeDense, {.memory = memory});
    engine->load(data);
    engine->set_state(cases::weights_for(net));
    engine->run(r, 0, std::vector<StepScalars>(3, cases::still(0.1f)));
    trained.push_back(engine->state().parameters);
    logits.push_back(engine->logits(data));
    EXPECT_EQ(said.empty(), memory > 3u << 20);
  }
  EXPECT_EQ(trained[0], trained[1]);
  EXPECT_EQ(logits[0], logits[1]);
  for (const std::string& line : said)
    EXPECT_TRUE(line.starts_with("device: its memory does not hold")) << line;
}

/// Where a row of a product depends on its place the engine's own products are taken.
TEST(CudaBlas, IsNotUsedWhereRowsDependOnTheirPlace) {
  const Network net = cases::network_of(kModel);
  const Dataset data = cases::examples_for(kModel, 40);
  std::vector<std::string> said;
  EngineSettings s = settings_of({.draw = Poisson{std::uint64_t{1} << 31}});
  s.say = [&](const std::string& line) { said.push_back(line); };
  const auto logits = [&](std::int64_t large_dense, bool by_place) {
    const auto engine = layer_wise_engine(net, s, large_dense, {.blas_by_place = by_place});
    engine->load(data);
    engine->set_state(cases::weights_for(net));
    return engine->logits(data);
  };
  const std::vector<float> own = logits(cuda::kLargeDense, true);
  (void)logits(1, false);
  EXPECT_TRUE(said.empty()) << "BLAS is used";
  EXPECT_EQ(logits(1, true), own);
  EXPECT_EQ(said,
            (std::vector<std::string>{
                "device: cuBLAS is not used, because a row's bits depend on the other rows"}));
}

TEST(CudaRoom, ADeviceWithoutMemoryFailsWithOneLine) {
  const Network net = cases::network_of(kModel);
  EngineSettings s = settings_of({.draw = Poisson{std::uint64_t{1} << 31}});
  try {
    device_engine(net, s, {.memory = 1000})->load(cases::examples_for(kModel, 200));
    ADD_FAILURE() << "expected no memory";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::failure);
    EXPECT_NE(std::string(e.what()).find("bytes of memory left"), std::string::npos) << e.what();
  }
}

// --- A release observer ---

/// A release observer is shown whole releases.
TEST_F(UndecidedPairs, AreCompleteBeforeAnObserverIsShown) {
  struct Seen : ReleaseObserver {
    void on_release(const ReleasedValue&, std::span<std::byte> values) override {
      all.insert(all.end(), values.begin(), values.end());
    }
    std::vector<std::byte> all;
  };
  for (const bool adaptive : {false, true}) {
    StepRecipe r = noise_alone(OptimizerKind::sgd);
    if (adaptive) r.step_size = StepSizeSettings{};
    Seen seen[2];
    TrainState after[2];
    for (const int i : {0, 1}) {
      EngineSettings s = settings_of(r);
      s.release_observer = &seen[i];
      log_ = {};
      const auto engine =
          i == 0 ? make_cpu_engine(net_, s) : device_engine(net_, s, {.log = &log_});
      engine->load(cases::examples_for(kModel, 33));
      engine->set_state(start_of(net_, r));
      engine->run(r, 0, std::vector<StepScalars>(4, loud()));
      after[i] = engine->state();
    }
    EXPECT_GT(std::ranges::count(log_.launches, "finish pairs"), 0);
    EXPECT_FALSE(seen[0].all.empty());
    EXPECT_TRUE(seen[0].all == seen[1].all);
    expect_near(after[1].parameters, after[0].parameters, 2e-5f, "parameter");
  }
}

}  // namespace
}  // namespace cudp

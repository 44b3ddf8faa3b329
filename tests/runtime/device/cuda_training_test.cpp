// The CUDA engine trains what the CPU trains: targets, class weights, rows that were held out. It
// is judged by the oracle in double, which shares no code with either, and by the CPU where numbers
// must be equal. cudp_tests runs it under the emulator, cudp_ptx_tests as nvcc's PTX, and
// cudp_gpu_tests on a device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/oracle_sums.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

using cases::Adds;
using cases::CodedModel;
using cases::falling_weights;
using cases::InfluenceCase;
using cases::kCodedModels;
using cases::target_case;

using MakeDeviceEngine = std::unique_ptr<Engine> (*)(const Network&, const EngineSettings&);

// With the default of 4,096 examples in flight, most of the time would go to filling memory.
EngineSettings few_in_flight(EngineSettings s) {
  s.micro_batch = 32;
  return s;
}
std::unique_ptr<Engine> chosen_engine(const Network& net, const EngineSettings& s) {
  return device_engine(net, few_in_flight(s));
}
std::unique_ptr<Engine> by_layers(const Network& net, const EngineSettings& s) {
  return layer_wise_engine(net, few_in_flight(s));
}
constexpr MakeDeviceEngine kDeviceEngines[] = {chosen_engine, by_layers};

constexpr Adds kEveryAdds[] = {Adds::flat, Adds::per_layer, Adds::automatic, Adds::directions,
                               Adds::transformed};

/// Models without a hidden layer, with one and with two. All have a fused kernel; by_layers()
/// computes them without it.
constexpr const char* kOneHidden = R"(
name = "one_hidden"
layers = [
  { type = "dense", name = "a", out = 21 },
  { type = "tanh" },
  { type = "dense", name = "b", out = "outputs" },
]
)";
const char* const kDeviceTargetModels[] = {"linear", kOneHidden, cases::kHidden};

/// Compares a sum, of the rows as codes and as dense rows, with the oracle's.
void expect_sum_of_oracle(const InfluenceCase& c, Adds adds) {
  const Dataset dense = cudp::dense(c.data);
  const reference::Values want = cases::oracle_sum(c);
  for (const MakeDeviceEngine make : kDeviceEngines)
    for (const Dataset* data : {&c.data, &dense}) {
      const std::vector<float> got = cases::released_sum(*make(c.net, c.settings), c, *data);
      const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
      EXPECT_GT(d.size, 0.05);
      EXPECT_LE(d.error, (adds == Adds::transformed ? 1e-3 : 2e-5) * (d.size + 1.0) +
                             cases::grid_error(1.0, want.size(), c.data.size()));
    }
}

/// The default of `cudp train --device cuda` for small images: the fused kernel of cnn for bytes,
/// in TF32; without and with class weights.
TEST(CudaBytes, SumsOfCnnInTf32AreTheOracles) {
  const cases::Case cnn{"cnn", "cnn", {1, 28, 28}, 10};
  for (const bool weighs : {false, true}) {
    InfluenceCase c;
    c.net = cases::network_of(cnn);
    c.data = cases::examples_for(cnn, 2);
    c.data.shift = 0.0f;
    cases::prepare(c, 1);
    c.settings.precision = Precision::tf32;
    if (weighs) c.settings.class_weights = falling_weights(cnn.classes);
    cases::state_bound(c);
    c.state = cases::weights_for(c.net);
    c.state.moment1.assign(c.net.parameter_count, 0.0f);
    const reference::Values want = cases::oracle_sum(c);
    const auto engine =
        device_engine(c.net, few_in_flight(c.settings), {.shared_bytes = std::size_t{227} * 1024});
    const std::vector<float> got = cases::released_sum(*engine, c, c.data);
    const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
    EXPECT_GT(d.size, 0.05);
    EXPECT_LE(d.error, 1e-3 * d.size + cases::grid_error(1.0, want.size(), c.data.size()));
    EXPECT_GE(d.error, 1e-6 * d.size) << "was it TF32?";
  }
}

TEST(CudaTargets, SumsAreTheOracles) {
  for (const char* const model : kDeviceTargetModels)
    for (const Loss loss : {Loss::squared, Loss::huber})
      for (const Adds adds : {Adds::flat, Adds::per_layer, Adds::automatic, Adds::transformed}) {
        SCOPED_TRACE(testing::Message() << model << ", loss " << static_cast<int>(loss) << ", adds "
                                        << static_cast<int>(adds));
        expect_sum_of_oracle(target_case(model, loss, adds, 3), adds);
      }
}

TEST(CudaTargets, GradientsLossesAndNormsAreTheOracles) {
  for (const char* const model : kDeviceTargetModels)
    for (const Loss loss : {Loss::squared, Loss::huber}) {
      InfluenceCase c = target_case(model, loss, Adds::directions, 5);
      c.settings.diagnostics = true;
      reference::ReferenceEngine oracle(c.net, c.settings);
      const Dataset dense = cudp::dense(c.data);
      oracle.load(dense);
      oracle.set_state(c.state);
      oracle.measure_norms();
      const std::uint32_t some[] = {0, 7, 39};
      const PerExample want = oracle.per_example(some, true);
      for (const MakeDeviceEngine make : kDeviceEngines) {
        const auto device = make(c.net, c.settings);
        device->load(c.data);
        device->set_state(c.state);
        device->measure_norms();
        for (std::size_t i = 0; i < c.data.size(); ++i)
          EXPECT_NEAR(device->norms()[i], oracle.norms()[i], 2e-5 * (1.0f + oracle.norms()[i]));
        cases::expect_same_gradients(device->per_example(some, true), want);
      }
    }
}

/// Rows and targets that overflow: each row adds what it adds alone, within the bound.
TEST(CudaTargets, ARowAddsNoMoreThanIsStated) {
  for (const char* const model : kDeviceTargetModels)
    for (const Adds adds : kEveryAdds)
      for (const MakeDeviceEngine make : kDeviceEngines) {
        InfluenceCase c = target_case(model, Loss::huber, adds, 2, true, 16);
        if (adds == Adds::flat || adds == Adds::transformed) c.net.spec.loss = Loss::squared;
        constexpr float kHostile[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
        std::ranges::copy(kHostile, c.data.targets.begin() + 3);
        EXPECT_EQ(cases::measure_influence([&] { return make(c.net, c.settings); }, c).fault, "");
      }
}

TEST(CudaTargets, ExamplesWithoutTargetsAreRefused) {
  InfluenceCase c = target_case("linear", Loss::squared, Adds::flat, 1);
  c.data.targets.pop_back();
  EXPECT_THROW(device_engine(c.net, c.settings)->load(c.data), Error);
}

InfluenceCase weighted_device_case(const CodedModel& model, Adds adds, unsigned seed) {
  InfluenceCase c = cases::coded_case(model, adds, seed, 40, false);
  c.settings.class_weights = falling_weights(model.classes);
  return c;
}

TEST(CudaClassWeights, SumsAreTheOracles) {
  for (const CodedModel& model : kCodedModels)
    for (const Adds adds : {Adds::flat, Adds::per_layer, Adds::automatic, Adds::transformed}) {
      SCOPED_TRACE(testing::Message() << model.name << ", adds " << static_cast<int>(adds));
      expect_sum_of_oracle(weighted_device_case(model, adds, 2), adds);
    }
}

/// Convolutions, normalisation, pooling; and words' vectors, a cell and a mean. cnn by its fused
/// kernel and layer by layer.
TEST(CudaClassWeights, SumsOfImagesAndTextsAreTheOracles) {
  std::vector<cases::Case> all(std::begin(cases::kCases), std::end(cases::kCases));
  all.insert(all.end(), std::begin(cases::kTextCases), std::end(cases::kTextCases));
  for (const cases::Case& of : all) {
    const Network net = cases::network_of(of);
    const Dataset data = cases::examples_for(of, 8);
    EngineSettings s;
    s.recipe.draw = Poisson{std::uint64_t{1} << 32};
    s.recipe.contribution = ClippedGradient{Clipping::per_layer};
    s.class_weights = falling_weights(of.classes);
    reference::ReferenceEngine oracle(net, s);
    const std::vector<float> want = cases::clipped_sum(oracle, s.recipe, net, data, 0.5f);
    std::vector<std::unique_ptr<Engine>> engines;
    engines.push_back(
        device_engine(net, few_in_flight(s), {.shared_bytes = std::size_t{227} * 1024}));
    if (of.name == std::string("cnn")) engines.push_back(by_layers(net, s));
    for (const auto& engine : engines) {
      const std::vector<float> got = cases::clipped_sum(*engine, s.recipe, net, data, 0.5f);
      const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
      EXPECT_LE(d.error, 1e-4 * d.size + 1e-5 * std::sqrt(static_cast<double>(want.size())))
          << of.name;
    }
  }
}

/// The fused kernel of texts.
TEST(CudaClassWeights, SumsOfTextsInTf32AreTheOracles) {
  const cases::Case& of = cases::kTextCases[0];
  const Network net = cases::network_of(of);
  const Dataset data = cases::examples_for(of, 8);
  EngineSettings s;
  s.precision = Precision::tf32;
  s.recipe.draw = Poisson{std::uint64_t{1} << 32};
  s.class_weights = falling_weights(of.classes);
  reference::ReferenceEngine oracle(net, s);
  const std::vector<float> want = cases::clipped_sum(oracle, s.recipe, net, data, 0.5f);
  const auto engine =
      device_engine(net, few_in_flight(s), {.shared_bytes = std::size_t{227} * 1024});
  const std::vector<float> got = cases::clipped_sum(*engine, s.recipe, net, data, 0.5f);
  const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
  EXPECT_GT(d.size, 0.05);
  EXPECT_LE(d.error, 2e-3 * d.size + 1e-5 * std::sqrt(static_cast<double>(want.size())));
}

/// An example counts as clipped if its unweighted gradient is clipped. Losses are not weighted.
TEST(CudaClassWeights, DiagnosticsAreTheCpus) {
  for (const int model : {0, 2, 4})
    for (const Adds adds : {Adds::flat, Adds::per_layer, Adds::automatic}) {
      InfluenceCase c = weighted_device_case(kCodedModels[model], adds, 4);
      c.settings.diagnostics = true;
      const auto facts = [&](Engine& engine) {
        cases::released_sum(engine, c, c.data);
        return engine.diagnostics();
      };
      const Diagnostics want = facts(*make_cpu_engine(c.net, c.settings));
      for (const MakeDeviceEngine make : kDeviceEngines) {
        const Diagnostics got = facts(*make(c.net, c.settings));
        EXPECT_EQ(got.examples, want.examples);
        EXPECT_EQ(got.clipped, want.clipped);
        EXPECT_NEAR(got.loss(), want.loss(), 1e-5 * want.loss());
        EXPECT_NEAR(got.norm(), want.norm(), 1e-5 * want.norm());
      }
    }
}

TEST(CudaClassWeights, CandidatesHaveTheNormsOfTheWeightedLoss) {
  for (const int model : {2, 4}) {
    InfluenceCase c = cases::coded_case(kCodedModels[model], Adds::directions, 3, 40, false);
    for (const MakeDeviceEngine make : kDeviceEngines) {
      const auto norms = [&] {
        const auto engine = make(c.net, c.settings);
        engine->load(c.data);
        engine->set_state(c.state);
        engine->measure_norms();
        return engine->norms();
      };
      c.settings.class_weights.clear();
      const std::vector<float> plain = norms();
      c.settings.class_weights = falling_weights(kCodedModels[model].classes);
      const std::vector<float> weighted = norms();
      for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_NEAR(weighted[i], c.settings.class_weights[c.data.labels[i]] * plain[i],
                    2e-5 * plain[i]);
    }
  }
}

TEST(CudaClassWeights, ARowAddsNoMoreThanIsStated) {
  for (const int model : {0, 2, 4})
    for (const Adds adds : kEveryAdds)
      for (const MakeDeviceEngine make : kDeviceEngines) {
        InfluenceCase c = cases::coded_case(kCodedModels[model], adds, 7, 20, true);
        c.settings.class_weights = falling_weights(kCodedModels[model].classes);
        c.settings.class_weights.front() = 0.0f;
        EXPECT_EQ(cases::measure_influence([&] { return make(c.net, c.settings); }, c).fault, "")
            << kCodedModels[model].name << ", adds " << static_cast<int>(adds);
      }
}

TEST(CudaClassWeights, WeightsAboveOneAreRefused) {
  InfluenceCase c = weighted_device_case(kCodedModels[0], Adds::flat, 1);
  c.settings.class_weights.back() = 1.5f;
  EXPECT_THROW(device_engine(c.net, c.settings), Error);
}

/// Returns a case whose rows are those that are left of more: numbers by which batches draw them
/// have gaps, and begin late.
InfluenceCase held_out_case(Adds adds, unsigned seed) {
  InfluenceCase c = cases::coded_case(kCodedModels[0], adds, seed, 60, false);
  std::mt19937 random(seed);
  std::uint32_t number = 700;
  for (std::size_t i = 0; i < c.data.size(); ++i)
    c.data.numbers.push_back(number += 1 + random() % 40);
  if (adds == Adds::directions)
    c.settings.recipe.draw =
        Candidates{{.clip = 1.0, .multiple = 2.0, .min_norm = 0.2, .rate = 0.5}};
  else
    c.settings.recipe.draw = Poisson{std::uint64_t{1} << 31};
  return c;
}

/// Batches are those that the CPU draws, of rows by their number in the whole file.
TEST(CudaHoldOut, BatchesAreTheCpus) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const InfluenceCase c = held_out_case(Adds::flat, seed);
    const auto cpu = make_cpu_engine(c.net, c.settings), device = device_engine(c.net, c.settings);
    cpu->load(c.data);
    device->load(c.data);
    Dataset unnumbered = c.data;
    unnumbered.numbers.clear();
    const auto by_index = device_engine(c.net, c.settings);
    by_index->load(unnumbered);
    int other = 0;
    for (std::uint64_t step = 0; step < 20; ++step) {
      EXPECT_EQ(device->sampled(step), cpu->sampled(step));
      other += device->sampled(step) != by_index->sampled(step) ? 1 : 0;
    }
    EXPECT_GT(other, 15) << "numbers change the batch";
  }
}

/// Sums, of a batch drawn with the step and of batches drawn ahead, are the CPU's; and candidates
/// are drawn by the norms of their own rows.
TEST(CudaHoldOut, TrainingIsTheCpus) {
  for (const Adds adds : {Adds::flat, Adds::directions})
    for (const bool observed : {true, false}) {
      InfluenceCase c = held_out_case(adds, 3);
      if (!observed) c.settings.release_observer = nullptr;
      c.settings.diagnostics = true;
      struct Trained {
        TrainState state;
        Diagnostics seen;
      };
      const auto trained = [&](Engine& engine) {
        engine.load(c.data);
        engine.set_state(c.state);
        if (adds == Adds::directions) engine.measure_norms();
        const std::vector<StepScalars> steps(4, cases::still(0.1f, c.clip_norm));
        engine.run(c.settings.recipe, 2, steps);
        return Trained{engine.state(), engine.diagnostics()};
      };
      const Trained want = trained(*make_cpu_engine(c.net, c.settings));
      EXPECT_GT(want.seen.examples, 20u);
      for (const MakeDeviceEngine make : kDeviceEngines) {
        const Trained got = trained(*make(c.net, c.settings));
        EXPECT_EQ(got.seen.examples, want.seen.examples);
        const cases::Distance d =
            cases::distance(got.state.parameters.data(), want.state.parameters.data(),
                            want.state.parameters.size());
        EXPECT_LE(d.error, 1e-5 * d.size);
        for (std::size_t i = 0; i < got.state.norms.size(); ++i)
          EXPECT_NEAR(got.state.norms[i], want.state.norms[i], 1e-4 * (1 + want.state.norms[i]));
      }
    }
}

/// Rows are allocated to the steps of an epoch by their numbers too: at their own step, and ahead.
TEST(CudaHoldOut, AllocatedBatchesAreTheCpus) {
  InfluenceCase c = held_out_case(Adds::flat, 4);
  c.settings.recipe.draw = Allocation{.steps = 3};
  c.settings.diagnostics = true;
  const auto cpu = make_cpu_engine(c.net, c.settings), device = device_engine(c.net, c.settings);
  cpu->load(c.data);
  device->load(c.data);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::size_t drawn = 0;
    for (std::uint64_t step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      const std::vector<std::uint32_t> batch = device->sampled(step);
      EXPECT_EQ(batch, cpu->sampled(step));
      drawn += batch.size();
    }
    EXPECT_EQ(drawn, c.data.size()) << "every row once in an epoch";
  }
  c.settings.release_observer = nullptr;
  const auto trained = [&](Engine& engine) {
    engine.load(c.data);
    engine.set_state(c.state);
    const std::vector<StepScalars> steps(7, cases::still(0.1f, c.clip_norm));
    engine.run(c.settings.recipe, 2, steps);
    EXPECT_EQ(engine.diagnostics().examples, 2 * c.data.size() + cpu->sampled(2).size());
    return engine.state().parameters;
  };
  const std::vector<float> want = trained(*make_cpu_engine(c.net, c.settings));
  for (const MakeDeviceEngine make : kDeviceEngines) {
    const std::vector<float> got = trained(*make(c.net, c.settings));
    const cases::Distance d = cases::distance(got.data(), want.data(), want.size());
    EXPECT_LE(d.error, 1e-5 * d.size);
  }
}

/// No product of a linear model is rounded at w = 0 if nothing is clipped. So the sum is the CPU's
/// to the bit, and with equal noise the released sum is too.
TEST(CudaReleases, AreTheCpusToTheBit) {
  const auto expect_equal = [](InfluenceCase c, const char* what) {
    SCOPED_TRACE(what);
    std::ranges::fill(c.state.parameters, 0.0f);
    const auto released = [&](Engine& engine) {
      engine.load(c.data);
      engine.set_state(c.state);
      StepScalars noisy = cases::still(0.1f, 1e3f);
      noisy.noise_std = 300.0f;
      c.released->sum.clear();
      engine.run(c.settings.recipe, 6, {&noisy, 1});
      return c.released->sum;
    };
    const std::vector<float> want = released(*make_cpu_engine(c.net, c.settings));
    EXPECT_GT(cases::distance(want.data(), want.data(), want.size()).size, 30.0);
    for (const MakeDeviceEngine make : kDeviceEngines)
      EXPECT_EQ(released(*make(c.net, c.settings)), want);
  };
  expect_equal(held_out_case(Adds::flat, 6), "held-out rows");
  InfluenceCase allocated = held_out_case(Adds::flat, 7);
  allocated.settings.recipe.draw = Allocation{.steps = 2};
  expect_equal(allocated, "held-out rows and allocation");
  expect_equal(target_case("linear", Loss::squared, Adds::flat, 8), "targets");
  InfluenceCase allocated_target = target_case("linear", Loss::huber, Adds::flat, 9);
  allocated_target.settings.recipe.draw = Allocation{.steps = 2};
  expect_equal(allocated_target, "targets and allocation");
  expect_equal(weighted_device_case(kCodedModels[0], Adds::flat, 10), "class weights");
}

/// A training that is stopped and goes on in another engine ends in the state of one that is not.
TEST(CudaResume, EndsInTheStateOfAnUninterruptedTraining) {
  InfluenceCase held_out = held_out_case(Adds::flat, 11);
  held_out.settings.class_weights = falling_weights(2);
  InfluenceCase target = target_case(kOneHidden, Loss::huber, Adds::flat, 12);
  target.settings.recipe.draw = Allocation{.steps = 4};
  for (InfluenceCase* const c : {&held_out, &target})
    for (const bool observed : {true, false}) {
      EngineSettings s = few_in_flight(c->settings);
      if (!observed) s.release_observer = nullptr;
      s.recipe.optimizer.kind = OptimizerKind::momentum;
      for (const MakeDeviceEngine make : kDeviceEngines) {
        const auto trained = [&](const TrainState& start, std::uint64_t first, std::size_t n) {
          const auto engine = make(c->net, s);
          engine->load(c->data);
          engine->set_state(start);
          StepScalars step = cases::still(0.1f, c->clip_norm);
          step.noise_std = 0.3f;
          engine->run(s.recipe, first, std::vector<StepScalars>(n, step));
          return engine->state();
        };
        const TrainState whole = trained(c->state, 2, 6), half = trained(c->state, 2, 3);
        const TrainState resumed = trained(half, 5, 3);
        EXPECT_EQ(resumed.parameters, whole.parameters);
        EXPECT_EQ(resumed.moment1, whole.moment1);
        EXPECT_NE(half.parameters, whole.parameters);
      }
    }
}

}  // namespace
}  // namespace cudp

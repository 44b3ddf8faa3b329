// Frozen layers, on the CPU and on CUDA: the gradients of the others are those of the whole
// network, and nothing else of the frozen ones is in a step. Learning rates of layers.
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "models/freeze.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

constexpr unsigned kFrozenModels = 60;

struct FrozenCase {
  Network whole;
  Network frozen;
  std::vector<float> weights;  ///< of the whole network
  Dataset data;

  /// Returns the trained part of numbers of the whole network.
  std::vector<float> trained(std::span<const float> all) const {
    std::vector<float> part;
    for (const ParameterTensor& t : frozen.parameters) {
      const auto from = std::ranges::find(whole.parameters, t.name, &ParameterTensor::name);
      const auto numbers = all.subspan(from->offset, from->size);
      part.insert(part.end(), numbers.begin(), numbers.end());
    }
    return part;
  }
};

/// Returns a random model of at least two layers with parameters, of which some are frozen.
std::optional<FrozenCase> frozen_case(unsigned seed) {
  const cases::RandomModel m = cases::random_model(seed);
  FrozenCase c;
  c.whole = build_network(parse_model(m.text, "model", m.classes), m.input, m.classes);
  if (c.whole.groups < 2) return std::nullopt;
  std::mt19937 random(seed);
  std::vector<bool> layers(c.whole.layers.size(), false);
  int trained = 0;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (c.whole.layers[i].parameter_count > 0) {
      layers[i] = random() % 2 == 0;
      trained += layers[i] ? 0 : 1;
    }
  if (trained == 0 || trained == c.whole.groups) return std::nullopt;
  c.weights = cases::weights_for(c.whole).parameters;
  c.frozen = freeze(c.whole, layers, c.weights);
  c.data.shape = m.input;
  c.data.classes = m.classes;
  c.data.scale = 1.0f / 64.0f;
  c.data.shift = -1.7f;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < m.input.size(); ++k)
      if (m.as_bytes)
        c.data.bytes.push_back(static_cast<std::uint8_t>(random() % 256));
      else
        c.data.floats.push_back(static_cast<float>(random() % 4001) / 1000.0f - 2.0f);
    c.data.labels.push_back(static_cast<std::uint8_t>(random() % static_cast<unsigned>(m.classes)));
  }
  return c;
}

EngineSettings settings_of(unsigned seed) {
  EngineSettings s;
  s.recipe.optimizer.kind = OptimizerKind::momentum;
  s.recipe.draw = Poisson{std::uint64_t{3} << 30};
  s.recipe.contribution = ClippedGradient{
      std::array{Clipping::flat, Clipping::per_layer, Clipping::automatic}[seed % 3]};
  s.key = {{seed, 1, 2, 3, 4, 5, 6, 7}};
  s.threads = 1;
  return s;
}

struct FrozenOn {
  const char* name;
  std::unique_ptr<Engine> (*make)(const Network&, const EngineSettings&);
  unsigned models;
};
constexpr FrozenOn kFrozenOn[] = {{"cpu", make_cpu_engine, kFrozenModels},
                                  {"cuda",
                                   [](const Network& n, const EngineSettings& s) {
                                     EngineSettings few = s;
                                     few.micro_batch = 16;
                                     return layer_wise_engine(n, few);
                                   },
                                   15}};

std::unique_ptr<Engine> engine_of(const FrozenOn& on, const Network& network,
                                  const std::vector<float>& parameters, const Dataset& data,
                                  const EngineSettings& settings) {
  auto engine = on.make(network, settings);
  engine->load(data);
  TrainState state;
  state.parameters = parameters;
  state.moment1.assign(parameters.size(), 0.0f);
  engine->set_state(state);
  return engine;
}

class FrozenLayers : public testing::TestWithParam<FrozenOn> {};
INSTANTIATE_TEST_SUITE_P(All, FrozenLayers, testing::ValuesIn(kFrozenOn),
                         [](const auto& i) { return std::string(i.param.name); });

TEST_P(FrozenLayers, GradientsOfTheOthersAreThoseOfTheWholeNetworkToTheBit) {
  unsigned tried = 0;
  for (unsigned seed = 0; seed < GetParam().models; ++seed) {
    const auto c = frozen_case(seed);
    if (!c) continue;
    ++tried;
    SCOPED_TRACE(seed);
    const EngineSettings s = settings_of(seed);
    const auto whole = engine_of(GetParam(), c->whole, c->weights, c->data, s);
    const auto frozen = engine_of(GetParam(), c->frozen, c->trained(c->weights), c->data, s);
    EXPECT_EQ(frozen->logits(c->data), whole->logits(c->data));
    std::vector<std::uint32_t> all(c->data.size());
    std::iota(all.begin(), all.end(), 0u);
    const PerExample want = whole->per_example(all, true);
    const PerExample got = frozen->per_example(all, true);
    EXPECT_EQ(got.losses, want.losses);
    const std::size_t d = c->whole.parameter_count;
    const std::size_t own = c->frozen.parameter_count;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::span<const float> g(want.gradients);
      const std::vector<float> part(
          got.gradients.begin() + static_cast<std::ptrdiff_t>(i * own),
          got.gradients.begin() + static_cast<std::ptrdiff_t>((i + 1) * own));
      EXPECT_EQ(part, c->trained(g.subspan(i * d, d)));
    }
    std::size_t group = 0;
    for (const NetworkLayer& l : c->frozen.layers) {
      if (!l.has_parameters()) continue;
      EXPECT_EQ(l.group, static_cast<int>(group));
      const auto& name = c->frozen.tensor(l, 0).name;
      const auto in_whole =
          std::ranges::find(c->whole.parameters, name, &ParameterTensor::name)->group;
      for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(got.squared_norms[i * static_cast<std::size_t>(c->frozen.groups) + group],
                  want.squared_norms[i * static_cast<std::size_t>(c->whole.groups) +
                                     static_cast<std::size_t>(in_whole)]);
      ++group;
    }
  }
  EXPECT_GE(tried, GetParam().models / 3);
}

/// Sums are clipped by the norms of the trained layers alone.
TEST_P(FrozenLayers, AStepIsTheOraclesOnTheTrainedLayersAlone) {
  for (unsigned seed = 0; seed < GetParam().models; ++seed) {
    const auto c = frozen_case(seed);
    if (!c) continue;
    SCOPED_TRACE(seed);
    const EngineSettings s = settings_of(seed);
    const StepScalars still = cases::still(0.0f, 0.3f);
    const auto engine = engine_of(GetParam(), c->frozen, c->trained(c->weights), c->data, s);
    engine->run(s.recipe, 2, {&still, 1});
    reference::ReferenceEngine oracle(c->frozen, s);
    oracle.load(c->data);
    TrainState state;
    state.parameters = c->trained(c->weights);
    state.moment1.assign(state.parameters.size(), 0.0f);
    oracle.set_state(state);
    oracle.run(s.recipe, 2, {&still, 1});
    const std::vector<float> got = engine->state().moment1, want = oracle.state().moment1;
    double off = 0.0, size = 0.0;
    for (std::size_t j = 0; j < got.size(); ++j) {
      off += std::pow(static_cast<double>(got[j]) - static_cast<double>(want[j]), 2.0);
      size += std::pow(static_cast<double>(want[j]), 2.0);
    }
    EXPECT_LE(std::sqrt(off), 1e-3 * std::sqrt(size) + 1e-3);
  }
}

constexpr std::unique_ptr<Engine> (*kRatesOn[])(const Network&, const EngineSettings&) = {
    make_cpu_engine, [](const Network& n, const EngineSettings& s) { return device_engine(n, s); },
    [](const Network& n, const EngineSettings& s) { return layer_wise_engine(n, s); }};

TEST(LearningRates, OfALayerIsScaledAndNothingElseIs) {
  const auto text = [](const char* rate) {
    return std::string(R"(name = "two"
activation = "tanh"
layers = [
  { type = "dense", name = "one", out = 33 },
  { type = "activation" },
  { type = "dense", name = "two", out = "outputs")") +
           rate + " },\n]\n";
  };
  const auto network = [&](const char* rate) {
    return build_network(parse_model(text(rate), "model", 3), {7, 1, 1}, 3);
  };
  const Network plain = network(""), scaled = network(", lr_scale = 0.25");
  EXPECT_FALSE(has_own_rates(plain));
  EXPECT_TRUE(has_own_rates(scaled));
  Dataset data;
  data.shape = {7, 1, 1};
  data.classes = 3;
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 7; ++k)
      data.floats.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
    data.labels.push_back(static_cast<std::uint8_t>(random() % 3));
  }
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam, OptimizerKind::adamw})
    for (const auto make : kRatesOn) {
      EngineSettings s = settings_of(0);
      s.micro_batch = 32;
      s.recipe.optimizer.kind = kind;
      s.recipe.optimizer.weight_decay = 0.125f;
      const std::vector<float> start = cases::weights_for(plain).parameters;
      const auto stepped = [&](const Network& n, float rate) {
        const auto engine = make(n, s);
        engine->load(data);
        TrainState state;
        state.parameters = start;
        if (has_first_moment(kind)) state.moment1.assign(start.size(), 0.0f);
        if (has_second_moment(kind)) state.moment2.assign(start.size(), 0.0f);
        engine->set_state(state);
        StepScalars scalars = cases::still(0.0f, 1.0f);
        scalars.learning_rate = rate;
        engine->run(s.recipe, 0, {&scalars, 1});
        return engine->state().parameters;
      };
      const std::vector<float> all = stepped(plain, 0.5f), quarter = stepped(plain, 0.125f),
                               mixed = stepped(scaled, 0.5f);
      const std::size_t border = plain.parameters[2].offset;
      for (std::size_t j = 0; j < start.size(); ++j)
        EXPECT_EQ(mixed[j], j < border ? all[j] : quarter[j]) << j;
      EXPECT_NE(all, mixed);
    }
}

}  // namespace
}  // namespace cudp

#pragma once
// Measurement of how far one example moves a sum, in grid steps, whatever numbers it holds. Models,
// data and settings are random, and some rows are made to overflow. The contribution of a row alone
// is compared with its contribution among other rows.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/data/examples.hpp"
#include "runtime/device/scratch_fill.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/gate/release_observer.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/random_models.hpp"

namespace cudp::cases {

/// Observer that copies the released sum of a step (runtime/gate/release_observer.hpp).
class SumObserver final : public ReleaseObserver {
 public:
  void on_release(const ReleasedValue&, std::span<std::byte> values) override {
    sum.resize(values.size() / sizeof(float));
    std::memcpy(sum.data(), values.data(), values.size());
  }
  EngineSettings shown_to_it() {
    EngineSettings s;
    s.release_observer = this;
    return s;
  }

  std::vector<float> sum;
};

struct InfluenceCase {
  std::string model;  ///< TOML
  Network net;
  Dataset data;
  TrainState state;
  std::shared_ptr<SumObserver> released = std::make_shared<SumObserver>();
  EngineSettings settings = released->shown_to_it();
  float clip_norm = 1.0f;
  double bound = 0.0;  ///< the stated sensitivity [grid steps]
  double grid = 0.0;

  const Contribution& contribution() const { return settings.recipe.contribution; }
  bool adds_directions() const { return std::holds_alternative<AcceptedDirection>(contribution()); }
};

/// Random model for texts, and the shape of its texts.
struct RandomTextModel {
  std::string text;
  Shape input;
  TextShape words;
  int classes;
};
inline RandomTextModel random_text_model(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto one_of = [&](int n) { return below(n) == 0; };
  const bool own = one_of(3);
  RandomTextModel m{.text = "name = \"texts\"\n",
                    .input = {1, 1, 1 + below(9)},
                    .words = {8 + below(30), own ? 0 : 1 + below(20)},
                    .classes = 2 + below(3)};
  static constexpr const char* kFunctions[] = {"relu", "tanh", "tempered_sigmoid"};
  m.text += std::string("activation = \"") + kFunctions[below(3)] + "\"\nlayers = [\n";
  const auto add = [&](const std::string& layer) { m.text += "  { type = " + layer + " },\n"; };
  if (own)
    add("\"embedding\", name = \"words\", trainable = true, columns = " +
        std::to_string(1 + below(20)));
  else
    add(std::string("\"embedding\", name = \"words\"") +
        (one_of(2) ? ", trainable = true, trainable_rows = " + std::to_string(1 + below(6)) : ""));
  const auto function = [&] {
    if (one_of(2)) add(std::string("\"") + kFunctions[below(3)] + "\"");
  };
  function();
  if (one_of(2)) {
    add("\"dense\", name = \"t\", per_token = true, out = " + std::to_string(1 + below(20)));
    function();
  }
  static constexpr const char* kOutputs[] = {"last", "mean", "sequence"};
  bool sequence = true;
  for (int i = below(3); i > 0 && sequence; --i) {
    const char* const output = i > 1 ? "sequence" : kOutputs[below(3)];
    sequence = std::string(output) == "sequence";
    add(std::string(one_of(2) ? "\"lstm\"" : "\"gru\"") + ", name = \"r" + std::to_string(i) +
        "\", hidden = " + std::to_string(1 + below(19)) +
        (one_of(2) ? ", bidirectional = true" : "") + ", output = \"" + output + "\"");
    function();
  }
  if (sequence) add(std::string("\"mean\"") + (one_of(2) ? ", unit = true" : ""));
  function();
  if (one_of(2)) {
    add("\"dense\", name = \"h\", out = " + std::to_string(1 + below(20)));
    function();
  }
  add("\"dense\", name = \"out\", out = \"outputs\"");
  if (one_of(2)) function();
  m.text += "]\n";
  return m;
}

/// Models in which one row once changed the contributions of others: an activation after padded
/// channels.
inline constexpr const char* kNormAfterTanh = R"(
name = "norm-after-tanh"
layers = [
  { type = "dense", name = "a", out = 8 },
  { type = "tanh" },
  { type = "groupnorm", name = "n", groups = 1 },
  { type = "dense", name = "b", out = "outputs" },
]
)";
inline constexpr const char* kTanhLast = R"(
name = "tanh-last"
layers = [
  { type = "dense", name = "a", out = "outputs" },
  { type = "tanh" },
]
)";

/// Returns a number that arithmetic often mishandles: a NaN, an infinity, a very large or small
/// number, a zero, or any bits.
inline float hostile_number(std::mt19937& random) {
  static constexpr float kNumbers[] = {NAN,    INFINITY, -INFINITY, 3e38f, -3e38f,
                                       1e30f,  2e19f,    -1.8e19f,  1e19f, 1e-19f,
                                       1e-38f, 1e-42f,   0.0f,      -0.0f, 1.0f};
  if (random() % 4 == 0) return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  return kNumbers[random() % std::size(kNumbers)];
}

/// Makes numbers of a row hostile: one, all or some of them, to the same number or to several.
inline void make_hostile(std::span<float> row, std::mt19937& random) {
  if (row.empty()) return;
  const unsigned kind = random() % 4;
  const float same = hostile_number(random);
  for (float& x : row) {
    if (kind == 0 || (kind == 1 && random() % 3 == 0)) x = hostile_number(random);
    if (kind == 2) x = random() % 2 == 0 ? same : -same;
  }
  if (kind == 3) row[random() % row.size()] = same;
}

/// Returns a clipping norm that the program accepts, from the minimum on.
inline float any_clip_norm(const InfluenceCase& c, std::mt19937& random) {
  const auto least = static_cast<float>(
      min_clip_norm(c.net, std::get<ClippedGradient>(c.contribution()).kind) * (1.0 + 0x1p-20));
  std::uniform_real_distribution<double> share(0.0, std::log2(1024.0 / static_cast<double>(least)));
  return least * static_cast<float>(std::exp2(random() % 8 == 0 ? 0.0 : share(random)));
}

/// Sets the settings that all cases share.
inline void prepare(InfluenceCase& c, unsigned seed) {
  c.settings.recipe.optimizer.kind = OptimizerKind::momentum;
  c.settings.key = {{seed, 1, 2, 3, 4, 5, 6, 7}};
  c.settings.recipe.draw = Poisson{std::uint64_t{1} << 32};
  c.settings.threads = 1;
}

/// Gives the classes weights in every third case, sometimes a weight of 0. Nothing that is stated
/// changes.
inline void weigh_classes(InfluenceCase& c, unsigned seed) {
  std::mt19937 random(seed ^ 0x5eedu);
  if (random() % 3 != 0) return;
  std::uniform_real_distribution<float> share(0.0f, 1.0f);
  for (int k = 0; k < c.net.classes; ++k)
    c.settings.class_weights.push_back(random() % 5 == 0 ? 0.0f : share(random));
  c.settings.class_weights[random() % c.settings.class_weights.size()] = 1.0f;
}

/// Sets the grid and the stated sensitivity, computed from the network, the contribution and the
/// clipping norm.
inline void state_bound(InfluenceCase& c) {
  const ContributionBound bound = bound_of(c.contribution(), static_cast<double>(c.clip_norm));
  c.grid = bound.grid;
  c.bound = std::max(sensitivity(bound, c.net, kCpuArithmetic),
                     sensitivity(bound, c.net, kCudaArithmetic)) /
            c.grid;
}

/// Returns a case that follows from the seed. texts: a case with texts, which runs on the CPU only
/// so far.
inline InfluenceCase influence_case(unsigned seed, bool texts, std::size_t rows) {
  std::mt19937 random(seed);
  random.discard(7);
  const auto one_of = [&](unsigned n) { return random() % n == 0; };
  InfluenceCase c;
  if (texts) {
    const RandomTextModel m = random_text_model(random);
    c.model = m.text;
    const Case shape{"texts", c.model.c_str(), m.input, m.classes, m.words};
    c.net = network_of(shape);
    c.data = texts_for(shape, rows);
    if (c.data.vectors) {
      WordVectors v = *c.data.vectors;
      const auto width = static_cast<std::size_t>(v.columns);
      for (int word = 0; word < v.rows; ++word)
        if (one_of(4))
          make_hostile(std::span(v.values).subspan(static_cast<std::size_t>(word) * width, width),
                       random);
      c.data.vectors = std::make_shared<const WordVectors>(std::move(v));
    }
  } else {
    RandomModel m = random_model(seed);
    if (one_of(6)) m = {one_of(2) ? kNormAfterTanh : kTanhLast, {9, 1, 1}, 3, false};
    c.model = m.text;
    c.net = build_network(parse_model(m.text, "influence", m.classes), m.input, m.classes);
    c.data.shape = m.input;
    c.data.classes = m.classes;
    const auto features = static_cast<std::size_t>(m.input.size());
    std::normal_distribution<float> normal;
    c.data.floats.resize(rows * features);
    for (float& x : c.data.floats) x = normal(random);
    for (std::size_t i = 0; i < rows; ++i) {
      if (one_of(2)) make_hostile(std::span(c.data.floats).subspan(i * features, features), random);
      c.data.labels.push_back(
          static_cast<std::uint8_t>(random() % static_cast<unsigned>(m.classes)));
    }
  }
  c.state = weights_for(c.net);
  if (one_of(3)) {  // so that numbers overflow, or vanish, in the middle of the network
    const float scale = one_of(2) ? 1e18f : 1e-18f;
    for (float& w : c.state.parameters)
      if (one_of(5)) w *= scale;
  }

  EngineSettings& s = c.settings;
  prepare(c, seed);
  c.state.moment1.assign(c.net.parameter_count, 0.0f);
  bool has_table = false;
  for (const NetworkLayer& l : c.net.layers)
    if (const auto* e = std::get_if<Embedding>(&l.layer)) has_table = has_table || e->trainable;
  switch (random() % 6) {
    case 0:
    case 1:
      break;
    case 2:
      s.recipe.contribution = ClippedGradient{Clipping::per_layer};
      break;
    case 3:
      s.recipe.contribution = ClippedGradient{Clipping::automatic};
      break;
    case 4:
      // Whatever is finite is a candidate, and accepted where its norm is as large as the bound.
      s.recipe.draw = Candidates{{.clip = 1e-3, .multiple = 1.0, .min_norm = 1e-3, .rate = 999.0}};
      s.recipe.contribution = AcceptedDirection{};
      break;
    default:
      if (has_table) break;  // refused
      s.recipe.contribution = TransformedGradient{{.beta1 = 1.0f, .beta2 = 1.0f}};
      c.state.mean.resize(c.net.parameter_count);
      c.state.deviation.resize(c.net.parameter_count);
      std::normal_distribution<float> normal;
      for (float& x : c.state.mean) x = 0.01f * normal(random);
      for (float& x : c.state.deviation) x = 0.05f + 0.1f * std::abs(normal(random));
  }
  if (std::holds_alternative<ClippedGradient>(c.contribution()))
    c.clip_norm = any_clip_norm(c, random);
  state_bound(c);
  return c;
}

/// Returns a case with a dense layer whose inputs are large and whose gradients are so small that
/// their squares have no bits left, although the products of both are as large as the clipping
/// norm. hidden: the layer is not the first.
inline InfluenceCase dense_edge_case(unsigned seed, bool hidden, std::size_t rows) {
  std::mt19937 random(seed);
  random.discard(7);
  InfluenceCase c;
  const int features = 1 + static_cast<int>(random() % 40);
  const int classes = 2 + static_cast<int>(random() % 3);
  const std::string inside =
      "{ type = \"dense\", name = \"a\", out = " + std::to_string(1 + random() % 20) +
      " }, { type = \"relu\" }, ";
  c.model = "name = \"edge\"\nlayers = [\n" + (hidden ? inside : std::string()) +
            "{ type = \"dense\", name = \"b\", out = \"outputs\" }]\n";
  c.net = build_network(parse_model(c.model, "edge", classes), {features, 1, 1}, classes);
  EngineSettings& s = c.settings;
  s.recipe.contribution = ClippedGradient{random() % 3 == 0 ? Clipping::per_layer : Clipping::flat};
  prepare(c, seed);
  c.clip_norm = any_clip_norm(c, random);
  state_bound(c);

  // |x| may have any size. The gradients of the first layer are made so small, by the weights of
  // the last one or by logits that are almost certain, that |x| |dy| is 1/16 to 2^12 times the
  // clipping norm.
  std::uniform_real_distribution<double> size(hidden ? -2.0 : 1.0, hidden ? 63.5 : 6.0);
  std::uniform_real_distribution<double> over(-4.0, 12.0);
  std::normal_distribution<float> normal;
  const double x = std::exp2(size(random));
  const double dy =
      std::fmax(static_cast<double>(c.clip_norm) * std::exp2(over(random)) / x, 0x1p-149);
  c.state = weights_for(c.net);
  c.state.moment1.assign(c.net.parameter_count, 0.0f);
  c.data.shape = {features, 1, 1};
  c.data.classes = classes;
  for (std::size_t i = 0; i < rows; ++i) {
    for (int j = 0; j < features; ++j)
      c.data.floats.push_back(static_cast<float>(x * std::exp2(i % 5)) * normal(random));
    c.data.labels.push_back(static_cast<std::uint8_t>(random() % static_cast<unsigned>(classes)));
  }
  const ParameterTensor& last = c.net.parameters[c.net.parameters.size() - 2];
  const ParameterTensor& bias = c.net.parameters.back();
  const std::span weights(c.state.parameters);
  if (hidden) {
    for (float& w : weights.subspan(last.offset, last.size))
      w = static_cast<float>(static_cast<double>(w) * dy);
  } else {  // class 0 is almost sure, so that its rows' gradients are e^-logit
    for (float& w : weights.subspan(last.offset, last.size)) w = 0.0f;
    std::ranges::fill(c.data.labels, std::uint8_t{0});
    std::ranges::fill(weights.subspan(bias.offset, bias.size), 0.0f);
    weights[bias.offset] = static_cast<float>(-std::log(std::fmin(dy, 1.0)));
    if (bias.size == 1) weights[bias.offset] *= -1.0f;
  }
  return c;
}

/// Returns the listed rows; a row may be listed several times.
inline Dataset rows_of(const Dataset& data, std::span<const std::size_t> rows) {
  return select_examples(data, rows);
}

/// Returns the sum over all of `data` that the engine releases, without noise, rounded to float32
/// once.
inline std::vector<float> released_sum(Engine& engine, const InfluenceCase& c,
                                       const Dataset& data) {
  engine.load(data);
  TrainState state = c.state;
  if (c.adds_directions()) state.norms.assign(data.size(), INFINITY);
  engine.set_state(state);
  const StepScalars one = still(0.0f, c.clip_norm);
  c.released->sum.clear();
  engine.run(c.settings.recipe, 3, {&one, 1});
  return c.released->sum;
}

struct Influence {
  std::size_t contributions = 0;
  /// Largest norm of a row's contribution, divided by the stated sensitivity.
  double largest = 0.0;
  std::string fault = {};  ///< description of the fault; empty if there is none
};

/// Measures the influence of each row with two engines. `fresh` gets one row at a time, with
/// cleared memory. `used` gets all rows and then some again, with memory full of earlier values.
/// Faults are:
///   a row alone adds more than the stated sensitivity;
///   a sum over rows is not the sum of the contributions of each row alone, to the last bit, in any
///   order, and when repeated.
/// Directions are accepted by an example's number, so they are compared with the same rows in
/// cleared memory instead. The contribution of a row is then the difference to the sum in which
/// that row is not finite.
inline Influence measure_influence(const std::function<std::unique_ptr<Engine>()>& make,
                                   const InfluenceCase& c) {
  Influence out;
  const std::size_t d = c.net.parameter_count;
  const std::size_t n = c.data.size();
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  const auto cleared = [&](const Dataset& data) {
    const std::optional<float> before = scratch_fill();
    set_scratch_fill(0.0f);
    std::vector<float> sum = released_sum(*make(), c, data);
    set_scratch_fill(before);
    return sum;
  };
  const auto used = make();
  const auto note = [&](const std::string& what) {
    if (out.fault.empty()) out.fault = what + "\n" + c.model;
  };
  const auto same = [](const std::vector<float>& a, const std::vector<double>& units, double grid) {
    for (std::size_t j = 0; j < a.size(); ++j)
      if (a[j] != static_cast<float>(grid * units[j])) return false;
    return true;
  };
  const auto row_norm = [&](std::size_t row, const std::vector<double>& units) {
    double square = 0.0;
    for (const double u : units) square += u * u;
    const double ratio = std::sqrt(square) / c.bound;
    ++out.contributions;
    out.largest = std::max(out.largest, ratio);
    if (!(ratio <= 1.0))
      note("row " + std::to_string(row) + " adds " + std::to_string(ratio) +
           " times the stated sensitivity");
  };

  if (c.adds_directions()) {
    const std::vector<float> want = cleared(c.data);
    for (int again = 0; again < 2; ++again)
      if (released_sum(*used, c, c.data) != want) note("the sum depends on what was in memory");
    for (std::size_t i = 0; i < n; ++i) {
      // Twice, the second time in place of a row before it, so that one row is the difference.
      std::vector<std::size_t> others = order;
      others[i] = (i + 1) % n;
      const std::vector<float> without = cleared(rows_of(c.data, others));
      std::vector<double> units(d);
      for (std::size_t j = 0; j < d; ++j)
        units[j] = (static_cast<double>(want[j]) - static_cast<double>(without[j])) / c.grid / 2.0;
      row_norm(i, units);  // replacing a row moves the sum by twice the bound at most
    }
    return out;
  }

  const auto fresh = make();
  std::vector<double> total(d, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::optional<float> before = scratch_fill();
    set_scratch_fill(0.0f);
    const std::vector<float> alone = released_sum(*fresh, c, rows_of(c.data, {&i, 1}));
    set_scratch_fill(before);
    std::vector<double> units(d);
    for (std::size_t j = 0; j < d; ++j) {
      units[j] = static_cast<double>(alone[j]) / c.grid;
      total[j] += units[j];
    }
    row_norm(i, units);
  }
  std::mt19937 random(static_cast<unsigned>(n));
  for (int again = 0; again < 3; ++again) {
    if (!same(released_sum(*used, c, rows_of(c.data, order)), total, c.grid))
      note(again == 0   ? "the sum is not that of the rows alone"
           : again == 1 ? "the second sum is not that of the rows alone"
                        : "in another order the sum is another");
    if (again == 1) std::shuffle(order.begin(), order.end(), random);
  }
  return out;
}

}  // namespace cudp::cases

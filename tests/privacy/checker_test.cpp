#include "privacy/verify/checker.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "privacy/accountant.hpp"
#include "privacy/ledger.hpp"
#include "privacy/verify/generator.hpp"
#include "privacy/verify/noisy_choice.hpp"
#include "privacy/verify/rounded_normal.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/methods/noisy_min.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;
using verify::Batch;
using verify::Begin;
using verify::Record;
using verify::Release;
using verify::State;
using verify::Update;
using verify::Verdict;

// The generators.

TEST(VerifyGenerators, AreThoseOfTheRfcAndThePaper) {
  std::array<std::uint32_t, 8> key{};
  for (std::uint32_t i = 0; i < 8; ++i) key[i] = 0x03020100 + 0x04040404 * i;
  // RFC 8439, section 2.3.2
  const std::array<std::uint32_t, 16> rfc = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                             0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                             0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                             0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  EXPECT_EQ(verify::chacha20_block(key, 1, {0x09000000, 0x4a000000, 0}), rfc);
  // Random123, kat_vectors
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(verify::philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(verify::philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(verify::philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                  {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::array<std::uint32_t, 8> words_of(const RandomKey& key) {
  std::array<std::uint32_t, 8> words{};
  std::copy_n(key.words, 8, words.begin());
  return words;
}

TEST(VerifyGenerators, DrawWhatTheProductDraws) {
  const RandomKey key = key_from_seed(5);
  for (const auto& [name, generator] :
       {std::pair("chacha20", Generator::chacha20), std::pair("philox", Generator::philox)})
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{0xfffffff0}}) {
      const RandomStream stream{generator, key, Stream::noise, step};
      const verify::Words words(name, words_of(key), 2, step);
      EXPECT_EQ(words.first(1000), random_words(stream, 1000));
      for (const double s : {0x1p16, 1234567.25, 0x1p40})
        EXPECT_EQ(verify::rounded_normals(words, s, 1003), rounded_normals(stream, s, 0, 1003))
            << name << " " << s;
    }
  EXPECT_THROW(verify::Words("xorshift", {}, 2, 0), std::invalid_argument);
  EXPECT_THROW(verify::Words("philox", {}, 2, std::uint64_t{1} << 32), std::invalid_argument);
}

std::uint64_t golden_word(std::uint64_t pair, std::uint64_t number) {
  std::uint64_t z = pair * 0x9e3779b97f4a7c15 + number * 0xd1342543de82ef95 + 12345;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

TEST(VerifyRoundedNormals, AreThoseOfThreeHundredDigits) {
  std::ifstream file(golden_file("rounded_normal.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<std::uint64_t> radii, turns;
  for (const auto& text : golden["radii"]) radii.push_back(std::stoull(text.get<std::string>()));
  for (const auto& text : golden["turns"]) turns.push_back(std::stoull(text.get<std::string>()));
  const std::size_t forced = golden["forced"];
  std::uint64_t pair = 0;
  std::size_t choice = 0;
  std::size_t needed_more = 0;
  for (const auto& c : golden["cases"]) {
    const double s = c["s"];
    for (std::size_t j = 0; j < 1000; ++j, ++pair) {
      std::uint64_t a = golden_word(pair, 0);
      std::uint64_t b = golden_word(pair, 1);
      if (j < forced) {
        a = radii[choice % radii.size()];
        b = turns[choice / radii.size() % turns.size()];
        ++choice;
      }
      const verify::MoreDigits more = [&](std::uint32_t round) {
        ++needed_more;
        std::array<std::uint32_t, 16> out{};
        for (std::uint64_t i = 0; i < 8; ++i) {
          const std::uint64_t w = golden_word(pair, 2 + 8 * (std::uint64_t{round} - 1) + i);
          out[2 * i] = high(w);
          out[2 * i + 1] = low(w);
        }
        return out;
      };
      const std::array<std::uint32_t, 4> words = {high(a), low(a), high(b), low(b)};
      const verify::NormalPair want{c["numbers"][2 * j], c["numbers"][2 * j + 1]};
      ASSERT_EQ(verify::rounded_normal_pair(words, s, more), want) << s << ", pair " << pair;
      if (j % 50 == 0) {
        ASSERT_EQ(verify::rounded_normal_pair_slowly(words, s, more), want) << s << ", " << pair;
      }
    }
  }
  EXPECT_GT(needed_more, 10u);
}

// Transcripts.

/// Of both implementations, which share nothing; and of noise of another scale other ones.
TEST(VerifyNoisyChoice, ChoosesWhatARunChooses) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> score(0.0, 40.0);
  int same = 0;
  int others = 0;
  for (std::uint64_t step = 0; step < 300; ++step) {
    std::vector<double> scores(2 + random() % 40);
    for (double& s : scores) s = score(random);
    const std::size_t count = 1 + random() % std::min<std::size_t>(scores.size(), 5);
    const std::string generator = step % 2 == 0 ? "chacha20" : "philox";
    const RandomStream stream{step % 2 == 0 ? Generator::chacha20 : Generator::philox,
                              {{1, 2, 3, 4, 5, 6, 7, static_cast<std::uint32_t>(step)}},
                              Stream::selection,
                              step};
    std::array<std::uint32_t, 8> key{};
    std::copy_n(std::begin(stream.key.words), 8, key.begin());
    const verify::Words words(generator, key, 8, step);
    const std::vector<std::size_t> chosen = noisy_least(scores, count, 3.0, 0.7, stream);
    EXPECT_EQ(verify::gumbel_choices(words, scores, 0.7, 3.0, count), chosen);
    others += verify::gumbel_choices(words, scores, 0.63, 3.0, count) != chosen ? 1 : 0;
    const std::size_t one = noisy_min(scores, 3.0, 0.7, SelectionNoise::laplace, stream);
    EXPECT_EQ(verify::laplace_choice(words, scores, 0.7, 3.0), one);
    same += verify::laplace_choice(words, scores, 0.35, 3.0) == one ? 1 : 0;
  }
  EXPECT_GT(others, 20);
  EXPECT_LT(same, 250);
}

TEST(VerifyTranscript, IsReadBack) {
  const std::vector<Record> all = {
      Begin{.generator = "philox", .key = {1, 2, 3, 4, 5, 6, 7, ~0u}, .examples = 9, .step = 3},
      State{.parameters = {1.5f, -0.0f}, .moment1 = {}, .moment2 = {2.0f}, .average = {}},
      Batch{.step = 3, .threshold = std::uint64_t{1} << 32, .examples = {0, 5, 8}},
      Release{.name = "a \"sum\"\n",
              .stream = 2,
              .step = 3,
              .grid = 0x1p-30,
              .noise_std = 0.1,
              .sensitivity = 1.0 / 3.0,
              .charged = 7,
              .sums = {-1, std::int64_t{1} << 62},
              .scores = {-0.5, 1e300},
              .values = {0.1, -INFINITY}},
      Update{.step = 3,
             .optimizer = "adam",
             .learning_rate = INFINITY,
             .coordinates = true,
             .parameters = {1.0f},
             .moment1 = {},
             .moment2 = {},
             .average = {}},
      State{}};
  std::string bytes;
  std::size_t last = 0;
  for (const Record& r : all) {
    last = bytes.size();
    bytes += verify::encode(r);
  }
  EXPECT_EQ(verify::decode(bytes), all);
  EXPECT_TRUE(verify::decode("").empty());
  // A last record that was cut off, anywhere, is left away.
  const std::vector<Record> less(all.begin(), all.end() - 1);
  for (std::size_t cut = last; cut < bytes.size(); ++cut)
    ASSERT_EQ(verify::decode(bytes.substr(0, cut)), less) << cut;
  EXPECT_THROW(verify::decode("begin\n"), std::invalid_argument);
  EXPECT_THROW(verify::decode("nothing"), std::invalid_argument);
  EXPECT_THROW(verify::decode("{\"kind\":\"end\"}\n"), std::invalid_argument);
  EXPECT_THROW(verify::decode("{\"kind\":\"batch\",\"step\":1}\n"), std::invalid_argument);
  EXPECT_THROW(verify::decode("{\"kind\": \"state\"}\n"), std::invalid_argument);
  EXPECT_THROW(verify::decode("{\"kind\":\"state\",\"more\":1}\n"), std::invalid_argument);
}

// A run as the program would make it, of gradients that are random.

struct Fake {
  // Settings.
  std::string method = "dpsgd";
  OptimizerSettings optimizer{.kind = OptimizerKind::momentum, .weight_decay = 0.01f};
  double ema = 0.0;
  double lr = 0.5;
  double batch = 20.0;
  double sigma = 1.1;
  double clip = 0.3;
  double delta = 1e-5;
  bool private_size = false;
  bool normalised = false;  ///< dpsgd-quantile
  bool with_settings = false;
  bool adaptive = false;  ///< adp-sgd
  Generator generator = Generator::chacha20;
  std::uint64_t n = 150;
  std::size_t d = 70;
  std::uint64_t steps = 6;

  // What it made.
  privacy::Ledger ledger;
  std::vector<Record> records;
  Json certificate;
  std::string settings;

  // Its state.
  RandomKey key = key_from_seed(3);
  std::mt19937 gradients{1};
  State state;
  double size = 0.0, clip_now = 0.0, count_noise = 0.0, b2 = 20.0;
  std::map<std::string, Json> listed;

  double rounding() const { return 1.0 + 1e-4; }
  double quantile_share() const { return method == "dpsgd-quantile" ? 0.01 : 0.0; }
  double gradient_noise() const { return sigma / std::sqrt(1.0 - quantile_share()); }
  std::uint64_t threshold() const {
    return static_cast<std::uint64_t>(std::ceil(batch / size * 0x1p32));
  }
  privacy::Mechanism mechanism() const {
    return privacy::sampled_gaussian_mechanism(static_cast<double>(threshold()) * 0x1p-32, sigma);
  }
  std::uint64_t charged() const {
    std::uint64_t all = 0;
    for (const privacy::Release& r : ledger.releases()) all += r.count;
    return all;
  }
  RandomStream stream(Stream purpose, std::uint64_t step) const {
    return {generator, key, purpose, step};
  }

  void begin(std::uint64_t step) {
    records.emplace_back(Begin{.generator = generator == Generator::philox ? "philox" : "chacha20",
                               .key = words_of(key),
                               .examples = n,
                               .step = step});
  }

  std::vector<double> release(const std::string& name, Stream purpose, std::uint64_t step,
                              double grid, double noise_std, double sensitivity,
                              const std::vector<std::int64_t>& sums) {
    const auto k = rounded_normals(stream(purpose, step), noise_std / grid, 0, sums.size());
    Release r{.name = name,
              .stream = static_cast<std::uint32_t>(purpose),
              .step = step,
              .grid = grid,
              .noise_std = noise_std,
              .sensitivity = sensitivity,
              .charged = charged(),
              .sums = sums,
              .scores = {},
              .values = {}};
    for (std::size_t j = 0; j < sums.size(); ++j) {
      const double value = grid * static_cast<double>(sums[j] + k[j]);
      r.values.push_back(sensitivity > 0.0 ? value
                                           : static_cast<double>(static_cast<float>(value)));
    }
    records.emplace_back(r);
    if (sensitivity > 0.0) {
      Json& row = listed[name];
      if (row.is_null())
        row = {{"what", name},           {"times", 0},
               {"numbers", sums.size()}, {"sensitivity", sensitivity},
               {"noise_std", noise_std}, {"grid", grid}};
      row["times"] = row["times"].get<int>() + 1;
    }
    return r.values;
  }

  void start() {
    begin(0);
    size = static_cast<double>(n);
    if (private_size) {
      const double noise = 5.0;
      ledger.charge({privacy::Gaussian{noise}, 1});
      const double grid = std::ldexp(1.0, std::ilogb(noise / 0x1p20));
      const auto units = static_cast<std::int64_t>(size / grid);
      size = std::round(release("size of the training set", Stream::dataset_size, 0, grid, noise,
                                1.0, {units})[0]);
    }
    clip_now = clip;
    count_noise = quantile_share() > 0.0 ? sigma / (2.0 * std::sqrt(quantile_share())) : 0.0;
    std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
    state.parameters.resize(d);
    for (float& w : state.parameters) w = uniform(gradients);
    if (optimizer.kind != OptimizerKind::sgd) state.moment1.resize(d);
    if (optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::adamw)
      state.moment2.resize(d);
    if (ema > 0.0) state.average = state.parameters;
    records.emplace_back(state);
  }

  /// Sums of gradients of the examples, each of norm C on the grid.
  std::vector<std::int64_t> sums_of(std::size_t examples, double grid) {
    std::vector<std::int64_t> sums(d);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < examples; ++i) {
      std::vector<double> g(d);
      double square = 0.0;
      for (double& x : g) {
        x = normal(gradients);
        square += x * x;
      }
      for (std::size_t j = 0; j < d; ++j)
        sums[j] += static_cast<std::int64_t>(clip_now / std::sqrt(square) * g[j] / grid);
    }
    return sums;
  }

  static float above(double x) {
    const auto f = static_cast<float>(x);
    return static_cast<double>(f) < x ? std::nextafterf(f, HUGE_VALF) : f;
  }

  void step(std::uint64_t t) {
    const CpuKernels& k = cpu_kernels(best_simd_level());
    Batch drawn{.step = t, .threshold = threshold(), .examples = std::vector<std::uint32_t>(n)};
    drawn.examples.resize(static_cast<std::size_t>(k.sample({.stream = stream(Stream::sampling, t),
                                                             .threshold = threshold(),
                                                             .begin = 0,
                                                             .end = static_cast<std::int64_t>(n),
                                                             .drawn = drawn.examples.data()})));
    records.emplace_back(drawn);

    const double at = static_cast<double>(t) + 1.0;
    const bool adam = !state.moment2.empty();
    StepScalars s{.learning_rate = static_cast<float>(lr),
                  .noise_std = above(gradient_noise() * clip_now * rounding()),
                  .inverse_batch = static_cast<float>(1.0 / batch),
                  .bias1 = adam ? static_cast<float>(1.0 / (1.0 - std::pow(0.9, at))) : 1.0f,
                  .bias2 = adam ? static_cast<float>(1.0 / (1.0 - std::pow(0.999, at))) : 1.0f,
                  .ema_decay = static_cast<float>(std::fmin(ema, at / (at + 9.0))),
                  .clip_norm = static_cast<float>(clip_now)};
    if (normalised) s.inverse_batch /= static_cast<float>(clip_now);
    const double grid = sum_grid(clip_now);
    const std::vector<double> left =
        release("sum of clipped gradients", Stream::noise, t, grid,
                static_cast<double>(s.noise_std), 0.0, sums_of(drawn.examples.size(), grid));
    const std::vector<float> released(left.begin(), left.end());
    if (adaptive) {
      double square = 0.0;
      for (const float r : released)
        square += std::pow(static_cast<double>(r * s.inverse_batch), 2.0);
      b2 += std::fmax(square, 1e-5);
      s.learning_rate = static_cast<float>(static_cast<double>(s.learning_rate) / std::sqrt(b2));
    }
    const auto data = [](std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
    k.update({.released = released.data(),
              .parameters = state.parameters.data(),
              .moment1 = data(state.moment1),
              .moment2 = data(state.moment2),
              .average = data(state.average),
              .begin = 0,
              .end = static_cast<std::int64_t>(d),
              .optimizer = optimizer,
              .scalars = s});
    const char* const names[] = {"sgd", "momentum", "nesterov", "adam", "adamw"};
    records.emplace_back(Update{.step = t,
                                .optimizer = names[static_cast<int>(optimizer.kind)],
                                .momentum = optimizer.momentum,
                                .beta1 = optimizer.beta1,
                                .beta2 = optimizer.beta2,
                                .epsilon = optimizer.epsilon,
                                .weight_decay = optimizer.weight_decay,
                                .learning_rate = s.learning_rate,
                                .inverse_batch = s.inverse_batch,
                                .bias1 = s.bias1,
                                .bias2 = s.bias2,
                                .ema_decay = s.ema_decay,
                                .parameters = state.parameters,
                                .moment1 = state.moment1,
                                .moment2 = state.moment2,
                                .average = state.average});
    if (method == "dpsgd-quantile") {
      const double count_grid = std::ldexp(1.0, std::ilogb(count_noise / 0x1p20));
      const double below = 0.3 * static_cast<double>(drawn.examples.size());
      const double noisy =
          release("count", Stream::clipped_count, t, count_grid, count_noise, 0.5,
                  {static_cast<std::int64_t>((std::round(below) - 0.5 * drawn.examples.size()) /
                                             count_grid)})[0];
      const double next = clip_now * std::exp(-0.2 * (noisy / batch + 0.5 - 0.5));
      clip_now = static_cast<double>(static_cast<float>(std::clamp(next, 0.001, 1000.0)));
    }
  }

  /// Steps first .. last - 1, authorised so many at once.
  void train(std::uint64_t first, std::uint64_t last, std::uint64_t at_once = 4) {
    for (std::uint64_t t = first; t < last; t += at_once) {
      const std::uint64_t end = std::min(t + at_once, last);
      ledger.authorise(t, end, mechanism());
      for (std::uint64_t u = t; u < end; ++u) step(u);
    }
  }

  void certify() {
    const std::vector<privacy::Release> releases = ledger.releases();
    const double q = static_cast<double>(threshold()) * 0x1p-32;
    Json list = Json::array();
    std::uint64_t done = 0;
    for (const privacy::Release& r : releases) {
      const auto* sampled = std::get_if<privacy::PoissonGaussian>(&r.mechanism);
      const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism);
      list.push_back({{"q", sampled ? sampled->q : 1.0},
                      {"sigma", sampled ? sampled->sigma : gaussian->sigma},
                      {"steps", r.count}});
      if (sampled) done += r.count;
    }
    const privacy::PrivacyBound bound =
        privacy::Accountant({.releases = releases}, {.kind = privacy::AccountantKind::rdp})
            .epsilon(delta * (1.0 - 1e-9));
    Json& j = certificate;
    j = {{"status", "finished"},
         {"epsilon", bound.epsilon},
         {"delta", delta},
         {"method", method},
         {"sampling", "poisson"},
         {"q", q},
         {"sampling_threshold", threshold()},
         {"sigma", sigma},
         {"C", clip},
         {"sensitivity", clip * rounding()},
         {"noise_std", gradient_noise() * (clip * rounding())},
         {"noise", {{"kind", "rounded gaussian"}, {"grid", sum_grid(clip)}}},
         {"expected_batch", batch},
         {"steps", done},
         {"steps_planned", steps},
         {"releases", list},
         {"accountant", "rdp"},
         {"order", bound.order},
         {"order_fixed_before", false},
         {"delta_for_rounding", delta - delta * (1.0 - 1e-9)},
         {"rng", generator == Generator::philox ? "philox" : "chacha20"}};
    if (private_size)
      j["size_release"] = {{"noisy_size", static_cast<std::uint64_t>(size)}, {"noise_std", 5.0}};
    else
      j["training_examples"] = n;
    for (const auto& [name, row] : listed) j["noisy_values"].push_back(row);
    if (method == "dpsgd-quantile")
      j["quantile"] = {{"target", 0.5},
                       {"C_least", 0.001},
                       {"C_most", 1000.0},
                       {"C_last", clip_now},
                       {"gradient_noise_multiplier", gradient_noise()},
                       {"count_sensitivity", 0.5},
                       {"count_noise_std", count_noise}};
    if (!with_settings) return;
    const char* const names[] = {"sgd", "momentum", "nesterov", "adam", "adamw"};
    settings = std::string("# Training\nseed = 3\nbatch = 20\noptimizer = \"") +
               names[static_cast<int>(optimizer.kind)] +
               "\"\nmomentum = 0.9\nbeta1 = 0.9\nbeta2 = 0.999\nweight-decay = 0.01\nlr = 0.5\n"
               "schedule = \"" +
               (adaptive ? "adaptive" : "constant") +
               "\"\nwarmup = 0\nema = " + std::to_string(ema) +
               "\nadaptive-start = 20.0\nadaptive-weight = 1.0\nadaptive-least = 1e-05\n"
               "quantile-lr = 0.2\nquantile-normalise = " +
               (normalised ? "true" : "false") + "\n";
  }

  /// All of it, from the first step to the last.
  Fake& make() {
    start();
    train(0, steps);
    certify();
    return *this;
  }

  std::string transcript() const {
    std::string bytes;
    for (const Record& r : records) bytes += verify::encode(r);
    return bytes;
  }

  Verdict verdict() const {
    return verify::check({.certificate = certificate.dump(2),
                          .ledger = ledger.to_text() + "\ntag " + std::string(64, '0') + "\n",
                          .transcript = transcript(),
                          .settings = settings});
  }

  /// Of the i-th record of that kind.
  template <class R>
  R& get(std::size_t i) {
    for (Record& r : records)
      if (R* const found = std::get_if<R>(&r); found != nullptr && i-- == 0) return *found;
    throw std::out_of_range("no such record");
  }
  template <class R>
  void drop(std::size_t i) {
    for (auto r = records.begin(); r != records.end(); ++r)
      if (std::holds_alternative<R>(*r) && i-- == 0) {
        records.erase(r);
        return;
      }
  }
};

std::string text_of(const Verdict& v) {
  std::string all;
  for (const verify::Finding& f : v.findings) all += f.rule + ": " + f.what + "\n";
  return all;
}

TEST(Checker, PassesHonestRuns) {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov, OptimizerKind::adam,
        OptimizerKind::adamw})
    for (const bool with_settings : {false, true}) {
      Fake run;
      run.optimizer.kind = kind;
      run.ema = with_settings ? 0.4 : 0.0;
      run.with_settings = with_settings;
      run.generator = with_settings ? Generator::philox : Generator::chacha20;
      const Verdict v = run.make().verdict();
      EXPECT_TRUE(v.findings.empty()) << text_of(v);
      EXPECT_EQ(v.releases, run.steps);
      EXPECT_EQ(v.numbers, run.steps * run.d);
      EXPECT_EQ(v.updates, run.steps);
      EXPECT_EQ(v.skipped.empty(), with_settings);
    }
}

Fake quantile() {
  Fake run;
  run.method = "dpsgd-quantile";
  return run;
}

TEST(Checker, PassesHonestRunsOfOtherMethods) {
  for (const bool with_settings : {false, true})
    for (const bool normalised : {false, true}) {
      Fake run = quantile();
      run.with_settings = with_settings;
      run.normalised = normalised;
      const Verdict v = run.make().verdict();
      EXPECT_TRUE(v.findings.empty()) << text_of(v);
      EXPECT_EQ(v.releases, 2 * run.steps);
    }
  Fake sized;
  sized.private_size = true;
  Verdict v = sized.make().verdict();
  EXPECT_TRUE(v.findings.empty()) << text_of(v);

  Fake adaptive;
  adaptive.method = "adp-sgd";
  adaptive.adaptive = adaptive.with_settings = true;
  v = adaptive.make().verdict();
  EXPECT_TRUE(v.findings.empty()) << text_of(v);
}

/// A run that was killed at step 5 of 8, with a checkpoint of step 3.
Fake killed(Fake run, bool fresh, const std::function<void(Fake&)>& resume) {
  run.steps = 8;
  run.start();
  run.train(0, 3);
  const Fake checkpoint = run;
  run.ledger.authorise(3, 7, run.mechanism());
  run.step(3);
  run.step(4);
  run.state = checkpoint.state;
  run.clip_now = checkpoint.clip_now;
  run.b2 = checkpoint.b2;
  run.listed = checkpoint.listed;
  if (fresh) {
    run.key = key_from_seed(77);
  } else {
    run.gradients = checkpoint.gradients;
  }
  resume(run);
  run.begin(3);
  run.records.emplace_back(run.state);
  run.train(3, 8);
  run.certify();
  return run;
}

TEST(Checker, PassesRunsThatWereKilled) {
  for (Fake run : {Fake{}, quantile()}) {
    run.ema = 0.9;
    Verdict v = killed(run, false, [](Fake&) {}).verdict();
    EXPECT_TRUE(v.findings.empty()) << text_of(v);
    v = killed(run, true, [](Fake& r) { r.ledger.fresh_key(3); }).verdict();
    EXPECT_TRUE(v.findings.empty()) << text_of(v);
  }
}

// What was tampered with is found, by its rule.

struct Fault {
  const char* name;
  const char* rule;
  std::function<void(Fake&)> change;  ///< of an honest run
};

void expect_found(const char* name, const char* rule, const Fake& run) {
  const Verdict v = run.verdict();
  EXPECT_TRUE(std::ranges::count(v.findings, rule, &verify::Finding::rule) > 0)
      << name << ": expected a finding of " << rule << ", found\n"
      << text_of(v);
}

/// A release made again with this much noise, from a stream's step.
void redraw(Fake& run, std::size_t i, double factor, std::uint64_t from_step) {
  Release& r = run.get<Release>(i);
  const auto k = rounded_normals(run.stream(static_cast<Stream>(r.stream), from_step),
                                 r.noise_std * factor / r.grid, 0, r.sums.size());
  for (std::size_t j = 0; j < k.size(); ++j)
    r.values[j] =
        static_cast<double>(static_cast<float>(r.grid * static_cast<double>(r.sums[j] + k[j])));
}

TEST(Checker, FindsWhatWasTamperedWith) {
  const std::vector<Fault> faults = {
      {"noise x 0.9, as it is stated", "noise", [](Fake& r) { redraw(r, 2, 0.9, 2); }},
      {"noise x 0.9, recorded", "noise",
       [](Fake& r) {
         r.get<Release>(2).noise_std *= 0.9;
         redraw(r, 2, 1.0, 2);
       }},
      {"noise x 1.1, recorded", "noise",
       [](Fake& r) {
         r.get<Release>(2).noise_std *= 1.1;
         redraw(r, 2, 1.0, 2);
       }},
      {"no noise", "noise",
       [](Fake& r) {
         Release& release = r.get<Release>(4);
         for (std::size_t j = 0; j < release.sums.size(); ++j)
           release.values[j] = release.grid * static_cast<double>(release.sums[j]);
       }},
      {"the noise of the step before", "noise", [](Fake& r) { redraw(r, 3, 1.0, 2); }},
      {"one number of the last bit", "noise",
       [](Fake& r) {
         double& x = r.get<Release>(1).values[33];
         x = static_cast<double>(std::nextafterf(static_cast<float>(x), 10.0f));
       }},
      {"a coarser grid", "noise", [](Fake& r) { r.get<Release>(0).grid *= 2.0; }},
      {"another key", "noise", [](Fake& r) { r.get<Begin>(0).key[7] ^= 1; }},
      {"another generator", "noise", [](Fake& r) { r.get<Begin>(0).generator = "philox"; }},
      {"noise of one place for two sums", "twice",
       [](Fake& r) {
         Release& release = r.get<Release>(3);
         release.step = 2;
         redraw(r, 3, 1.0, 2);
       }},
      {"a gradient that is too long", "sensitivity",
       [](Fake& r) {
         for (std::int64_t& s : r.get<Release>(2).sums) s *= 10;
         redraw(r, 2, 1.0, 2);
       }},
      {"one example more", "batch",
       [](Fake& r) {
         std::vector<std::uint32_t>& e = r.get<Batch>(1).examples;
         for (std::uint32_t i = 0; i < 150; ++i)
           if (!std::ranges::binary_search(e, i)) {
             e.insert(std::ranges::lower_bound(e, i), i);
             return;
           }
       }},
      {"one example less", "batch", [](Fake& r) { r.get<Batch>(1).examples.pop_back(); }},
      {"rate x 1.1, drawn", "batch",
       [](Fake& r) {
         Batch& b = r.get<Batch>(1);
         b.threshold = b.threshold * 11 / 10;
         const auto words = random_words(r.stream(Stream::sampling, 1), 150);
         b.examples.clear();
         for (std::uint32_t i = 0; i < 150; ++i)
           if (words[i] < b.threshold) b.examples.push_back(i);
       }},
      {"no batch", "batch", [](Fake& r) { r.drop<Batch>(2); }},
      {"another number of examples", "batch", [](Fake& r) { r.get<Begin>(0).examples = 151; }},
      {"divided by the batch that was drawn", "divisor",
       [](Fake& r) { r.get<Update>(2).inverse_batch = 1.0 / 19.0; }},
      {"not in the ledger", "charged", [](Fake& r) { r.get<Release>(4).charged = 4; }},
      {"a step that the ledger never had", "charged",
       [](Fake& r) {
         r.ledger = {};
         r.ledger.authorise(0, 5, r.mechanism());
       }},
      {"a certificate of fewer steps", "ledger",
       [](Fake& r) { r.certificate["releases"][0]["steps"] = 5; }},
      {"a certificate of more noise", "ledger",
       [](Fake& r) { r.certificate["releases"][0]["sigma"] = 1.2; }},
      {"a release dropped", "update", [](Fake& r) { r.drop<Release>(3); }},
      {"a step dropped", "kinds",
       [](Fake& r) {
         r.drop<Batch>(5);
         r.drop<Release>(5);
         r.drop<Update>(5);
       }},
      {"a count that is none of the method's", "kinds",
       [](Fake& r) { r.release("count", Stream::clipped_count, 0, 0x1p-20, 2.0, 0.5, {4}); }},
      {"listed, and never released", "kinds",
       [](Fake& r) {
         r.certificate["noisy_values"] = Json::array({{{"what", "x"},
                                                       {"times", 1},
                                                       {"numbers", 3},
                                                       {"sensitivity", 1.0},
                                                       {"noise_std", 2.0},
                                                       {"grid", 0x1p-20}}});
       }},
      {"a parameter that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).parameters[69] *= 1.0f + 0x1p-18f; }},
      {"a moment that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).moment1[0] *= 1.0f + 0x1p-18f; }},
      {"an average that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).average[5] *= 1.0f + 0x1p-18f; }},
      {"an average of sums without noise", "update",
       [](Fake& r) { r.get<Update>(3).average = r.get<Update>(2).average; }},
      {"another weight of the average", "update",
       [](Fake& r) { r.get<Update>(5).ema_decay *= 0.99; }},
      {"an average that begins elsewhere", "update",
       [](Fake& r) { r.get<State>(0).average[5] = 0.0f; }},
      {"a moment that begins elsewhere", "update",
       [](Fake& r) { r.get<State>(0).moment1[5] = 1.0f; }},
      {"goes back to a key that was lost", "twice",
       [](Fake& r) {
         r.key = key_from_seed(8);
         r.begin(6);
         r.key = key_from_seed(3);
         r.begin(6);
       }},
      {"no update", "update", [](Fake& r) { r.drop<Update>(2); }},
      {"epsilon x 0.99", "epsilon",
       [](Fake& r) { r.certificate["epsilon"] = r.certificate["epsilon"].get<double>() * 0.99; }},
      {"half of delta, of the same epsilon", "epsilon",
       [](Fake& r) { r.certificate["delta"] = 0.5e-5; }},
      {"q x 1.1 in the certificate", "batch",
       [](Fake& r) { r.certificate["q"] = r.certificate["q"].get<double>() * 1.1; }},
      {"sensitivity x 0.9 in the certificate", "noise",
       [](Fake& r) {
         r.certificate["sensitivity"] = r.certificate["sensitivity"].get<double>() * 0.9;
       }},
      {"a method that is not known", "kinds", [](Fake& r) { r.certificate["method"] = "mine"; }}};
  EXPECT_GE(faults.size(), 30u);
  Fake honest;
  honest.ema = 0.3;
  honest.make();
  ASSERT_TRUE(honest.verdict().findings.empty()) << text_of(honest.verdict());
  for (const Fault& fault : faults) {
    Fake run = honest;
    fault.change(run);
    expect_found(fault.name, fault.rule, run);
  }
}

TEST(Checker, FindsARateThatIsNotTheOneOfAPrivateSize) {
  Fake run;
  run.private_size = true;
  run.make();
  Fake other = run;
  other.certificate["size_release"]["noisy_size"] = 137;
  expect_found("another size", "noise", other);
  // A rate x 1.1 throughout: sampled, charged and stated, of the same batch and size.
  Fake scaled;
  scaled.private_size = true;
  scaled.start();
  scaled.size /= 1.1;
  scaled.train(0, scaled.steps);
  scaled.size *= 1.1;
  scaled.certify();
  const double q = std::get<privacy::PoissonGaussian>(scaled.ledger.releases()[1].mechanism).q;
  scaled.certificate["q"] = q;
  scaled.certificate["sampling_threshold"] = static_cast<std::uint64_t>(q * 0x1p32);
  scaled.certificate["releases"][1]["q"] = q;
  expect_found("rate x 1.1", "batch", scaled);
}

TEST(Checker, FindsWhatQuantileDoesNotRelease) {
  Fake run = quantile();
  run.make();
  ASSERT_TRUE(run.verdict().findings.empty()) << text_of(run.verdict());
  Fake counts = run;
  // The third release of a step's pair is a count: with its own noise, but less.
  Release& count = counts.get<Release>(3);
  count.noise_std *= 0.9;
  const auto k =
      rounded_normals(counts.stream(Stream::clipped_count, 1), count.noise_std / count.grid, 0, 1);
  count.values[0] = count.grid * static_cast<double>(count.sums[0] + k[0]);
  expect_found("count's noise x 0.9", "noise", counts);
  expect_found("count's noise x 0.9", "kinds", counts);

  Fake joint = run;
  joint.certificate["quantile"]["count_noise_std"] = 0.9 * run.count_noise;
  expect_found("joint sigma", "noise", joint);

  // The clipping norm of a step follows another count than the one that was released.
  for (const bool with_settings : {false, true}) {
    Fake follows = quantile();
    follows.with_settings = with_settings;
    follows.start();
    follows.ledger.authorise(0, follows.steps, follows.mechanism());
    for (std::uint64_t t = 0; t < follows.steps; ++t) {
      follows.step(t);
      if (t == 3) follows.clip_now *= 1.01;
    }
    follows.certify();
    expect_found("clipping norm", "noise", follows);
  }
  Fake dropped = run;
  dropped.drop<Release>(11);
  expect_found("a count dropped", "kinds", dropped);
}

TEST(Checker, FindsRepeatedStepsThatWereNotCharged) {
  for (const Fake& run : {Fake{}, quantile()}) {
    // A key of its own, with what the lost one was charged.
    expect_found("never charged again", "charged", killed(run, true, [](Fake&) {}));
    // Charged only from where the ledger ended.
    Fake late = killed(run, true, [](Fake& r) { r.ledger.fresh_key(3); });
    late.ledger = {};
    late.ledger.authorise(0, 7, late.mechanism());
    late.ledger.fresh_key(7);
    late.ledger.authorise(7, 12, late.mechanism());
    late.certify();
    expect_found("charged as other steps", "charged", late);
    // The same key, other sums.
    Fake twice = killed(run, false, [](Fake& r) { r.gradients.seed(9); });
    expect_found("other sums", "twice", twice);
    // Goes on from numbers that no update left.
    Fake moved = killed(run, false, [](Fake& r) { r.state.parameters[3] += 1.0f; });
    expect_found("other parameters", "update", moved);
  }
}

TEST(Checker, HoldsSettings) {
  Fake run;
  run.with_settings = true;
  run.ema = 0.4;
  run.optimizer.kind = OptimizerKind::adam;
  run.make();
  ASSERT_TRUE(run.verdict().findings.empty()) << text_of(run.verdict());
  const std::pair<const char*, const char*> changes[] = {
      {"lr = 0.5", "lr = 0.6"},          {"seed = 3", "seed = 4"},
      {"ema = 0.4", "ema = 0.2"},        {"\"adam\"", "\"adamw\""},
      {"beta2 = 0.999", "beta2 = 0.99"}, {"weight-decay = 0.01", "weight-decay = 0.02"},
      {"warmup = 0", "warmup = 3"},      {"\"constant\"", "\"cosine\""},
      {"batch = 20", "batch = 21"}};
  for (const auto& [from, to] : changes) {
    Fake other = run;
    other.settings.replace(other.settings.find(from), std::string(from).size(), to);
    if (std::string(to).find("cosine") != std::string::npos) other.settings += "final-lr = 0.0\n";
    EXPECT_FALSE(other.verdict().findings.empty()) << to;
  }

  // Adaptive steps that see the gradient before its noise.
  Fake adaptive;
  adaptive.method = "adp-sgd";
  adaptive.adaptive = adaptive.with_settings = true;
  adaptive.make();
  for (std::uint64_t t = 2; t < 6; ++t) adaptive.get<Update>(t).learning_rate *= 1.0001;
  expect_found("adaptive steps", "update", adaptive);
}

TEST(Checker, RefusesWhatCannotBeRead) {
  Fake run;
  run.make();
  verify::Evidence e{.certificate = run.certificate.dump(),
                     .ledger = run.ledger.to_text(),
                     .transcript = run.transcript()};
  ASSERT_TRUE(verify::check(e).findings.empty());
  verify::Evidence other = e;
  other.certificate = "{";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other.certificate = "{}";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.ledger[30] ^= 1;
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other.ledger = "";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.transcript = "x" + e.transcript;
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.settings = "lr\n";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
}

}  // namespace
}  // namespace cudp

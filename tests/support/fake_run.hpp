#pragma once
// Transcripts and certificates for the checker's tests, made without training.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "privacy/accountant.hpp"
#include "privacy/ledger.hpp"
#include "privacy/transcript/records.hpp"
#include "privacy/verify/checker.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/random_numbers.hpp"

namespace cudp::fake_run {

using Json = nlohmann::ordered_json;
using transcript::Batch;
using transcript::Begin;
using transcript::Record;
using transcript::Release;
using transcript::State;
using transcript::Update;
using verify::Verdict;

inline std::array<std::uint32_t, 8> words_of(const RandomKey& key) {
  std::array<std::uint32_t, 8> words{};
  std::copy_n(key.words, 8, words.begin());
  return words;
}

/// Fake run: settings, ledger, certificate and transcript as the program would make them, with
/// random gradients.
struct Fake {
  // Settings of the run.
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

  // Results of the run.
  privacy::Ledger ledger;
  std::vector<Record> records;
  Json certificate;
  std::string settings;

  // State of the run.
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

  /// Returns the sum of random gradients of `examples` examples, each of norm C, in grid steps.
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

  /// Makes steps first .. last - 1, and authorises `at_once` steps at a time.
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
    j = {{"format", "cudp privacy certificate 2"},
         {"status", "finished"},
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
    if (ledger.has_fresh_key()) j["keys_lost"] = ledger.keys_lost();
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

  /// Makes the whole run, from the first step to the last.
  Fake& make() {
    start();
    train(0, steps);
    certify();
    return *this;
  }

  std::string transcript() const {
    std::string bytes;
    for (const Record& r : records) bytes += transcript::encode(r);
    return bytes;
  }

  Verdict verdict() const {
    return verify::check({.certificate = certificate.dump(2),
                          .ledger = ledger.to_text() + "\ntag " + std::string(64, '0') + "\n",
                          .transcript = transcript(),
                          .settings = settings});
  }

  /// Returns the i-th record of type R.
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

}  // namespace cudp::fake_run

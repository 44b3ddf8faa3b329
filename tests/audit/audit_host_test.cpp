// Audits of what the host releases: the number of examples, what features rest on, the gradients of
// DP-AGD, DPIS's sum of norms and dpsgd-quantile's counts. Each is released many times, and the
// noise on it and what one example adds are held against what is charged for it.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/features/pca.hpp"
#include "runtime/features/standardise.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/dpsgd_quantile.hpp"
#include "tests/audit/audit_cases.hpp"
#include "tests/audit/canary_audit.hpp"
#include "tests/support/method_training.hpp"
#include "tests/support/test_books.hpp"

namespace cudp::audit {
namespace {

/// Noise over what it should be, squared and summed.
struct NoiseSample {
  double squares = 0.0;
  double n = 0.0;
  void add(double noise, double std) {
    squares += noise * noise / (std * std);
    n += 1.0;
  }
  /// Standard normal, or less, where there is as much as there should be.
  double too_little() const { return std::sqrt(2.0 * n - 1.0) - std::sqrt(2.0 * squares); }
};

/// With probability 1e-6 beside the honest.
constexpr double kThreshold = 4.9;

/// `sample` releases with so much of the noise that it should have.
void expect_power(const std::function<NoiseSample(double share)>& sample) {
  const NoiseSample honest = sample(1.0);
  EXPECT_LT(honest.too_little(), kThreshold);
  EXPECT_GT(honest.too_little(), -3.0 * kThreshold);  // nor is it another noise altogether
  const double mutated = sample(0.9).too_little();
  EXPECT_GT(mutated, kThreshold);
  testing::Test::RecordProperty("evidence_of_noise_x_0.9", std::to_string(mutated));
}

Gate gate_of(std::uint64_t seed) { return {Generator::chacha20, key_from_seed(seed), all_paid()}; }

TEST(HostAudit, NumberOfExamples) {
  const auto size = [](std::size_t examples, double noise, std::uint64_t seed) {
    DataSplit data;
    data.train.labels.resize(examples);
    Gate gate = gate_of(seed);
    return training_size(data, noise, gate).value;
  };
  constexpr double kNoise = 12.0;
  expect_power([&](double share) {
    NoiseSample s;
    for (std::uint64_t seed = 0; seed < 8000; ++seed)
      s.add(size(1000, kNoise * share, seed) - 1000.0, kNoise);
    return s;
  });
  for (std::uint64_t seed = 0; seed < 100; ++seed)  // an example adds 1, never more
    EXPECT_EQ(size(1001, kNoise, seed) - size(1000, kNoise, seed), 1.0);
}

Dataset rows(std::size_t n, const Shape& shape, float size) {
  Dataset d;
  d.shape = shape;
  d.classes = 2;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, size);
  d.floats.resize(n * static_cast<std::size_t>(shape.size()));
  for (float& f : d.floats) f = normal(random);
  d.labels.resize(n);
  return d;
}

TEST(HostAudit, PrincipalComponents) {
  constexpr int kNumbers = 50;
  constexpr double kSigma = 3.0;
  const int bits = row_bits(1000.0, kSigma);
  expect_power([&](double share) {
    NoiseSample s;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      std::vector<double> matrix(kNumbers * kNumbers);
      Gate gate = gate_of(seed);
      add_symmetric_noise(matrix, kNumbers, bits, kSigma * share, gate);
      for (int i = 0; i < kNumbers; ++i)
        for (int j = i; j < kNumbers; ++j)
          s.add(matrix[static_cast<std::size_t>(i * kNumbers + j)],
                i == j ? kSigma : kSigma * std::sqrt(0.5));
    }
    return s;
  });
  // What a run releases is charged as one release of kSigma.
  Gate gate = gate_of(1);
  dp_pca(rows(100, {kNumbers, 1, 1}, 1.0f), 116.0, 5, false, kSigma, gate, 1);
  ASSERT_EQ(gate.released().size(), 2u);
  for (const Released& r : gate.released())
    EXPECT_GE(r.release.noise_std / r.release.sensitivity, kSigma);
  // One example: in the metric in which entries off the diagonal have half the variance, 1.
  double most = 0.0;
  for (const float size : {1e-3f, 0.3f, 1e6f}) {
    double square = 0.0;
    for (const double m : clipped_second_moments(rows(1, {kNumbers, 1, 1}, size), bits, 1))
      square += m * m;
    most = std::max(most, std::sqrt(square));
  }
  EXPECT_LE(most, 1.0);
  EXPECT_GT(most, 0.99);
}

TEST(HostAudit, MomentsOfChannels) {
  constexpr std::size_t kChannels = 81;
  constexpr double kSigma = 4.0;
  constexpr double kSize = 500.0;
  const Dataset data = rows(500, {kChannels, 2, 2}, 1e-3f);
  const int bits = moment_bits(516.0, kSigma);
  const std::vector<double> exact = clipped_moments(data, bits, 1);
  const double mean_of = 2.0 * std::sqrt(static_cast<double>(kChannels)) / kSize;
  const auto usual = [](std::size_t c) { return c == 0 ? 0x1p-2 : c <= 16 ? 0x1p-5 : 0x1p-9; };
  expect_power([&](double share) {
    NoiseSample s;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      Gate gate = gate_of(seed);
      const std::vector<float> scaling =
          dp_channel_scaling(data, kSize, 516.0, kSigma * share, 1.0, gate, 1);
      for (std::size_t c = 0; c < kChannels; ++c) {
        const double mean = -static_cast<double>(scaling[kChannels + c]) /
                            static_cast<double>(scaling[c]) / usual(c);
        s.add(mean - mean_of * std::ldexp(exact[c], -bits), mean_of * kSigma);
      }
    }
    return s;
  });
  double most = 0.0;
  for (const float size : {1e-3f, 1.0f, 1e6f}) {
    double square = 0.0;
    for (const double m : clipped_moments(rows(1, {kChannels, 2, 2}, size), bits, 1))
      square += std::ldexp(m * m, -2 * bits);
    most = std::max(most, std::sqrt(square));
  }
  EXPECT_LE(most, 1.0);
  EXPECT_GT(most, 0.99);
}

/// Linear data whose gradients at w = 0 are along one feature each: many along the first, so that
/// its part tells the length of the noisy sum, and one along each of the canaries'.
struct AgdData {
  static constexpr std::size_t kFirst = 1000;
  static constexpr std::size_t kCanaries = 300;
  static constexpr std::size_t kFeatures = 1000;
  Dataset data;
  AgdData() {
    data.shape = {kFeatures, 1, 1};
    data.classes = 2;
    data.floats.resize((kFirst + kCanaries) * kFeatures);
    data.labels.assign(kFirst + kCanaries, 1);
    for (std::size_t i = 0; i < kFirst + kCanaries; ++i)
      data.floats[i * kFeatures + (i < kFirst ? 0 : i - kFirst + 1)] = 1e4f;
  }
};

/// The real engine, but for how long gradients may be; keeps the first direction.
class AgdEngine final : public LinearEngine {
 public:
  AgdEngine(const Dataset& train, double clip)
      : real_(make_cpu_linear_engine(train, Loss::hinge, 1e6, 1)), clip_(clip) {}
  int dimension() const override { return real_->dimension(); }
  std::size_t size() const override { return real_->size(); }
  void draw_batch(const RandomStream& stream, std::uint64_t threshold) override {
    real_->draw_batch(stream, threshold);
  }
  std::vector<std::uint32_t> batch() override { return real_->batch(); }
  std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) override {
    return real_->clipped_gradient_sum(w, max_norm * clip_);
  }
  std::vector<double> clipped_losses(std::span<const float> d, std::span<const float> steps,
                                     double max_loss) override {
    if (direction.empty()) direction.assign(d.begin(), d.end());
    return real_->clipped_losses(d, steps, max_loss);
  }
  std::uint64_t correct(std::span<const float> w, const Dataset& test) override {
    return real_->correct(w, test);
  }
  std::vector<float> direction;

 private:
  std::unique_ptr<LinearEngine> real_;
  double clip_;
};

/// What a run of DP-AGD shows in its first noisy gradients, in units of C, beside the noise that
/// its filter was told of; more_told: so much more than there is.
Evidence agd_evidence(const AgdData& agd, double share, double clip) {
  constexpr double kClip = 3.0;
  std::vector<StepSeen> seen;
  for (std::uint64_t seed = 0; seed < 14; ++seed) {
    AgdEngine engine(agd.data, clip);
    const DpAgdSettings settings{.rho_gradient = 0.5 / (share * share),
                                 .rho_selection = 0.01,
                                 .gradient_clip = kClip,
                                 .loss_clip = kClip,
                                 .l2 = 0.0,
                                 .max_examples = 2000.0};
    StepSeen s{.canaries = {}, .others = {}, .q = 1.0, .sigma = 0.0};
    const auto ask = [&](std::uint64_t, const privacy::Mechanism& release) {
      const auto* gaussian = std::get_if<privacy::Gaussian>(&release);
      if (gaussian == nullptr) return false;  // the choice: the iteration ends
      if (s.sigma == 0.0) s.sigma = gaussian->sigma / share;
      return true;
    };
    AskingBooks books(ask);
    Gate gate(Generator::chacha20, key_from_seed(seed), books);
    DpAgd method(settings, engine, 1300.0, gate);
    DpAgdState state =
        method.begin(std::vector<float>(static_cast<std::size_t>(engine.dimension())));
    method.iterate(state);
    const double length = static_cast<double>(AgdData::kFirst) * clip /
                          std::fabs(static_cast<double>(engine.direction.at(0)));
    for (std::size_t j = 1; j < AgdData::kFeatures; ++j) {
      const double x = -length * static_cast<double>(engine.direction[j]);
      (j <= AgdData::kCanaries ? s.canaries : s.others).push_back(x);
    }
    seen.push_back(std::move(s));
  }
  return evidence_of(seen);
}

TEST(HostAudit, GradientsOfDpAgd) {
  const AgdData data;
  const Evidence honest = agd_evidence(data, 1.0, 1.0);
  EXPECT_FALSE(honest.convicts()) << honest.noise << " " << honest.contribution;
  EXPECT_GT(agd_evidence(data, 0.9, 1.0).noise, 5.3);
  EXPECT_GT(agd_evidence(data, 1.0, 1.15).contribution, 5.3);
}

/// Half of the gradients have norm C, half 1, that of the bias.
Dataset dpis_examples(std::size_t n) {
  Dataset d;
  d.shape = {3, 1, 1};
  d.classes = 2;
  for (std::size_t i = 0; i < n; ++i) {
    const float x = i % 2 == 0 ? 100.0f : 0.0f;
    d.floats.insert(d.floats.end(), {x, x, x});
    d.labels.push_back(1);
  }
  return d;
}

TEST(HostAudit, SumOfNormsOfDpis) {
  constexpr std::size_t kExamples = 400;
  TrainConfig c;
  c.method = "dpis";
  c.epsilon = 5.0;
  c.delta = 1e-5;
  c.batch = 20;
  c.epochs.reset();
  c.steps = 20;
  c.clip_norm = 2.0;
  c.optimizer = OptimizerKind::sgd;
  c.threads = 1;
  const Network network = cases::network_of({"svm", "svm", {3, 1, 1}, 2});
  const Backend backend = choose_backend(Device::cpu);
  const TrainingSize size{static_cast<double>(kExamples), 0.0};
  const PrivacyPlan plan = cases::plan_of(c, network, size);
  const auto total = [&](const Dataset& data, const PrivacyPlan& p, std::uint64_t seed) {
    cases::MethodTraining<Dpis> training(
        std::make_unique<Dpis>(cases::context_of(c, network, size), p), data, backend,
        key_from_seed(seed));
    if (training.method->authorise(training.budget, 0, 1) == 0)
      throw std::logic_error("no budget for a step");
    return training.method->epoch().total;
  };
  const Dataset data = dpis_examples(kExamples);
  double exact = 0.0;  // at the initial weights, 0
  for (std::size_t i = 0; i < kExamples; ++i) exact += i % 2 == 0 ? 2.0 : 1.0;
  expect_power([&](double share) {
    PrivacyPlan mutated = plan;
    mutated.epoch_noise *= share;
    NoiseSample s;
    for (std::uint64_t seed = 0; seed < 4000; ++seed)
      s.add(total(data, mutated, seed) - exact, plan.epoch_noise * plan.clip_norm);
    return s;
  });
  // The example more has the largest norm that counts.
  const Dataset more = dpis_examples(kExamples + 1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const double added = total(more, plan, seed) - total(data, plan, seed);
    EXPECT_LE(added, plan.clip_norm * (1.0 + 1e-9));
    EXPECT_GT(added, plan.clip_norm * (1.0 - 1e-6));
  }
}

/// All gradients are longer than C, so the count without noise is minus half of the batch.
TEST(HostAudit, CountsOfDpSgdQuantile) {
  TrainConfig c;
  c.method = "dpsgd-quantile";
  c.sigma = 1.0;
  c.delta = 1e-5;
  c.batch = 8;
  c.epochs.reset();
  c.steps = 4000;
  c.clip_norm = 1.0;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.threads = 1;
  c.allow_weak_privacy = true;
  auto& options = c.of<QuantileOptions>();
  options = {.target = 1e-9, .lr = 1e-3, .noise_share = 0.1, .min_clip = 1e-3, .max_clip = 50.0};
  const Audited a(c, WorstPair(16, 1000.0f));
  Engine* engine = nullptr;
  Backend backend = a.backend;
  backend.make_engine = [&](const Network& network, const EngineSettings& settings) {
    auto made = make_cpu_engine(network, settings);
    engine = made.get();
    return made;
  };
  const double sigma = a.plan.noise_multiplier;
  const double std =
      sigma / (2.0 * std::sqrt(options.noise_share));  // of what an example adds 1/2 to
  expect_power([&](double share) {
    PrivacyPlan mutated = a.plan;
    mutated.noise_multiplier *= share;
    AuditedRun<DpSgdQuantile> run(a, backend, mutated, false, 1);
    NoiseSample s;
    for (std::uint64_t t = 0; t < a.plan.steps; ++t) {
      const double before = run.method().clip_norm();
      if (run.method().authorise(run.budget(), t, t + 1) == t) throw std::logic_error("no budget");
      run.method().train(t, t + 1);
      const double counted =
          (std::log(before / run.method().clip_norm()) / options.lr + options.target - 0.5) *
          a.plan.expected_batch;
      s.add(counted + 0.5 * static_cast<double>(engine->sampled(t).size()), std);
    }
    return s;
  });
}

// A run that was killed.

CanaryCase resumed_case() {
  CanaryCase c{.name = "resumed", .model = {"mlp", "mlp", {1, 8, 8}, 10}, .config = {}};
  c.config.sigma = 1.0;
  c.config.delta = 1e-5;
  c.config.batch = 365;
  c.config.epochs.reset();
  c.config.steps = 20;
  c.config.threads = 1;
  c.config.allow_weak_privacy = true;
  c.config.epsilon = 190.0;  // which a fresh key needs
  return c;
}

/// Ten steps, then on from the checkpoint as of step `from`.
Evidence resumed(std::uint64_t from, std::uint64_t seed) {
  CanaryTraining training(resumed_case(), {}, seed);
  while (training.at() < 10) training.step();
  training.resume(from);
  while (training.step()) {
  }
  return evidence_of(training.seen());
}

TEST(ResumeAudit, CatchesNoiseThatIsUsedAgain) {
  EXPECT_FALSE(resumed(10, 1).convicts());
  EXPECT_TRUE(resumed(0, 1).convicts());
  EXPECT_TRUE(resumed(9, 1).convicts());  // a single step
}

/// Ten steps, then on from the checkpoint of step 5 with another key: 25 sums with a noise of their
/// own each.
TEST(ResumeAudit, CatchesNoiseThatIsNotPaidFor) {
  const auto unpaid = [](bool told) {
    CanaryTraining training(resumed_case(), {}, 1);
    while (training.at() < 10) training.step();
    training.resume_with_key(5, 2, told);
    while (training.step()) {
    }
    EXPECT_FALSE(evidence_of(training.seen()).convicts());
    EXPECT_EQ(training.seen().size(), 25u);
    return 25 - static_cast<int>(training.charged().size());
  };
  EXPECT_EQ(unpaid(true), 0);
  EXPECT_EQ(unpaid(false), 5);
}

}  // namespace
}  // namespace cudp::audit

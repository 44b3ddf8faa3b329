// The audit of DPIS: an example at norm C beside small ones, whose norms the probabilities follow.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "runtime/methods/dpis.hpp"
#include "tests/audit/audit.hpp"
#include "tests/audit/audit_cases.hpp"
#include "tests/support/reference/engine.hpp"
#include "tests/support/test_device.hpp"

namespace cudp::audit {
namespace {

constexpr double kClip = 10.0;
constexpr int kOtherRuns = 16;
constexpr float kSize = 2.0f;  // their norms are 2.24, the bias among the inputs

TrainConfig config(std::int64_t steps) {
  TrainConfig c;
  c.method = "dpis";
  c.epsilon = 2.5;
  c.delta = kDelta;
  c.batch = 4;  // epochs of 4 steps
  c.epochs.reset();
  c.steps = steps;
  c.clip_norm = kClip;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.of<DpisOptions>().total_noise = 0.3;  // sigma_K = 4.8
  return c;
}

WorstPair pair() { return {kOtherRuns, kSize}; }

double normal_above(double x) { return 0.5 * std::erfc(x * std::sqrt(0.5)); }

/// The log odds of K~, which is K' unless that is outside [least, most].
double total_log_odds(double total, double least, double most, double mean, double std) {
  const double z = (total - mean) / std;
  const double shift = kClip / std;
  if (total <= least) return std::log(normal_above(shift - z) / normal_above(-z));
  if (total >= most) return std::log(normal_above(z - shift) / normal_above(z));
  return shift * (z - 0.5 * shift);
}

/// A run of DPIS, weighed by what its certificate says.
class DpisRun {
 public:
  DpisRun(const Audited& a, const Backend& backend, bool with, std::uint64_t number)
      : a_(a), run_(a, backend, a.plan, with, number) {}

  /// Makes and weighs the release of the epoch that begins at step t; pays for its steps.
  void begin_epoch(std::uint64_t t) {
    const std::uint64_t end = std::min(t + method().steps_per_epoch(), a_.plan.steps);
    if (method().authorise(run_.budget(), t, end) != end)
      throw std::logic_error("the budget ended before the training");
    odds_ += total_log_odds(method().epoch().total, a_.plan.expected_batch * kClip * 1.00001,
                            a_.size.value * kClip, kOtherRuns * std::hypot(kSize, 1.0),
                            a_.plan.epoch_noise * kClip);
  }

  /// The whole training, weighed as it really is. capped: its estimates are; see UncappedEngine.
  void train(bool capped) {
    const std::uint64_t steps = a_.plan.steps;
    const std::uint64_t width = method().steps_per_epoch();
    for (std::uint64_t t = 0; t < steps; t += width) {
      begin_epoch(t);
      for (std::uint64_t i = t; i < std::min(t + width, steps); ++i) take(i, capped);
    }
  }

  double odds() const { return odds_; }

 private:
  Dpis& method() { return run_.method(); }

  void take(std::uint64_t step, bool capped) {
    method().train(step, step + 1);
    const float now = method().parameters()[0];
    const double g = (static_cast<double>(before_) - static_cast<double>(now)) / a_.config.lr;
    before_ = now;
    // In units of K~ / (N b), what an accepted example is to count.
    const double x = -g * a_.size.value * a_.plan.expected_batch / method().epoch().total;
    // Without the cap it counts b k C / K~ where that is above 1, with probability 1 / k.
    const double q = method().rate();
    const double counts = capped ? 1.0 : std::fmax(1.0, a_.config.of<DpisOptions>().multiple * q);
    odds_ += log_odds(x / counts, q / counts, method().noise_multiplier() / counts);
  }

  const Audited& a_;
  AuditedRun<Dpis> run_;
  float before_ = 0.0f;
  double odds_ = 0.0;
};

double shown_by(const Audited& a, const Backend& backend, bool capped = true) {
  const Trial trial = [&](bool with, std::uint64_t number) {
    DpisRun run(a, backend, with, number);
    run.train(capped);
    return run.odds();
  };
  const double bound = epsilon_lower(trial, kDelta);
  testing::Test::RecordProperty("epsilon_shown", std::to_string(bound));
  return bound;
}

TEST(DpisAudit, ShowsNoMoreThanTheCertificateSays) {
  const Audited a(config(8), pair());
  const double bound = shown_by(a, a.backend);
  EXPECT_LE(bound, *a.config.epsilon);
  if (!kFewRuns) {
    EXPECT_GT(bound, *a.config.epsilon / 5.0);
  }
}

/// The kernels of a device, under the emulator, by a tenth of the runs and in two epochs, of which
/// the second is one step: each run takes many times as long.
TEST(DpisAudit, ShowsNoMoreOnADevice) {
  const Audited a(config(5), pair());
  Backend backend = a.backend;
  backend.make_engine = [](const Network& network, const EngineSettings& settings) {
    return fused_engine(network, settings, {.multiprocessors = 1});
  };
  std::mutex one_at_a_time;  // the emulator is for one thread
  const Trial trial = [&](bool with, std::uint64_t number) {
    const std::lock_guard lock(one_at_a_time);
    DpisRun run(a, backend, with, number);
    run.train(true);
    return run.odds();
  };
  const double bound = epsilon_lower(trial, kDelta, kRuns / 10);
  testing::Test::RecordProperty("epsilon_shown", std::to_string(bound));
  EXPECT_LE(bound, *a.config.epsilon);
  if (!kFewRuns) {
    EXPECT_GT(bound, *a.config.epsilon / 20.0);
  }
}

/// DPIS as it is printed: the candidate's probability is cut off at 1, and ghat is not. What an
/// accepted example counts is then not K~ / N~ but b ghat / N~.
class UncappedEngine final : public reference::ReferenceEngine {
 public:
  using ReferenceEngine::ReferenceEngine;

 private:
  void draw_candidates(const ImportanceRule& rule, std::uint64_t step) override {
    const RandomStream s = stream(Stream::sampling, step);
    batch_.clear();
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      if (reference::word(s, i) * 0x1p-32 < ghat(rule, i) * rule.rate) batch_.push_back(i);
  }

  void add_directions(const ImportanceRule& rule, std::uint64_t step) override {
    const RandomStream s = stream(Stream::acceptance, step);
    for (const std::uint32_t i : batch_) {
      const reference::ExampleGradient e = example(i);
      const double norm = norm_of(e);
      const double n = std::fmin(norm, rule.clip);
      if (!(reference::word(s, i) * 0x1p-32 < n / ghat(rule, i))) continue;
      const double weight = std::fmax(1.0, ghat(rule, i) * rule.rate);
      for (std::size_t j = 0; j < sum_.size(); ++j) sum_[j] += weight * e.gradient[j] / norm;
    }
  }

  double ghat(const ImportanceRule& rule, std::uint32_t i) const {
    const double n = std::fmin(state_.norms[i], rule.clip);
    return rule.multiple * std::fmax(n, rule.min_norm);
  }
};

template <class OracleEngine>
Backend oracle(const Audited& a) {
  Backend backend = a.backend;
  backend.make_engine = [](const Network& network, const EngineSettings& settings) {
    return std::make_unique<OracleEngine>(network, settings);
  };
  return backend;
}

TEST(DpisAudit, CatchesAnEstimateWithoutItsCap) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  const Audited a(config(2), pair());
  EXPECT_GT(shown_by(a, oracle<UncappedEngine>(a), false), *a.config.epsilon);
  EXPECT_LE(shown_by(a, oracle<reference::ReferenceEngine>(a)), *a.config.epsilon);
}

/// K' as the only release. It is a sum over all examples; with the paper's accounting, of a
/// subsample of them, it claims less than it shows.
TEST(DpisAudit, CatchesATotalThatIsAccountedAsSubsampled) {
  TrainConfig c = config(8);
  c.epsilon = 12.0;
  c.of<DpisOptions>().total_noise = 0.05;  // sigma_K = 0.8
  const Audited a(c, pair());
  const Trial trial = [&](bool with, std::uint64_t number) {
    DpisRun run(a, a.backend, with, number);
    run.begin_epoch(0);
    return run.odds();
  };
  const auto claimed = [](const privacy::Mechanism& total) {
    return privacy::Accountant({.releases = {{total, 1}}}, {.kind = privacy::AccountantKind::rdp})
        .epsilon(kDelta)
        .epsilon;
  };
  const double bound = epsilon_lower(trial, kDelta);
  const double sigma = a.plan.epoch_noise;
  const double summed = claimed(privacy::Gaussian{sigma});
  EXPECT_LE(bound, summed);
  if (kFewRuns) return;
  EXPECT_GT(bound, summed / 5.0);
  EXPECT_GT(bound, claimed(privacy::PoissonGaussian{.q = 0.1, .sigma = sigma}));
}

}  // namespace
}  // namespace cudp::audit

// The audit of DPIS: an example at norm C beside small ones, whose norms the probabilities follow.
#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "privacy/filter.hpp"
#include "runtime/methods/dpis.hpp"
#include "tests/audit/audit.hpp"
#include "tests/audit/audit_cases.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp::audit {
namespace {

constexpr double kDelta = 1e-2;
constexpr double kClip = 10.0;
constexpr int kOthers = 16;
constexpr float kSize = 2.0f;  // their norms are 2.24, the bias among the inputs

TrainConfig config(std::int64_t steps) {
  TrainConfig c;
  c.method = MethodKind::dpis;
  c.epsilon = 2.5;
  c.delta = kDelta;
  c.batch = 4;  // epochs of 4 steps
  c.epochs.reset();
  c.steps = steps;
  c.clip = kClip;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.dpis_total_noise = 0.3;  // sigma_K = 4.8
  return c;
}

WorstPair pair() { return {kOthers, kSize}; }

double normal_above(double x) { return 0.5 * std::erfc(x * std::sqrt(0.5)); }

/// The log odds of K~, which is K' unless that is outside [least, most].
double total_log_odds(double total, double least, double most, double mean, double std) {
  const double z = (total - mean) / std;
  const double shift = kClip / std;
  if (total <= least) return std::log(normal_above(shift - z) / normal_above(-z));
  if (total >= most) return std::log(normal_above(z - shift) / normal_above(z));
  return shift * (z - 0.5 * shift);
}

using MakeEngine =
    std::function<std::unique_ptr<Engine>(const Audited& a, bool with, const RandomKey& key)>;
std::unique_ptr<Engine> real_engine(const Audited& a, bool with, const RandomKey& key) {
  return make_engine(a.of(with), a.plan, a.size, key);
}

/// A run of DPIS under a filter, as train/training.cpp makes it.
class DpisRun {
 public:
  DpisRun(const Audited& a, const MakeEngine& make, bool with, std::uint64_t number)
      : a_(a),
        engine_(make(a, with, key_of(with, number))),
        filter_(
            privacy::renyi_budget(a.plan.order, *a.config.epsilon, a.plan.delta - a.plan.failure)) {
    TrainState start;
    start.parameters.assign(a.with.network.parameter_count, 0.0f);
    engine_->set_state(start);
    epoch_.left = divergence_left(filter_.ledger());
    method_ = make_method(a.facts(a.plan), epoch_);
  }

  /// Makes and weighs the release of the epoch that begins at step t. told: what the accountant
  /// hears of it.
  using Told = privacy::Mechanism (*)(const privacy::Phase& release);
  bool release_total(std::uint64_t t, Told told) {
    const Charging charging{[&](std::uint64_t begin, std::uint64_t end, const privacy::Phase& p) {
      return filter_.authorise(begin, end, told(p));
    }};
    if (!method_->prepare(*engine_, t, charging)) return false;
    odds_ += total_log_odds(epoch_.total, a_.plan.expected_batch * kClip * 1.00001,
                            a_.size.value * kClip, kOthers * std::hypot(kSize, 1.0),
                            a_.plan.epoch_noise * kClip);
    return true;
  }

  /// What is wrong with the steps.
  struct Broken {
    double noise = 1.0;  ///< it is so many times what it should be
    bool capped = true;  ///< false: UncappedEngine
  };
  /// The whole training, as the accountant should have it, weighed as it really is.
  void train(const Broken& broken) {
    const PrivacyPlan& plan = a_.plan;
    for (std::uint64_t t = 0; t < plan.steps; t = method_->prepared_until(t)) {
      const bool released = release_total(t, as_it_is);
      const std::uint64_t until = method_->prepared_until(t);
      const privacy::Phase steps = method_->phases(t, until).front();
      if (!released ||
          !filter_.authorise(method_->place(t), method_->place(until - 1) + 1, as_it_is(steps))) {
        ADD_FAILURE() << "the budget ended before the training";
        return;
      }
      epoch_.sigma *= broken.noise;
      for (std::uint64_t i = t; i < until; ++i) take(i, steps, broken);
    }
  }

  static privacy::Mechanism as_it_is(const privacy::Phase& p) {
    return privacy::step_of({p.q, p.sigma, 1}).mechanism;
  }

  double odds() const { return odds_; }
  const privacy::Ledger& ledger() const { return filter_.ledger(); }

 private:
  void take(std::uint64_t step, const privacy::Phase& promised, const Broken& broken) {
    method_->run(*engine_, step, step + 1);
    const float now = engine_->state().parameters[0];
    const double g = (static_cast<double>(before_) - static_cast<double>(now)) / a_.config.lr;
    before_ = now;
    // In units of K~ / (N b), what an accepted example is to count.
    const double x = -g * a_.size.value * a_.plan.expected_batch / epoch_.total;
    // Without the cap it counts b k C / K~ where that is above 1, with probability 1 / k.
    const double counts =
        broken.capped ? 1.0 : std::fmax(1.0, a_.config.dpis_multiple * promised.q);
    odds_ += log_odds(x / counts, promised.q / counts, promised.sigma * broken.noise / counts);
  }

  const Audited& a_;
  std::unique_ptr<Engine> engine_;
  privacy::Filter filter_;
  DpisEpoch epoch_;
  std::unique_ptr<Method> method_;
  float before_ = 0.0f;
  double odds_ = 0.0;
};

double shown_by(const Audited& a, const MakeEngine& make, const DpisRun::Broken& broken) {
  const Trial trial = [&](bool with, std::uint64_t number) {
    DpisRun run(a, make, with, number);
    run.train(broken);
    return run.odds();
  };
  const double bound = epsilon_lower(trial, kDelta);
  testing::Test::RecordProperty("epsilon_shown", std::to_string(bound));
  return bound;
}

TEST(DpisAudit, ShowsNoMoreThanTheCertificateSays) {
  const Audited a(config(8), pair());
  const double bound = shown_by(a, real_engine, {});
  EXPECT_LE(bound, *a.config.epsilon);
  if (!kFewRuns) {
    EXPECT_GT(bound, *a.config.epsilon / 5.0);
  }
}

TEST(DpisAudit, CatchesHalfTheNoise) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  const Audited a(config(4), pair());
  EXPECT_GT(shown_by(a, real_engine, {.noise = 0.5}), *a.config.epsilon);
}

/// DPIS as it is printed: the candidate's probability is cut off at 1, and ghat is not. What an
/// accepted example counts is then not K~ / N~ but b ghat / N~.
class UncappedEngine final : public reference::ReferenceEngine {
 public:
  using ReferenceEngine::ReferenceEngine;
  void set_importance(const ImportanceRule& rule) override { uncapped_ = rule; }

  void sample_candidates() override {
    const RandomStream s = stream(Stream::sampling, step_);
    batch_.clear();
    for (std::uint32_t i = 0; i < train_.size(); ++i)
      if (reference::word(s, i) * 0x1p-32 < ghat(i) * uncapped_.rate) batch_.push_back(i);
  }

  void sum_accepted_directions() override {
    const RandomStream s = stream(Stream::acceptance, step_);
    sum_.assign(net_.parameter_count, 0.0);
    for (const std::uint32_t i : batch_) {
      const reference::ExampleGradient e = example(i);
      const double norm = norm_of(e);
      const double n = std::fmin(norm, uncapped_.clip);
      if (!(reference::word(s, i) * 0x1p-32 < n / ghat(i))) continue;
      const double weight = std::fmax(1.0, ghat(i) * uncapped_.rate);
      for (std::size_t j = 0; j < sum_.size(); ++j) sum_[j] += weight * e.gradient[j] / norm;
    }
  }

 private:
  double ghat(std::uint32_t i) const {
    const double n = std::fmin(state_.norms[i], uncapped_.clip);
    return uncapped_.multiple * std::fmax(n, uncapped_.least);
  }
  ImportanceRule uncapped_;
};

template <class OracleEngine>
std::unique_ptr<Engine> oracle(const Audited& a, bool with, const RandomKey& key) {
  EngineSettings s;
  s.importance = true;
  s.optimizer = optimizer_settings(a.config);
  s.key = key;
  auto engine = std::make_unique<OracleEngine>(a.with.network, s);
  engine->load(a.of(with).data.train);
  return engine;
}

TEST(DpisAudit, CatchesAnEstimateWithoutItsCap) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  const Audited a(config(2), pair());
  EXPECT_GT(shown_by(a, oracle<UncappedEngine>, {.capped = false}), *a.config.epsilon);
  EXPECT_LE(shown_by(a, oracle<reference::ReferenceEngine>, {}), *a.config.epsilon);
}

/// K' as the only release. It is a sum over all examples; with the paper's accounting, of a
/// subsample of them, it claims less than it shows.
TEST(DpisAudit, CatchesATotalThatIsAccountedAsSubsampled) {
  TrainConfig c = config(8);
  c.epsilon = 12.0;
  c.dpis_total_noise = 0.05;  // sigma_K = 0.8
  const Audited a(c, pair());
  const Trial trial = [&](bool with, std::uint64_t number) {
    DpisRun run(a, real_engine, with, number);
    run.release_total(0, DpisRun::as_it_is);
    return run.odds();
  };
  const auto claimed = [&](DpisRun::Told told) {
    DpisRun run(a, real_engine, true, 0);
    EXPECT_TRUE(run.release_total(0, told));
    return run.ledger().spent(kDelta).epsilon;
  };
  const double bound = epsilon_lower(trial, kDelta);
  EXPECT_LE(bound, claimed(DpisRun::as_it_is));
  if (kFewRuns) return;
  EXPECT_GT(bound, claimed(DpisRun::as_it_is) / 5.0);
  const auto subsampled = [](const privacy::Phase& p) -> privacy::Mechanism {
    return privacy::PoissonGaussian{.q = 0.1, .sigma = p.sigma};
  };
  EXPECT_GT(bound, claimed(subsampled));
}

}  // namespace
}  // namespace cudp::audit

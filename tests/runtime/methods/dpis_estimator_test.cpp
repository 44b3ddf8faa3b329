// What DPIS releases is, on average, the mean of the clipped gradients.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/methods/dpis.hpp"
#include "tests/audit/audit.hpp"
#include "tests/audit/audit_cases.hpp"

namespace cudp {
namespace {

constexpr double kClip = 10.0;

TrainConfig estimator_config() {
  TrainConfig c;
  c.method = "dpis";
  c.epsilon = 60.0;  // little noise, so that a bias would show
  c.delta = 1e-5;
  c.batch = 4;
  c.epochs.reset();
  c.steps = 30;  // two epochs
  c.clip_norm = kClip;
  c.optimizer = OptimizerKind::sgd;
  c.lr = 1e-6;
  c.of<DpisOptions>().total_noise = 0.03;
  return c;
}

/// The clipped gradients, [examples][parameters]; the same at all small weights.
std::vector<std::vector<double>> clipped_gradients(const Dataset& data) {
  std::vector<std::vector<double>> gradients;
  const auto features = static_cast<std::size_t>(data.shape.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::vector<double> g;
    double square = 1.0;
    for (std::size_t j = 0; j < features; ++j) {
      g.push_back(-static_cast<double>(data.floats[i * features + j]));
      square += g.back() * g.back();
    }
    g.push_back(-1.0);
    for (double& v : g) v *= std::fmin(1.0, kClip / std::sqrt(square));
    gradients.push_back(std::move(g));
  }
  return gradients;
}

double norm(const std::vector<double>& g) {
  double square = 0.0;
  for (const double v : g) square += v * v;
  return std::sqrt(square);
}

/// z-tests of all coordinates at 1e-6 together, through the method as it trains: K~ released, rates
/// and weights by K~, noise included. One example is clipped, and most have probabilities that
/// would pass 1 without the cap.
TEST(DpisEstimator, IsUnbiasedForTheClippedMeanGradient) {
  const audit::WorstPair pair(60, 2.0f);
  const audit::Audited run(estimator_config(), pair);
  const double n = run.size.value;
  const std::vector<std::vector<double>> gradients = clipped_gradients(pair.with);
  const std::size_t d = gradients[0].size();
  std::vector<double> excess(d, 0.0);
  std::vector<double> variance(d, 0.0);
  double most_candidate = 0.0;
  for (std::uint64_t r = 0; r < (audit::kFewRuns ? 10 : 800); ++r) {
    audit::AuditedRun<Dpis> training(run, run.backend, run.plan, true, r);
    Dpis& method = training.method();
    std::vector<float> before = method.parameters();
    for (std::uint64_t t = 0; t < run.plan.steps; ++t) {
      ASSERT_EQ(method.authorise(training.budget(), t, t + 1), t + 1);
      method.train(t, t + 1);
      const std::vector<float> after = method.parameters();
      const DpisEpoch& epoch = method.epoch();
      // Of g~: included gradients count K~ / (N b) times their direction, with probability b n /
      // K~.
      const double weight = epoch.total / (n * run.plan.expected_batch);
      const double noise = epoch.sigma * kClip / run.plan.expected_batch;
      for (std::size_t j = 0; j < d; ++j) {
        excess[j] +=
            (static_cast<double>(before[j]) - static_cast<double>(after[j])) / run.config.lr;
        variance[j] += noise * noise;
      }
      for (const std::vector<double>& g : gradients) {
        const double p = run.plan.expected_batch * norm(g) / epoch.total;
        most_candidate = std::fmax(most_candidate, run.config.of<DpisOptions>().multiple * p);
        for (std::size_t j = 0; j < d; ++j) {
          excess[j] -= g[j] / n;
          variance[j] += p * (1.0 - p) * std::pow(weight * g[j] / norm(g), 2);
        }
      }
      before = after;
    }
  }
  EXPECT_GT(most_candidate, 1.0) << "the cap must have been needed";
  for (std::size_t j = 0; j < d; ++j)  // 5.4 deviations: 7e-8 each, 8 of them
    EXPECT_TRUE(std::fabs(excess[j]) <= 5.4 * std::sqrt(variance[j]))
        << j << ": " << excess[j] / std::sqrt(variance[j]);
}

}  // namespace
}  // namespace cudp

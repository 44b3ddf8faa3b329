// Output perturbation, objective perturbation and PrivGene: their noise, what it is calibrated to,
// and what they learn.
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/objective_perturbation.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/data/load.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/linear_options.hpp"
#include "runtime/methods/objective_perturbation.hpp"
#include "runtime/methods/output_perturbation.hpp"
#include "runtime/methods/privgene.hpp"
#include "runtime/methods/risk_options.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/linear_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/test_books.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

TrainConfig config(double epsilon = 1.0, double delta = 1e-6) {
  TrainConfig c;
  c.epsilon = epsilon;
  c.delta = delta;
  return c;
}

/// Of a release of the number of examples; 0 where that is public.
double mu_of_size(double size_noise) { return size_noise > 0.0 ? 1.0 / size_noise : 0.0; }

template <class M>
std::unique_ptr<LinearMethod> make(const TrainConfig& c, const LinearProblem& facts) {
  return std::make_unique<M>(c, facts);
}
constexpr std::unique_ptr<LinearMethod> (*kMethods[])(const TrainConfig&, const LinearProblem&) = {
    make<OutputPerturbation>, make<ObjectivePerturbation>, make<PrivGene>};

std::vector<float> trained(const LinearMethod& method, const Dataset& data, std::uint64_t seed) {
  const RandomKey key = key_from_seed(seed);
  Gate gate(Generator::chacha20, key, all_paid());
  return method.fit(
      {.train = data, .threads = 1, .generator = Generator::chacha20, .key = key, .gate = gate});
}

/// delta of the Gaussian mechanism by its two tails (Balle, Wang 2018, Theorem 8).
double gaussian(double mu, double epsilon) {
  const auto tail = [](double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); };
  return tail(epsilon / mu - 0.5 * mu) - std::exp(epsilon) * tail(epsilon / mu + 0.5 * mu);
}

/// Whether the mean of `squares` of n standard normal numbers is what it should be: false alarm
/// 1e-6.
void expect_variance(double sum_of_squares, double n) {
  EXPECT_TRUE(std::fabs(sum_of_squares / n - 1.0) <= 4.9 * std::sqrt(2.0 / n))
      << sum_of_squares / n;
}

TEST(OutputPerturbation, NoiseIsThatOfItsSensitivity) {
  for (const double size_noise : {0.0, 40.0}) {
    const OutputPerturbation method(config(), {.loss = Loss::logistic,
                                               .dimension = 4,
                                               .examples = 5000.0,
                                               .mu_before = mu_of_size(size_noise),
                                               .size_is_public = size_noise == 0.0});
    // Lambda = 0.001 N, and rounding to the grid
    EXPECT_NEAR(method.sensitivity(), (1.0 + 2e-5) / 5.0 + std::sqrt(4.0) * method.grid(), 1e-10);
    EXPECT_LE(std::sqrt(4.0) * method.grid(), 1e-6 * (1.0 + 2e-5) / 5.0);
    double mu = method.sensitivity() / method.noise_std();
    if (size_noise > 0.0) mu = std::hypot(mu, 1.0 / size_noise);
    EXPECT_LE(gaussian(mu, 1.0), 1e-6);
    EXPECT_GT(gaussian(mu * (1.0 + 1e-6), 1.0), 1e-6);
    EXPECT_LE(method.epsilon(), 1.0);
    EXPECT_GT(method.epsilon(), 0.999999);
    const auto releases = method.releases();
    ASSERT_EQ(releases.size(), 1u);
    // At least what is charged, to the last bit, as the gate asks; and no more than rounding.
    const double sigma = std::get<privacy::Gaussian>(releases[0].mechanism).sigma;
    EXPECT_LE(std::fma(sigma, method.sensitivity(), -method.noise_std()), 0.0);
    EXPECT_NEAR(method.noise_std() / method.sensitivity(), sigma, 2e-15 * sigma);
  }
}

TEST(OutputPerturbation, ReleasesTheMinimumAndNoiseOfThatSize) {
  const Dataset data = linear_table(50, 3, 1);
  TrainConfig c = config();
  c.of<LinearOptions>().l2 = 0.1;
  const OutputPerturbation method(c, {.loss = Loss::hinge, .dimension = 4, .examples = 50.0});
  LinearRisk risk(data, risk_settings(c, Loss::hinge, static_cast<double>(data.size())));
  const std::vector<double> minimum =
      minimise_risk(risk, {.regulariser = 5.0, .tolerance = 1e-9}).w;
  double squares = 0.0;
  std::vector<double> means(4, 0.0);
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<float> w = trained(method, data, static_cast<std::uint64_t>(run));
    for (std::size_t j = 0; j < 4; ++j) {
      const double z = (static_cast<double>(w[j]) - minimum[j]) / method.noise_std();
      squares += z * z;
      means[j] += z / kRuns;
    }
  }
  expect_variance(squares, 4.0 * kRuns);
  for (const double mean : means) EXPECT_TRUE(std::fabs(mean) <= 5.1 / std::sqrt(kRuns));
}

TEST(ObjectivePerturbationMethod, IsCalibratedByItsBound) {
  for (const double size_noise : {0.0, 60.0})
    for (const Loss loss : {Loss::logistic, Loss::hinge})
      for (const double examples : {2.0, 40'000.0}) {
        const ObjectivePerturbation method(config(), {.loss = loss,
                                                      .dimension = 4,
                                                      .examples = examples,
                                                      .mu_before = mu_of_size(size_noise),
                                                      .size_is_public = size_noise == 0.0});
        const double beta = loss == Loss::hinge ? 1.0 : 0.25;
        EXPECT_GE(method.regulariser(), 0.001 * examples);
        EXPECT_GE(method.kappa(), std::log1p(beta / method.regulariser()));
        EXPECT_LE(method.kappa(), 0.5 + 1e-9);
        if (size_noise > 0.0) {
          EXPECT_NEAR(method.kappa(), 0.1, 1e-9);  // whatever the noisy size says
        }
        const double others =
            std::hypot(0.01 * method.mu(), size_noise > 0.0 ? 1.0 / size_noise : 0.0);
        EXPECT_LE(privacy::objective_perturbation_delta({method.mu(), method.kappa()}, others, 1.0),
                  1e-6);
      }
}

/// Far below the hinge's corner the objective is a parabola: the minimum is (sum of v - b) /
/// Lambda.
TEST(ObjectivePerturbationMethod, PerturbsTheObjective) {
  const Dataset data = linear_table(6, 3, 1);
  TrainConfig c = config(2.0, 1e-2);
  c.of<LinearOptions>().l2 = 50.0;
  const ObjectivePerturbation method(c, {.loss = Loss::hinge, .dimension = 4, .examples = 6.0});
  ASSERT_DOUBLE_EQ(method.regulariser(), 300.0);
  std::vector<double> sum(4, 0.0);
  for (std::size_t i = 0; i < 6; ++i) {
    double v[4] = {data.floats[3 * i], data.floats[3 * i + 1], data.floats[3 * i + 2], 1.0};
    const double length = std::hypot(std::hypot(v[0], v[1]), std::hypot(v[2], v[3]));
    for (std::size_t j = 0; j < 4; ++j) sum[j] += (data.labels[i] == 1 ? v[j] : -v[j]) / length;
  }
  double squares = 0.0;
  constexpr int kRuns = 3000;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<float> w = trained(method, data, static_cast<std::uint64_t>(run));
    for (std::size_t j = 0; j < 4; ++j) {
      const double z = (static_cast<double>(w[j]) * 300.0 - sum[j]) * method.mu();
      squares += z * z;
    }
  }
  // The output's noise, 2 tau / Lambda times 100 / mu, is 0.2 % of the objective's.
  expect_variance(squares / (1.0 + std::pow(2e-5 * 100.0, 2)), 4.0 * kRuns);
}

TEST(PrivGene, SharesItsBudgetOut) {
  for (const double size_noise : {0.0, 80.0}) {
    const PrivGene method(config(), {.loss = Loss::logistic,
                                     .dimension = 4,
                                     .examples = 400'000.0,
                                     .mu_before = mu_of_size(size_noise),
                                     .size_is_public = size_noise == 0.0});
    EXPECT_EQ(method.generations(), 50u);  // 1.25e-3 N epsilon / 10
    const auto releases = method.releases();
    ASSERT_EQ(releases.size(), 1u);
    EXPECT_EQ(releases[0].count, 491u);
    double rho = 491.0 * std::pow(method.selection_epsilon(), 2) / 8.0;
    if (size_noise > 0.0) rho += 0.5 / (size_noise * size_noise);
    EXPECT_NEAR(rho, privacy::zcdp_for(1.0, 1e-6), 1e-6 * rho);
    EXPECT_LE(method.epsilon(), 1.0);
    EXPECT_GT(method.epsilon(), 0.99999);
  }
  const PrivGene small(config(), {.loss = Loss::hinge, .dimension = 4, .examples = 10.0});
  EXPECT_EQ(small.generations(), 8u);
}

TEST(LinearMethods, RefuseABudgetThatTheSizeHasSpent) {
  const Network network = cases::network_of({"logistic", "logistic", {2, 1, 1}, 2});
  for (const char* name : {"outpert", "objpert", "privgene"}) {
    TrainConfig c = config();
    c.method = name;
    EXPECT_THROW(method_entry(name).make(cases::context_of(c, network, TrainingSize{9.0, 1.0})),
                 BudgetError)
        << name;
  }
}

double share_right(const LinearMethod& method, const Dataset& data, Loss loss) {
  const auto engine = make_cpu_linear_engine(data, loss, 1e6, 1);
  return static_cast<double>(engine->correct(trained(method, data, 1), data)) /
         static_cast<double>(data.size());
}

TEST(LinearMethods, LearnWhereTheBudgetIsLargeAndRepeatThemselves) {
  const Dataset data = linear_table(4000, 4, 11);
  for (const auto make_method : kMethods)
    for (const Loss loss : {Loss::logistic, Loss::hinge}) {
      TrainConfig c = config(5.0);
      c.of<LinearOptions>().l2 = 0.01;
      c.of<PrivGeneOptions>().candidates = 100;
      const auto method = make_method(c, {.loss = loss, .dimension = 5, .examples = 4000.0});
      EXPECT_GT(share_right(*method, data, loss), make_method == kMethods[2] ? 0.75 : 0.85);
      EXPECT_EQ(trained(*method, data, 5), trained(*method, data, 5));
      EXPECT_NE(trained(*method, data, 5), trained(*method, data, 6));
    }
}

/// On BANK at epsilon = 1, delta = 1e-8. The larger class has 88.3 %.
TEST(LinearMethods, LearnBank) {
  if (!std::filesystem::exists(shared_file("data/bank"))) GTEST_SKIP() << "no data";
  const DataSplit bank = load_data({.dataset = "bank", .dir = shared_file("data").string()});
  const auto accuracy = [&](const auto make_method, double l2) {
    TrainConfig c = config(1.0, 1e-8);
    c.of<LinearOptions>().l2 = l2;
    const auto method = make_method(c, {.loss = Loss::logistic,
                                        .dimension = bank.train.shape.size() + 1,
                                        .examples = static_cast<double>(bank.train.size())});
    const auto engine = make_cpu_linear_engine(bank.train, Loss::logistic, 1e6, 1);
    return static_cast<double>(engine->correct(trained(*method, bank.train, 1), bank.test)) /
           static_cast<double>(bank.test.size());
  };
  EXPECT_GT(accuracy(make<ObjectivePerturbation>, 0.0003), 0.886);
  EXPECT_GT(accuracy(make<OutputPerturbation>, 0.001), 0.884);
}

}  // namespace
}  // namespace cudp

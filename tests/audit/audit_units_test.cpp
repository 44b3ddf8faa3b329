// Audits of units of privacy: each canary is a whole unit of k equal rows. A training whose noise
// is for units shows no more than its certificate says; one whose noise is for single rows, the
// group factor left out, is refuted.
#include <cmath>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "privacy/audit.hpp"
#include "runtime/audit/canaries.hpp"
#include "runtime/audit/scores.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/methods/engine_method.hpp"
#include "runtime/training/training.hpp"
#include "tests/audit/audit.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

constexpr std::size_t kOrdinary = 400;
constexpr std::size_t kCanaries = 3000;
constexpr std::uint64_t kGuesses = 300;

struct UnitCase {
  const char* name;
  std::uint64_t rows;  ///< of a unit
  double epsilon;
  double rate;  ///< with which examples are drawn
  std::uint64_t steps;
  Clipping clipping = Clipping::flat;
  const char* method = "dpsgd";
};
void PrintTo(const UnitCase& c, std::ostream* os) { *os << c.name; }

Experiment experiment(const UnitCase& c) {
  const cases::Case model{"logistic", "logistic", {1, 28, 28}, 10};
  Experiment e;
  e.config.method = c.method;
  e.config.epsilon = c.epsilon;
  e.config.delta = 1e-5;
  e.config.batch = std::llround(c.rate * static_cast<double>(kOrdinary + kCanaries * c.rows));
  e.config.epochs.reset();
  e.config.steps = static_cast<std::int64_t>(c.steps);
  e.config.clipping = c.clipping;
  e.config.threads = 1;
  e.config.checkpoint_every = 0;
  e.config.eval_every = 0;
  e.config.precision = Precision::fp32;
  e.data.name = "examples";
  e.data.train = cases::examples_for(model, kOrdinary);
  e.data.size_is_public = true;
  e.data.unit_rows = c.rows;
  e.network = cases::network_of(model);
  e.backend = choose_backend(Device::cpu);
  return e;
}

class Scorer final : public TrainingObserver {
 public:
  Scorer(Canaries& canaries, std::uint64_t rows) : canaries_(canaries), rows_(rows) {}
  void planned(const Training& t) override {
    const auto& method = dynamic_cast<const EngineMethod&>(t.method());
    canaries_.scores.emplace(canaries_.parameters, method.plan().sampling_rate(), rows_);
  }

 private:
  Canaries& canaries_;
  std::uint64_t rows_;
};

struct Shown {
  double certified = 0.0;
  double any = 0.0;       ///< whatever the mechanism is
  double gaussian = 0.0;  ///< of a Gaussian one
};

/// factor: whether the training knows of the units.
Shown audit(const UnitCase& c, bool factor, std::uint64_t seed) {
  Experiment e = experiment(c);
  Canaries canaries{.member = draw_membership(kCanaries, key_from_seed(seed + 1000))};
  add_gradient_canaries(e, canaries);
  if (!factor) e.data.unit_rows = 1;
  Scorer scorer(canaries, c.rows);
  const auto training = Training::begin(std::move(e), key_from_seed(seed), scorer);
  training->advance();
  std::vector<std::pair<double, bool>> scores;
  const std::vector<double> all = canaries.scores->scores();
  for (std::size_t i = 0; i < all.size(); ++i) scores.emplace_back(all[i], canaries.member[i]);
  const privacy::Guesses guesses = guess(scores, kGuesses);
  return {.certified = training->method().epsilon(),
          .any = privacy::epsilon_lower(guesses, 1e-5, audit::kError),
          .gaussian = privacy::gaussian_epsilon_lower(guesses, 1e-5, audit::kError)};
}

class UnitAudit : public testing::TestWithParam<UnitCase> {};

TEST_P(UnitAudit, PassesTheHonestAndRefutesOneWithoutTheFactor) {
  const Shown honest = audit(GetParam(), true, 1);
  RecordProperty("certified", std::to_string(honest.certified));
  RecordProperty("shown", std::to_string(honest.gaussian));
  EXPECT_LE(honest.certified, GetParam().epsilon);
  EXPECT_LE(honest.any, honest.certified);
  EXPECT_LE(honest.gaussian, honest.certified);
  EXPECT_GT(honest.gaussian, 0.1 * honest.certified);
  const Shown without = audit(GetParam(), false, 2);
  RecordProperty("shown_without_the_factor", std::to_string(without.gaussian));
  EXPECT_GT(without.gaussian, without.certified);
}
INSTANTIATE_TEST_SUITE_P(
    All, UnitAudit,
    testing::Values(UnitCase{"eight_rows_all_in_the_batch", 8, 2.0, 1.0, 1},
                    UnitCase{"eight_rows_sampled", 8, 2.0, 0.5, 2},
                    UnitCase{"six_rows", 6, 3.0, 1.0, 1},
                    UnitCase{"automatic", 8, 2.0, 1.0, 2, Clipping::automatic},
                    UnitCase{"quantile", 8, 2.0, 1.0, 2, Clipping::flat, "dpsgd-quantile"},
                    UnitCase{"adaclip", 8, 2.0, 1.0, 2, Clipping::flat, "adaclip"}),
    [](const auto& i) { return std::string(i.param.name); });

/// The attacker's score is the log of the ratio of the two laws, for any number of rows.
TEST(UnitScores, AreTheLogOddsOfABinomialNumberOfRows) {
  const double q = 0.3, sigma = 1.5;
  for (const std::uint64_t k : {1u, 2u, 5u})
    for (const float x : {-2.0f, 0.25f, 3.5f}) {
      GradientScores scores({1}, q, k);
      const std::vector<float> sum = {9.0f, 2.0f * x}, ordinary = {7.0f, 0.0f};
      scores.add(
          {.step = 0, .sum = sum, .ordinary = ordinary, .max_norm = 2.0, .noise_std = 2.0 * sigma});
      double odds = 0.0;
      for (std::uint64_t j = 0; j <= k; ++j) {
        const auto drawn = static_cast<double>(j), n = static_cast<double>(k);
        const double p = std::exp(std::lgamma(n + 1.0) - std::lgamma(drawn + 1.0) -
                                  std::lgamma(n - drawn + 1.0)) *
                         std::pow(q, drawn) * std::pow(1.0 - q, n - drawn);
        const double z = (static_cast<double>(x) - drawn) / sigma;
        odds += p * std::exp(-0.5 * z * z);
      }
      const double z = static_cast<double>(x) / sigma;
      EXPECT_NEAR(scores.scores().at(0), std::log(odds) + 0.5 * z * z, 1e-9) << k << " " << x;
    }
}

/// Members are there as whole units, and the public number counts all of their rows.
TEST(UnitCanaries, OfExamplesAreWholeUnits) {
  const UnitCase c{"", 3, 2.0, 0.1, 1};
  Experiment e = experiment(c);
  Canaries canaries{.member = {true, false, true}};
  add_example_canaries(e, canaries, key_from_seed(3));
  EXPECT_EQ(e.data.train.size(), 397u + 2u * 3u);
  EXPECT_EQ(*e.public_size, 397u + 3u * 3u);
  EXPECT_EQ(e.data.test.size(), 3u);
  const std::size_t row = static_cast<std::size_t>(e.data.train.shape.size());
  const auto at = [&](const Dataset& d, std::size_t i) {
    return std::vector<std::uint8_t>(d.bytes.begin() + static_cast<std::ptrdiff_t>(i * row),
                                     d.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * row));
  };
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(at(e.data.train, 397 + i), at(e.data.test, i < 3 ? 0 : 2));
    EXPECT_EQ(e.data.train.labels[397 + i], e.data.test.labels[i < 3 ? 0 : 2]);
  }
}

}  // namespace
}  // namespace cudp

// Values that dp_accounting (Apache-2.0) publishes in its tests of privacy losses and accountants:
// single mechanisms (rounded to eight digits or more), compositions, calibrated noise.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "privacy/calibrate.hpp"
#include "tests/privacy/common.hpp"
#include "tests/support/test_files.hpp"

namespace cudp::privacy {
namespace {

struct Published {
  Mechanism mechanism;
  NeighbouringRelation relation;
  double epsilon, delta;
};

const std::vector<Published>& published() {
  static const std::vector<Published> values{
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::add, 1.0, 0.12693674},
      {PoissonGaussian{1.0, 0.3333333333333333}, NeighbouringRelation::add, 1.0, 0.78760074},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::add, 2.0, 0.02092364},
      {PoissonGaussian{0.8, 1.0}, NeighbouringRelation::add, 1.0, 0.0231362104090899},
      {PoissonGaussian{0.7, 0.3333333333333333}, NeighbouringRelation::add, 1.0,
       0.1195051215523554},
      {PoissonGaussian{0.4, 0.3333333333333333}, NeighbouringRelation::add, 1.0, 0.0},
      {PoissonGaussian{0.3, 1.0}, NeighbouringRelation::add, 2.0, 0.0},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::add, 2.0, 0.0},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::remove, 1.0, 0.12693674},
      {PoissonGaussian{1.0, 0.3333333333333333}, NeighbouringRelation::remove, 1.0, 0.78760074},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::remove, 2.0, 0.02092364},
      {PoissonGaussian{0.8, 1.0}, NeighbouringRelation::remove, 1.0, 0.0816951786585355},
      {PoissonGaussian{0.7, 0.3333333333333333}, NeighbouringRelation::remove, 1.0,
       0.5356298793262404},
      {PoissonGaussian{0.4, 0.3333333333333333}, NeighbouringRelation::remove, 1.0,
       0.2888308005139968},
      {PoissonGaussian{0.3, 1.0}, NeighbouringRelation::remove, 2.0, 0.0003341102928869332},
      {PoissonGaussian{0.8, 2.0}, NeighbouringRelation::replace_one, 1.0, 0.05808665654484252},
      {PoissonGaussian{0.8, 1.5}, NeighbouringRelation::replace_one, 1.0, 0.13711260900644096},
      {PoissonGaussian{0.7, 0.6666666666666666}, NeighbouringRelation::replace_one, 1.0,
       0.4013057526509164},
      {PoissonGaussian{0.4, 0.5}, NeighbouringRelation::replace_one, 1.0, 0.20752885274183325},
      {PoissonGaussian{0.3, 2.0}, NeighbouringRelation::replace_one, 2.0, 2.4770380148941894e-09},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::add, 0.0, 0.38292492},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::add, 2.0, 0.020923636},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::add, 0.0, 0.076584985},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::add, 0.1, 0.02337934},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::add, 0.2, 0.00020196},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::add, 0.3, 0.0},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::remove, 0.0, 0.38292492},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::remove, 2.0, 0.020923636},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::remove, 0.0, 0.076584985},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::remove, 0.1, 0.051816131},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::remove, 0.2, 0.035738492},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::remove, 0.5, 0.012494629},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::remove, 1.0, 0.00229682},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::replace_one, 0.0, 0.68268949},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::replace_one, 1.0, 0.50986166},
      {PoissonGaussian{1.0, 1.0}, NeighbouringRelation::replace_one, 2.0, 0.331897999},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::replace_one, 0.0, 0.1365379},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::replace_one, 0.1, 0.098340892},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::replace_one, 0.2, 0.069858734},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::replace_one, 0.5, 0.0250311655},
      {PoissonGaussian{0.2, 1.0}, NeighbouringRelation::replace_one, 1.0, 0.004734828},
      {PoissonLaplace{1.0, 1.0}, NeighbouringRelation::add, 1.0, 0.0},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::add, 2.0, 0.0},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::add, 0.5, 0.52763345},
      {PoissonLaplace{1.0, 1.0}, NeighbouringRelation::add, 0.0, 0.39346934},
      {PoissonLaplace{0.8, 1.0}, NeighbouringRelation::add, 1.0, 0.0},
      {PoissonLaplace{0.8, 0.5}, NeighbouringRelation::add, 0.5, 0.3243606497234246},
      {PoissonLaplace{0.6, 1.0}, NeighbouringRelation::add, 0.2, 0.1401134521354217},
      {PoissonLaplace{0.3, 1.0}, NeighbouringRelation::add, 0.0, 0.1180408020862099},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::add, 2.0, 0.0},
      {PoissonLaplace{1.0, 1.0}, NeighbouringRelation::remove, 1.0, 0.0},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::remove, 2.0, 0.0},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::remove, 0.5, 0.52763345},
      {PoissonLaplace{1.0, 1.0}, NeighbouringRelation::remove, 0.0, 0.39346934},
      {PoissonLaplace{0.8, 1.0}, NeighbouringRelation::remove, 1.0, 0.0},
      {PoissonLaplace{0.8, 0.5}, NeighbouringRelation::remove, 0.5, 0.4039564635032081},
      {PoissonLaplace{0.6, 1.0}, NeighbouringRelation::remove, 0.2, 0.1741992102060086},
      {PoissonLaplace{0.3, 1.0}, NeighbouringRelation::remove, 0.0, 0.1180408020862099},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::add, 0.0, 0.6321205588},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::add, 0.5, 0.5276334473},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::add, 1.0, 0.3934693403},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::add, 0.0, 0.07869386806},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::add, 0.1, 0.01879989609},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::add, 0.2, 0.0},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::add, 0.3, 0.0},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::remove, 0.0, 0.6321205588},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::remove, 0.5, 0.5276334473},
      {PoissonLaplace{1.0, 0.5}, NeighbouringRelation::remove, 1.0, 0.3934693403},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::remove, 0.0, 0.07869386806},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::remove, 0.1, 0.05015600993},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::remove, 0.2, 0.02391739939},
      {PoissonLaplace{0.2, 1.0}, NeighbouringRelation::remove, 0.3, 0.0},
      {GaussianMixture{{1.0}, {1.0}, 1.0}, NeighbouringRelation::add, 1.0, 0.12693674},
      {GaussianMixture{{3.0}, {1.0}, 1.0}, NeighbouringRelation::add, 1.0, 0.78760074},
      {GaussianMixture{{0.0, 1.0}, {0.2, 0.8}, 1.0}, NeighbouringRelation::add, 1.0,
       0.0231362104090899},
      {GaussianMixture{{0.0, 3.0}, {0.3, 0.7}, 1.0}, NeighbouringRelation::add, 1.0,
       0.1195051215523554},
      {GaussianMixture{{0.0, 1.0, 2.0}, {0.2, 0.6, 0.2}, 1.0}, NeighbouringRelation::add, 1.0,
       0.036691263832032806},
      {GaussianMixture{{1.0, 2.0}, {0.2, 0.8}, 1.0}, NeighbouringRelation::add, 1.0,
       0.3894964356580768},
      {GaussianMixture{{1.0}, {1.0}, 1.0}, NeighbouringRelation::remove, 1.0, 0.12693674},
      {GaussianMixture{{3.0}, {1.0}, 1.0}, NeighbouringRelation::remove, 1.0, 0.78760074},
      {GaussianMixture{{0.0, 1.0}, {0.2, 0.8}, 1.0}, NeighbouringRelation::remove, 1.0,
       0.0816951786585355},
      {GaussianMixture{{0.0, 3.0}, {0.3, 0.7}, 1.0}, NeighbouringRelation::remove, 1.0,
       0.5356298793262404},
      {GaussianMixture{{0.0, 1.0, 2.0}, {0.2, 0.6, 0.2}, 1.0}, NeighbouringRelation::remove, 1.0,
       0.15768284088654105},
      {GaussianMixture{{1.0, 2.0}, {0.2, 0.8}, 1.0}, NeighbouringRelation::remove, 1.0,
       0.433276675545065},
  };
  return values;
}

TEST(PublishedValues, DeltaOfOneStep) {
  for (const Published& value : published()) {
    const PrivacyBound found =
        Accountant({.releases = {{value.mechanism, 1}}, .relation = value.relation}, by_pld)
            .delta(value.epsilon);
    const std::string what = std::string(name(value.mechanism)) + " " +
                             std::string(name(value.relation)) + " at " +
                             std::to_string(value.epsilon);
    EXPECT_TRUE(found.delta >= value.delta - 1e-8) << what << ": " << found.delta;
    EXPECT_TRUE(found.delta <= value.delta * (1 + 1e-4) + 2e-8) << what << ": " << found.delta;
    EXPECT_TRUE(found.delta_lower <= value.delta + 1e-8) << what << ": " << found.delta_lower;
    EXPECT_TRUE(found.delta_lower >= value.delta * (1 - 1e-3) - 1e-5)
        << what << ": " << found.delta_lower;
  }
}

Accountant accountant_of(std::vector<Release> releases) {
  return Accountant({.releases = std::move(releases)}, by_pld);
}

TEST(PublishedValues, Compositions) {
  Accountant gaussian = accountant_of({{Gaussian{std::sqrt(3.0)}, 3}});
  EXPECT_NEAR(gaussian.delta(1.0).delta, 0.126936, 1e-6);
  EXPECT_NEAR(gaussian.epsilon(0.126936).epsilon, 1.0, 1e-5);
  Accountant sampled =
      accountant_of({{PoissonGaussian{0.2, 0.5}, 1}, {PoissonGaussian{0.2, 0.5}, 2}});
  EXPECT_NEAR(sampled.delta(1.0).delta, 0.15594, 1e-5);
  EXPECT_NEAR(sampled.epsilon(0.15594).epsilon, 1.0, 1e-4);
  Accountant laplace = accountant_of({{Laplace{1.0}, 3}, {Laplace{2.0}, 2}});
  EXPECT_LT(laplace.delta(4.0).delta, 1e-6);
  EXPECT_NEAR(laplace.epsilon(1e-14).epsilon, 4.0, 1e-6);
  Accountant sampled_laplace = accountant_of({{PoissonLaplace{0.2, 0.5}, 3}});
  EXPECT_NEAR(sampled_laplace.epsilon(1e-14).epsilon, 2.46964, 1e-3);
  Accountant mixtures =
      accountant_of({{GaussianMixture{{0.0, 1.0, 2.0}, {0.2, 0.6, 0.2}, 1.0}, 3},
                     {GaussianMixture{{0.0, 2.0, 3.0}, {0.33, 0.34, 0.33}, 2.0}, 2}});
  EXPECT_NEAR(mixtures.epsilon(1e-6).epsilon, 17.193115, 1e-3);
  EXPECT_NEAR(mixtures.delta(17.193115).delta / 1e-6, 1.0, 2e-3);
}

Mechanism mechanism_of(const nlohmann::json& row) {
  const std::string mechanism = row.at("mechanism");
  if (mechanism == "poisson-gaussian") return PoissonGaussian{row.at("q"), row.at("sigma")};
  if (mechanism == "poisson-laplace") return PoissonLaplace{row.at("q"), row.at("scale")};
  if (mechanism == "gaussian-mixture")
    return GaussianMixture{row.at("sensitivities"), row.at("probabilities"), row.at("sigma")};
  return TruncatedPoissonGaussian{row.at("n"), row.at("q"), row.at("max_batch"), row.at("sigma")};
}

PrivacyBound delta_of(const Mechanism& mechanism, NeighbouringRelation relation, double epsilon) {
  return Accountant({.releases = {{mechanism, 1}}, .relation = relation}, by_pld).delta(epsilon);
}

TEST(PublishedValues, DeltaAtTheGridPoints) {
  std::ifstream file(golden_file("published_deltas.json"));
  ASSERT_TRUE(file);
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.at("deltas").size(), 142u);
  for (const nlohmann::json& row : golden.at("deltas")) {
    const Mechanism mechanism = mechanism_of(row);
    const std::string relation_name = row.at("neighbours");
    const NeighbouringRelation relation = relation_name == "add" ? NeighbouringRelation::add
                                          : relation_name == "remove"
                                              ? NeighbouringRelation::remove
                                              : NeighbouringRelation::replace_one;
    const double epsilon = row.at("epsilon");
    const double published = row.at("delta");
    const PrivacyBound found = delta_of(mechanism, relation, epsilon);
    // Eight digits are printed of each mass, and there are up to ten of them.
    constexpr double kPrinted = 1e-7;
    EXPECT_TRUE(found.delta <= published * (1 + 1e-4) + kPrinted) << row << ": " << found.delta;
    if (const auto* t = std::get_if<TruncatedPoissonGaussian>(&mechanism)) {
      // Only a bound there (TruncatedBatchesAreTighter): not below batches that are never full.
      const PrivacyBound poisson = delta_of(PoissonGaussian{t->q, t->sigma}, relation, epsilon);
      EXPECT_TRUE(found.delta >= poisson.delta_lower) << row << ": " << found.delta;
    } else {
      EXPECT_TRUE(found.delta >= published - kPrinted) << row << ": " << found.delta;
      EXPECT_TRUE(found.delta_lower <= published + kPrinted) << row << ": " << found.delta_lower;
    }
  }
}

TEST(PublishedValues, TruncatedBatchesAreTighter) {
  // The reference takes replacement for the full batches, which it calls slightly loose; here an
  // example that is added pushes another out of the batch, at twice the distance.
  Accountant truncated = accountant_of({{TruncatedPoissonGaussian{4, 0.5, 2, 1.0}, 3},
                                        {TruncatedPoissonGaussian{3, 0.5, 2, 1.0}, 2}});
  const PrivacyBound found = truncated.epsilon(1e-6);
  EXPECT_LT(found.epsilon, 17.904330 * (1 + 1e-6));
  // Not tighter than batches that are never full.
  EXPECT_GT(found.epsilon, accountant_of({{PoissonGaussian{0.5, 1.0}, 5}}).epsilon(1e-6).epsilon);
}

TEST(PublishedValues, CalibratedNoise) {
  EXPECT_NEAR(calibrate_sigma({}, {Gaussian{1.0}, 1}, 1.0, 0.78760074, by_pld), 1.0 / 3.0, 1e-5);
  EXPECT_NEAR(calibrate_sigma({}, {Gaussian{1.0}, 25}, 1.0, 0.78760074, by_pld), 10.0 / 6.0, 1e-4);
  for (const auto& [queries, scale] : {std::pair{20, 13.6}, {500, 71.0}}) {  // within 0.1
    const auto steps = static_cast<std::uint64_t>(queries);
    EXPECT_LT(accountant_of({{Laplace{scale + 0.1}, steps}}).epsilon(1e-4).epsilon, 1.0);
    EXPECT_GT(accountant_of({{Laplace{scale - 0.1}, steps}}).epsilon(1e-4).epsilon, 1.0);
  }
  EXPECT_NEAR(calibrate_sigma({}, {PoissonGaussian{0.01, 1.0}, 1}, 1.0, 1e-5, by_pld),
              0.67379294682, 1e-4);
  EXPECT_NEAR(calibrate_sigma({}, {PoissonGaussian{0.001, 1.0}, 25}, 1.0, 1e-5, by_pld),
              3.20956502598 / 6.0, 1e-4);
}

}  // namespace
}  // namespace cudp::privacy

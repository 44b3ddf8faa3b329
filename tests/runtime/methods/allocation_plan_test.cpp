// Plans and refusals of random allocation (--sampling allocation).
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/settings/parse_settings.hpp"
#include "runtime/settings/settings.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"

namespace cudp {
namespace {

Network logistic_of_five() {
  return build_network(parse_model(builtin_model("logistic"), "logistic", 2), {5, 1, 1}, 2);
}

TrainConfig allocation_config() {
  TrainConfig c;
  c.sampling = Sampling::allocation;
  c.sigma = 2.0;
  c.delta = 1e-5;
  c.batch = 30;
  c.epochs = 3;
  return c;
}

TEST(AllocationPlan, IsOfWholeEpochs) {
  const PrivacyPlan p =
      cases::plan_of(allocation_config(), logistic_of_five(), TrainingSize{200.0, 0.0});
  EXPECT_EQ(p.epoch_steps, 7u);
  EXPECT_EQ(p.steps, 21u);
  EXPECT_EQ(p.expected_batch, 200.0 / 7.0);
  EXPECT_EQ(p.draw(), Draw(Allocation{7}));
  const privacy::Mechanism epoch = privacy::AllocatedGaussian{7, 2.0};
  const auto epochs = [&](std::uint64_t first, std::uint64_t last) {
    const std::vector<privacy::Release> all = step_releases(p, first, last);
    for (const privacy::Release& r : all) EXPECT_EQ(r.mechanism, epoch);
    return all.empty() ? 0 : all.at(0).count;
  };
  EXPECT_EQ(epochs(0, 21), 3u);
  EXPECT_EQ(epochs(0, 0), 0u);
  EXPECT_EQ(epochs(0, 1), 1u);
  EXPECT_EQ(epochs(0, 7), 1u);
  EXPECT_EQ(epochs(0, 8), 2u);
  EXPECT_EQ(epochs(6, 8), 2u);
  EXPECT_EQ(epochs(7, 14), 1u);
  EXPECT_EQ(decode_plan(encode_plan(p)), p);
  // Fewer than one and a half batches: one step, which every example is in.
  const PrivacyPlan one =
      cases::plan_of(allocation_config(), logistic_of_five(), TrainingSize{40.0, 0.0});
  EXPECT_EQ(one.epoch_steps, 1u);
  EXPECT_EQ(one.sampling_threshold, std::uint64_t{1} << 32);
}

/// A noisy number of examples decides about steps and divisor as a public one does.
TEST(AllocationPlan, FollowsANoisyNumberOfExamples) {
  TrainConfig c = allocation_config();
  c.sigma.reset();
  c.epsilon = 3.0;
  const PrivacyPlan p = cases::plan_of(c, logistic_of_five(), TrainingSize{214.0, 9.0});
  EXPECT_EQ(p.epoch_steps, 7u);
  EXPECT_EQ(p.expected_batch, 214.0 / 7.0);
  EXPECT_LE(guarantee(p, releases(p, p.steps)).epsilon, 3.0);
}

TEST(AllocationPlan, UnitsOfSeveralRowsAreRefused) {
  EXPECT_THROW(cases::plan_of(allocation_config(), logistic_of_five(), TrainingSize{200.0, 0.0, 3}),
               InputError);
}

std::string refusal(const std::string& more) {
  std::vector<std::string> notes;
  try {
    resolve_config(parse_settings("dataset = \"glyphs\"\nsampling = \"allocation\"\nepsilon = 2.0\n"
                                  "delta = 1e-5\n" +
                                      more,
                                  "the test"),
                   notes);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(AllocationPlan, WhatHasNoBoundIsRefusedInOneLine) {
  EXPECT_EQ(refusal("epochs = 2\n"), "");
  EXPECT_TRUE(refusal("steps = 20\n").starts_with("--steps: expected none"))
      << refusal("steps = 20\n");
  for (const char* const more :
       {"accountant = \"rdp\"\n", "method = \"sgd-ma\"\n", "method = \"sgd-adv\"\n"})
    EXPECT_TRUE(refusal(more).starts_with("--sampling: expected poisson")) << refusal(more);
  for (const char* const more :
       {"method = \"dpis\"\n", "method = \"dp-agd\"\nmodel = \"logistic\"\n"})
    EXPECT_NE(refusal(more).find("with it, found"), std::string::npos) << refusal(more);
}

/// Noise that differs from step to step has no bound; the same of all steps has.
TEST(AllocationPlan, NoiseIsThatOfAllSteps) {
  TrainConfig c = allocation_config();
  c.method = "dpsgd-decay";
  EXPECT_THROW(cases::plan_of(c, logistic_of_five(), TrainingSize{200.0, 0.0}), InputError);
  c.method = "adp-sgd";
  c.schedule = ScheduleKind::polynomial;
  EXPECT_THROW(cases::plan_of(c, logistic_of_five(), TrainingSize{200.0, 0.0}), InputError);
  c.of<AdpSgdOptions>().constant_noise = true;
  EXPECT_EQ(cases::plan_of(c, logistic_of_five(), TrainingSize{200.0, 0.0}).epoch_steps, 7u);
}

}  // namespace
}  // namespace cudp

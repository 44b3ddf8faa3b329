#include "runtime/training/certify.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"

namespace cudp {
namespace {

/// DP-SGD of 100 steps with q = 2^-7 and sigma 1.5, all of them charged.
struct Trained {
  explicit Trained(const TrainConfig& config = config_of(),
                   const TrainingSize& training_size = {8192.0, 0.0})
      : size(training_size) {
    experiment.config = config;
    experiment.data.name = "mnist";
    experiment.network = cases::network_of({"logistic", "logistic", {13, 1, 1}, 2});
    experiment.backend.name = "cpu";
    const MethodContext context = cases::context_of(config, experiment.network, size);
    method = method_entry(config.method).make(context);
    if (context.split) ledger.count_first(*context.split);
    for (const privacy::Release& release : context.before) ledger.charge(release);
    ledger.authorise(0, plan().steps, step());
  }

  static TrainConfig config_of() {
    TrainConfig c;
    c.dataset = "mnist";
    c.precision = Precision::fp32;
    c.batch = 64;
    c.epochs.reset();
    c.steps = 100;
    c.clip_norm = 0.5;
    c.sigma = 1.5;
    c.delta = 1e-5;
    return c;
  }

  const PrivacyPlan& plan() const { return dynamic_cast<const EngineMethod&>(*method).plan(); }
  privacy::Mechanism step() const {
    return privacy::PoissonGaussian{plan().sampling_rate(), plan().noise_multiplier};
  }
  nlohmann::ordered_json certificate() const {
    return to_json(make_certificate(experiment, size, *method, ledger, {}, plan().steps));
  }

  Experiment experiment;
  TrainingSize size;
  std::unique_ptr<Method> method;
  privacy::Ledger ledger;
};

TEST(Certificate, StatesTheMechanismAndThePromise) {
  const Trained run;
  const auto j = run.certificate();
  EXPECT_EQ(j["for_release"], true);
  EXPECT_EQ(j["sampling"], "poisson");
  EXPECT_EQ(j["q"], 0x1p-7);
  EXPECT_EQ(j["sigma"], 1.5);
  EXPECT_EQ(j["C"], 0.5);
  EXPECT_EQ(j["sensitivity"], run.plan().sensitivity);
  EXPECT_GT(j["sensitivity"], 0.5);
  EXPECT_EQ(j["steps"], 100);
  EXPECT_EQ(j["delta"], 1e-5);
  EXPECT_EQ(j["accountant"], "pld");
  EXPECT_EQ(j["rng"], "chacha20");
  EXPECT_EQ(j["precision"], "fp32");
  EXPECT_EQ(j["seeded"], false);
  EXPECT_EQ(j["training_examples"], 8192);
  EXPECT_TRUE(j["unsafe_flags"].empty());
  for (const char* key :
       {"mechanism", "neighbouring_relation", "accountant_version", "epsilon_lower",
        "loss_interval", "expected_batch", "hyperparameter_tuning"})
    EXPECT_TRUE(j.contains(key)) << key;
  for (const char* key : {"version", "commit", "compiler", "backend"})
    EXPECT_FALSE(j["build"][key].get<std::string>().empty()) << key;
  privacy::Accountant accountant({.releases = {{privacy::PoissonGaussian{0x1p-7, 1.5}, 100}}});
  EXPECT_EQ(j["epsilon"], accountant.epsilon(1e-5 - 1e-14).epsilon);
  EXPECT_LT(j["epsilon_lower"], j["epsilon"]);
  EXPECT_GT(j["epsilon_lower"], 0.99 * j["epsilon"].get<double>());
}

TEST(Certificate, RenyiOnRequest) {
  TrainConfig config = Trained::config_of();
  config.accountant = privacy::AccountantKind::rdp;
  const auto j = Trained(config).certificate();
  EXPECT_EQ(j["accountant"], "rdp");
  EXPECT_GT(j["order"], 1.0);
  EXPECT_EQ(j["order_fixed_before"], false);
  EXPECT_GT(j["epsilon"], Trained().certificate()["epsilon"]);
}

TEST(Certificate, GroupsOfAUsersExamples) {
  const Trained run;
  const auto groups = run.certificate()["groups"];
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0]["epsilon"], run.certificate()["epsilon"]);
  std::uint64_t size = 1;
  for (const auto& row : groups) {
    EXPECT_EQ(row["examples"], size);
    const privacy::PrivacyBound exact =
        privacy::Accountant({.releases = run.ledger.releases(), .group = size})
            .epsilon(1e-5 - 1e-14);
    EXPECT_GE(row["epsilon"], exact.epsilon_lower);
    EXPECT_LE(row["epsilon"], 1.01 * exact.epsilon);
    size *= 2;
  }
}

TEST(Certificate, ChargesWhatTheLedgerKnowsNotWhatWasPlanned) {
  Trained run;
  const double planned = run.certificate()["epsilon"];
  run.ledger.fresh_key(60);
  run.ledger.authorise(60, 100, run.step());
  const auto j = run.certificate();
  EXPECT_EQ(j["steps"], 140);
  EXPECT_EQ(j["steps_planned"], 100);
  EXPECT_GT(j["epsilon"], planned);
}

TEST(Certificate, SeedsAndUnsafeFlagsAreNotForRelease) {
  Trained run;
  run.experiment.config.seed = 1;
  EXPECT_EQ(run.certificate()["for_release"], false);
  EXPECT_EQ(run.certificate()["seeded"], true);
  run.experiment.config.seed.reset();
  EXPECT_EQ(run.certificate()["for_release"], true);
  run.experiment.config.unsafe_diagnostics = true;
  EXPECT_EQ(run.certificate()["for_release"], false);
  EXPECT_EQ(run.certificate()["unsafe_flags"][0], "unsafe-diagnostics");
  run.experiment.config.unsafe_diagnostics = false;
  run.experiment.data.unsafe = {"accept-private-bounds"};
  EXPECT_EQ(run.certificate()["for_release"], false);
}

TEST(Certificate, APrivateSizeIsOnlyThereWithItsNoise) {
  TrainConfig config = Trained::config_of();
  config.epsilon = 3.0;
  const auto j = Trained(config, {8150.0, 33.0}).certificate();
  EXPECT_FALSE(j.contains("training_examples"));
  EXPECT_EQ(j["size_release"]["noisy_size"].dump(), "8150");
  EXPECT_EQ(j["size_release"]["noise_std"], 33.0);
  EXPECT_EQ(j["steps"], 100);
  EXPECT_EQ(j["releases"].size(), 2u);
  // The plan follows from the noisy size: what is promised was fixed before that was drawn.
  EXPECT_EQ(j["epsilon"], 3.0);
  const privacy::CountSplit split = privacy::split_for_count(3.0, 1e-5, 1);
  EXPECT_EQ(j["size_release"]["epsilon"], split.count_epsilon);
  EXPECT_EQ(j["size_release"]["delta"], split.count_delta);
  EXPECT_EQ(j["after_size_release"]["epsilon"], split.training_epsilon);
  EXPECT_EQ(j["after_size_release"]["delta"], split.training_delta);
  // What follows from it is adaptive: nothing is claimed for groups.
  EXPECT_TRUE(j["groups"].is_string());
}

}  // namespace
}  // namespace cudp

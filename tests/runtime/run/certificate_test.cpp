#include "runtime/run/certificate.hpp"

#include <gtest/gtest.h>

#include "runtime/run/metrics.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

CertificateFacts facts() {
  CertificateFacts f;
  f.config.dataset = "mnist";
  f.config.precision = Precision::fp32;
  f.plan.sampling_threshold = std::uint64_t{1} << 25;
  f.plan.expected_batch = 64.0;
  f.plan.steps = 100;
  f.plan.clip_norm = 0.5;
  f.plan.sensitivity = 0.51;
  f.plan.noise_multiplier = 1.5;
  f.plan.delta = 1e-5;
  f.plan.failure = 1e-14;
  f.ledger.authorise(0, 100, f.plan.sampling_rate(), 1.5);
  f.dataset = "mnist";
  f.backend = "cpu";
  f.training_size = 8192.0;
  return f;
}

TEST(Certificate, StatesTheMechanismAndThePromise) {
  const auto j = make_certificate(facts());
  EXPECT_EQ(j["for_release"], true);
  EXPECT_EQ(j["sampling"], "poisson");
  EXPECT_EQ(j["q"], 0x1p-7);
  EXPECT_EQ(j["sigma"], 1.5);
  EXPECT_EQ(j["C"], 0.5);
  EXPECT_EQ(j["sensitivity"], 0.51);
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
  privacy::Question question;
  question.steps = privacy::steps_of(std::vector<privacy::Phase>{{0x1p-7, 1.5, 100}});
  EXPECT_EQ(j["epsilon"], privacy::Account(question).epsilon(1e-5 - 1e-14).epsilon);
  EXPECT_LT(j["epsilon_lower"], j["epsilon"]);
  EXPECT_GT(j["epsilon_lower"], 0.99 * j["epsilon"].get<double>());
}

TEST(Certificate, RenyiOnRequest) {
  CertificateFacts f = facts();
  const double tight = make_certificate(f)["epsilon"];
  f.plan.accountant = privacy::Accountant::rdp;
  const auto j = make_certificate(f);
  EXPECT_EQ(j["accountant"], "rdp");
  EXPECT_GT(j["order"], 1.0);
  EXPECT_EQ(j["order_fixed_before"], false);
  EXPECT_GT(j["epsilon"], tight);
}

TEST(Certificate, GroupsOfAUsersExamples) {
  CertificateFacts f = facts();
  const auto groups = make_certificate(f)["groups"];
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0]["epsilon"], make_certificate(f)["epsilon"]);
  privacy::Question question;
  question.steps = privacy::steps_of(f.ledger.phases());
  std::uint64_t size = 1;
  for (const auto& row : groups) {
    EXPECT_EQ(row["examples"], size);
    question.group = size;
    const privacy::Answer exact = privacy::Account(question).epsilon(1e-5 - 1e-14);
    EXPECT_GE(row["epsilon"], exact.epsilon_lower);
    EXPECT_LE(row["epsilon"], 1.01 * exact.epsilon);
    size *= 2;
  }
  // What follows from a noisy size is adaptive: no such number is claimed.
  f.plan.size_noise = 33.0;
  f.plan.order = 8.0;
  f.ledger.charge(privacy::Phase{1.0, 33.0, 1});
  EXPECT_TRUE(make_certificate(f)["groups"].is_string());
}

TEST(Certificate, ChargesWhatTheLedgerKnowsNotWhatWasPlanned) {
  CertificateFacts f = facts();
  const double planned = make_certificate(f)["epsilon"];
  f.ledger.fresh_key(60);
  f.ledger.authorise(60, 100, f.plan.sampling_rate(), 1.5);
  const auto j = make_certificate(f);
  EXPECT_EQ(j["steps"], 140);
  EXPECT_EQ(j["steps_planned"], 100);
  EXPECT_GT(j["epsilon"], planned);
}

TEST(Certificate, SeedsAndUnsafeFlagsAreNotForRelease) {
  CertificateFacts f = facts();
  f.config.seed = 1;
  EXPECT_EQ(make_certificate(f)["for_release"], false);
  EXPECT_EQ(make_certificate(f)["seeded"], true);
  f = facts();
  f.unsafe = {"unsafe-diagnostics"};
  EXPECT_EQ(make_certificate(f)["for_release"], false);
  EXPECT_EQ(make_certificate(f)["unsafe_flags"][0], "unsafe-diagnostics");
}

TEST(Certificate, APrivateSizeIsOnlyThereWithItsNoise) {
  CertificateFacts f = facts();
  f.plan.size_noise = 33.0;
  f.training_size = 8150.0;
  f.config.epsilon = 3.0;
  f.ledger = {};
  f.ledger.charge(privacy::Phase{1.0, 33.0, 1});
  f.ledger.authorise(0, 100, f.plan.sampling_rate(), 1.5);
  const auto j = make_certificate(f);
  EXPECT_FALSE(j.contains("training_examples"));
  EXPECT_EQ(j["size_release"]["noisy_size"].dump(), "8150");
  EXPECT_EQ(j["size_release"]["noise_std"], 33.0);
  EXPECT_EQ(j["steps"], 100);
  EXPECT_EQ(j["releases"].size(), 2u);
  // The plan follows from the noisy size: what is promised was fixed before that was drawn.
  EXPECT_EQ(j["epsilon"], 3.0);
}

TEST(Metrics, AreOneLineEachAndNeverTheClock) {
  const std::vector<MetricsRow> rows = {{1.0, 10, 0.5, 0.1, 0.9, 0.3}, {2.0, 20, 0.6, 0.1, 1, 0.2}};
  const std::string text = encode_metrics(rows);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find("seconds"), std::string::npos);
  EXPECT_EQ(encode_metrics(decode_metrics(text)), text);
  EXPECT_TRUE(decode_metrics("").empty());
}

TEST(Curves, AreAPictureOrNothing) {
  const TemporaryFolder folder;
  const std::string picture = folder / "it's a picture.png";
  if (!draw_curves({{1.0, 10, 0.5, 0.1, 0.9, 0.3}, {2.0, 20, 0.6, 0.1, 0.95, 0.2}}, "it's a test",
                   picture))
    GTEST_SKIP() << "gnuplot is missing";
  EXPECT_EQ(content_of(picture).substr(0, 4), "\x89PNG");
  EXPECT_FALSE(draw_curves({}, "nothing", folder / "none.png"));
}

}  // namespace
}  // namespace cudp

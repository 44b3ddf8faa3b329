// --class-weights from the command line to the certificate, what is refused, and what they are for:
// on the story's table, where 3 % die, deaths are found.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"
#include "tests/support/patients.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ClassWeightsCli : public testing::Test {
 protected:
  Finished train(const Arguments& more) const {
    return run_cudp(
        folder_, with({"train", "--dataset", small_.table, "--schema", small_.schema, "--out",
                       folder_ / "run", "--batch", "64", "--steps", "4", "--seed", "1", "--quiet"},
                      more));
  }
  Finished with_budget(const Arguments& more) const {
    return train(with({"--epsilon", "2", "--delta", "1e-5"}, more));
  }

  TemporaryFolder folder_;
  SmallTable small_ = write_small_table(folder_);
};

TEST_F(ClassWeightsCli, StandInCertificateAndConfig) {
  const Finished f = with_budget({"--class-weights", "1,20"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json certificate = Json::parse(content_of(folder_ / "run/release/privacy.json"));
  EXPECT_EQ(certificate["class_weights"], Json::parse("[1.0, 20.0]"));
  EXPECT_NE(content_of(folder_ / "run/release/config.toml").find("class-weights = \"1,20\"\n"),
            std::string::npos);
}

TEST_F(ClassWeightsCli, WhatHasNoWeightsSaysNothingOfThem) {
  ASSERT_EQ(with_budget({}).exit, 0);
  EXPECT_FALSE(
      Json::parse(content_of(folder_ / "run/release/privacy.json")).contains("class_weights"));
  EXPECT_EQ(content_of(folder_ / "run/release/config.toml").find("class-weights"),
            std::string::npos);
}

/// Only what each weight is of the largest counts.
TEST_F(ClassWeightsCli, TheirUnitIsFree) {
  const auto model = [&](const char* weights) {
    const Finished f = with_budget({"--class-weights", weights});
    EXPECT_EQ(f.exit, 0) << f.err;
    std::string bytes = content_of(folder_ / "run/release/model.safetensors");
    fs::remove_all(folder_ / "run");
    return bytes;
  };
  const std::string first = model("1,4");
  EXPECT_EQ(first, model("0.25,1"));
  EXPECT_NE(first, model("4,1"));
  EXPECT_NE(first, model("1,1"));
}

TEST_F(ClassWeightsCli, RefusesWhatIsWrongInOneLine) {
  const auto expect = [&](const Arguments& more, const std::string& sentence) {
    const Finished f = with_budget(more);
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(f.err, "cudp: " + sentence + "\n");
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  expect({"--class-weights", "1,2,3"},
         "--class-weights: expected 2 weights, one for each class of the data, found 3");
  expect({"--class-weights", "1"},
         "--class-weights: expected 2 weights, one for each class of the data, found 1");
  const std::string numbers =
      "--class-weights: expected weights >= 0 (up to 1e30), one above 0, separated by commas, "
      "found ";
  for (const char* wrong : {"0,0", "1,-1", "1,nan", "1,inf", "1,x", "1,1e31"})
    expect({"--class-weights", wrong}, numbers + "\"" + wrong + "\"");
  const Finished privgene =
      run_cudp(folder_, {"train", "--dataset", small_.table, "--schema", small_.schema, "--epsilon",
                         "2", "--delta", "1e-5", "--class-weights", "1,2", "--method", "privgene"});
  EXPECT_EQ(privgene.exit, 2);
  EXPECT_EQ(
      privgene.err,
      "cudp: --class-weights: expected --method dpsgd, dpsgd-ts, dpsgd-decay, dpsgd-quantile, "
      "adp-sgd, adaclip, dpis, sgd-ma, sgd-adv, norm-bound, dp-agd, outpert, objpert, sgd with "
      "it, found \"1,2\" with --method privgene\n");
}

/// With weights the model of the story finds deaths as well as the same model without privacy does.
TEST_F(ClassWeightsCli, OnTheStorysTablePrivacyCostsLittleBalancedAccuracy) {
  write_text(folder_ / "patients.csv", patients(20'000, 1));
  write_text(folder_ / "held_out.csv", patients(20'000, 2));
  write_text(folder_ / "patients.csv.schema.toml", kPatientsSchema);
  const auto mean = [&](const Arguments& more) {
    double sum = 0.0;
    for (int seed = 1; seed <= 3; ++seed) {
      fs::remove_all(folder_ / "run");
      const Finished f = run_cudp(
          folder_, with({"train", "--dataset", folder_ / "patients.csv", "--model", "logistic",
                         "--quiet", "--seed", std::to_string(seed), "--out", folder_ / "run"},
                        more));
      EXPECT_EQ(f.exit, 0) << f.err;
      const Finished e = run_cudp(
          folder_, {"eval", folder_ / "run", "--dataset", folder_ / "held_out.csv", "--json"});
      EXPECT_EQ(e.exit, 0) << e.err;
      sum += Json::parse(e.out)["balanced_accuracy"].get<double>();
    }
    return sum / 3.0;
  };
  const Arguments weights = {"--class-weights", "1,33"};
  const Arguments budget = {"--epsilon", "1", "--delta", "1e-6"};
  const double with_privacy = mean(with(budget, weights));
  const double without = mean(with({"--method", "sgd"}, weights));
  const double unweighted = mean(budget);
  std::printf("balanced accuracy %.4f with privacy, %.4f without; %.4f without weights\n",
              with_privacy, without, unweighted);
  EXPECT_GE(with_privacy, without - 0.05);
  EXPECT_GT(with_privacy, unweighted + 0.05);
}

}  // namespace
}  // namespace cudp

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

// What a run that was killed leaves in release/ has the certificate of its plan, which says so.

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

struct Case {
  const char* name;
  std::vector<std::string> flags;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PlanCertificate : public testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> training(const std::string& out) const {
    return with({"train",     "--dataset",   table_.table,
                 "--schema",  table_.schema, "--test-data",
                 table_.test, "--model",     "logistic",
                 "--delta",   "1e-5",        "--seed",
                 "3",         "--threads",   "1",
                 "--device",  "cpu",         "--quiet",
                 "--out",     folder_ / out, "--test-data-is-public"},
                GetParam().flags);
  }
  /// Starts a process and kills it when `reached` is true; again where it was over before that.
  template <class Reached>
  void kill(const std::vector<std::string>& arguments, const Reached& reached) const {
    for (int attempt = 0; attempt < 10; ++attempt) {
      CudpProcess process(folder_, arguments);
      wait_until(reached);
      process.signal(SIGKILL);
      process.wait();
      if (!fs::exists(folder_ / "run/private/result.json")) return;
      fs::remove_all(folder_ / "run");
    }
    FAIL() << "it was always over before it could be killed";
  }
  Json certificate(const std::string& out) const {
    return Json::parse(content_of(folder_ / (out + "/release/privacy.json")), nullptr, false);
  }
  static void expect_unfinished(const Json& c) {
    ASSERT_TRUE(c.is_object()) << "none";
    EXPECT_EQ(c["status"], "not finished");
    EXPECT_EQ(c["for_release"], false);
    EXPECT_TRUE(c["not_for_release"][0].get<std::string>().starts_with("not finished: "));
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_, 2000);
};

class PlanCertificateOfANewKey : public PlanCertificate {};

TEST_P(PlanCertificate, IsThereWhenARunIsKilled) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  const Json whole = certificate("whole");
  EXPECT_EQ(whole["status"], "finished");
  // When it has released something beside its settings, or, where that is at its end, exists.
  const bool in_one_go = std::string(GetParam().name) == "outpert";
  const fs::path first =
      folder_ / (in_one_go ? "run/private/checkpoint-0" : "run/release/metrics.jsonl");
  kill(training("run"), [&] { return fs::exists(first); });
  const Json plan = certificate("run");
  expect_unfinished(plan);
  // The planned epsilon and no other; a plan that is known ahead is stated as it will be certified.
  EXPECT_EQ(plan["epsilon"], whole["epsilon"]);
  EXPECT_EQ(plan["delta"], whole["delta"]);
  EXPECT_EQ(plan["mechanism"], whole["mechanism"]);
  EXPECT_EQ(plan.value("sigma", Json()), whole.value("sigma", Json()));
  if (std::string(GetParam().name).starts_with("dpsgd")) {
    EXPECT_EQ(plan["releases"], whole["releases"]);
    EXPECT_EQ(plan["steps"], whole["steps"]);
  }

  // It is no run to compare with.
  const Finished compared =
      run_cudp(folder_, {"train", "--method", "sgd", "--dataset", table_.table, "--schema",
                         table_.schema, "--model", "logistic", "--steps", "5", "--out",
                         folder_ / "sgd", "--compare-with", folder_ / "run"});
  EXPECT_EQ(compared.exit, 2);
  EXPECT_NE(compared.err.find(" not finished "), std::string::npos) << compared.err;

  ASSERT_EQ(run_cudp(folder_, {"train", "--resume", folder_ / "run", "--quiet"}).exit, 0);
  EXPECT_EQ(certificate("run"), whole);
}

/// A new key spends more than was planned: the certificate says so before it does.
TEST_P(PlanCertificateOfANewKey, StatesTheWholeBudget) {
  kill(training("run"), [&] { return fs::exists(folder_ / "run/private/checkpoint-32"); });
  const Json planned = certificate("run");
  expect_unfinished(planned);
  EXPECT_LT(planned["epsilon"], 3.0);
  fs::remove(folder_ / "run/private/key");
  const std::string before = content_of(folder_ / "run/release/privacy.json");
  kill({"train", "--resume", folder_ / "run", "--quiet"},
       [&] { return content_of(folder_ / "run/release/privacy.json") != before; });
  const Json renewed = certificate("run");
  expect_unfinished(renewed);
  EXPECT_EQ(renewed["epsilon"], 3.0);
}

INSTANTIATE_TEST_SUITE_P(Methods, PlanCertificateOfANewKey,
                         testing::Values(Case{
                             "dpsgd",
                             {"--epsilon", "3", "--size-is-public", "--batch", "64", "--steps",
                              "3000", "--checkpoint-every", "32"}}));

INSTANTIATE_TEST_SUITE_P(
    Methods, PlanCertificate,
    testing::Values(
        Case{"dpsgd", {"--epsilon", "3", "--size-is-public", "--batch", "64", "--steps", "3000"}},
        Case{"dpsgd_sigma",
             {"--sigma", "4", "--size-is-public", "--batch", "64", "--steps", "3000"}},
        Case{"private_size", {"--epsilon", "3", "--batch", "64", "--steps", "3000"}},
        Case{"dpis",
             {"--method", "dpis", "--epsilon", "3", "--size-is-public", "--batch", "64", "--steps",
              "1000"}},
        Case{"dp_agd",
             {"--method", "dp-agd", "--epsilon", "3", "--size-is-public", "--splits", "500"}},
        Case{"outpert", {"--method", "outpert", "--epsilon", "3", "--size-is-public"}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cudp

// Every method from the command line to its certificate, and through a crash.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/table_training.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

struct MethodRun {
  const char* name;
  std::vector<std::string> flags;
};
void PrintTo(const MethodRun& m, std::ostream* os) { *os << m.name; }

class CliMethods : public testing::TestWithParam<MethodRun> {
 protected:
  std::vector<std::string> training(const std::string& out) const {
    return with(with(train_on(table_, folder_ / out),
                     args("--model logistic --size-is-public --epsilon 3 --batch 64 --steps 60 "
                          "--checkpoint-every 5 --device cpu")),
                GetParam().flags);
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  /// By the quicker accountant, where the method has a choice: a crash changes no epsilon.
  std::vector<std::string> training_that_crashes(const std::string& out) const {
    const std::string name = GetParam().name;
    if (name == "sgd_ma" || name == "sgd_adv") return training(out);
    return with(training(out), {"--accountant", "rdp"});
  }
  /// Starts a training and kills it after its tenth step, unless it has ended by then.
  void interrupt(const std::string& out) const {
    CudpProcess process(folder_, training_that_crashes(out));
    const auto begun = [&] {
      if (fs::exists(folder_ / (out + "/private/result.json"))) return true;
      const std::string name = newest_checkpoint_file(folder_ / out).filename().string();
      return !name.empty() && std::stoi(name.substr(11)) >= 10;
    };
    wait_until(begun);
    process.signal(SIGKILL);
    process.wait();
  }
  /// warning: what resuming says on its way.
  void expect_ends_as_whole(const std::string& out, const std::string& warning = "") const {
    const Finished resumed =
        run_cudp(folder_, {"train", "--resume", folder_ / out, "--quiet", "--json"});
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    EXPECT_NE(resumed.err.find(warning), std::string::npos) << resumed.err;
    for (const char* name : {"model.safetensors", "privacy.json", "metrics.jsonl", "config.toml"})
      EXPECT_EQ(file(out + "/release/" + name), file(std::string("whole/release/") + name))
          << out << ": " << name;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_P(CliMethods, LearnsWithinItsBudget) {
  const Finished f = run_cudp(folder_, training("run"));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json result = Json::parse(f.out);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_GT(result["test_accuracy"], 0.7);
  EXPECT_LE(certificate["epsilon"], 3.0);
  EXPECT_GT(certificate["epsilon"], 2.99);
  EXPECT_EQ(certificate["steps"], result["steps"]);
  std::uint64_t released = 0;
  for (const Json& r : certificate["releases"]) {
    released += r["steps"].get<std::uint64_t>();
    EXPECT_GT(r["sigma"], 0.0);
  }
  EXPECT_GE(released, result["steps"]);
}

TEST_P(CliMethods, EndsTheSameAfterACrash) {
  ASSERT_EQ(run_cudp(folder_, training_that_crashes("whole")).exit, 0);
  interrupt("broken");
  expect_ends_as_whole("broken");
  // The newest checkpoint did not reach the disk: the one before it has all there is to know.
  interrupt("damaged");
  if (fs::exists(folder_ / "damaged/private/result.json")) GTEST_SKIP() << "it ended too soon";
  const fs::path newest = newest_checkpoint_file(folder_ / "damaged");
  ASSERT_FALSE(newest.empty());
  damage(newest);
  expect_ends_as_whole("damaged", newest.filename().string() + ": damaged");
}

const MethodRun kRuns[] = {
    {"dpsgd_decay", {"--method", "dpsgd-decay", "--noise-decay", "0.3"}},
    {"dpsgd_ts", {"--method", "dpsgd-ts", "--model", "mlp", "--optimizer", "adam", "--lr", "0.01"}},
    {"adp_polynomial", {"--method", "adp-sgd", "--schedule", "polynomial", "--lr", "2"}},
    {"adp_square_root", {"--method", "adp-sgd", "--schedule", "square-root"}},
    {"adp_adaptive",
     {"--method", "adp-sgd", "--schedule", "adaptive", "--adp-noise-growth", "0.5", "--lr", "2"}},
    {"sgd_ma", {"--method", "sgd-ma"}},
    {"sgd_adv", {"--method", "sgd-adv", "--lr", "0.1"}},
    {"norm_bound", {"--method", "norm-bound"}},
    {"dpis", {"--method", "dpis", "--lr", "0.3"}},
    {"dpis_adaptive", {"--method", "dpis", "--dpis-adaptive-clip", "--lr", "0.3"}},
    {"dpsgd_pca", {"--features", "pca", "--feature-dimensions", "3"}},
    {"dpis_pca",
     {"--method", "dpis", "--features", "pca", "--feature-dimensions", "3", "--lr", "0.3", "--ema",
      "0", "--clip", "1"}},
    {"adaclip",
     {"--method", "adaclip", "--lr", "0.5", "--adaclip-least", "1e-3", "--adaclip-most", "1"}},
};
INSTANTIATE_TEST_SUITE_P(All, CliMethods, testing::ValuesIn(kRuns),
                         [](const auto& i) { return i.param.name; });

class CliMethodFlags : public testing::Test {
 protected:
  std::string refusal(const std::vector<std::string>& flags) const {
    const Finished f = run_cudp(
        folder_,
        with({"train", "--dataset", "glyphs", "--delta", "1e-5", "--epsilon", "1"}, flags));
    EXPECT_EQ(f.exit, 2) << f.err;
    return f.err;
  }
  TemporaryFolder folder_;
};

TEST_F(CliMethodFlags, ThatDoNotFitAreRefused) {
  EXPECT_NE(refusal({"--schedule", "adaptive"}).find("adp-sgd"), std::string::npos);
  EXPECT_NE(refusal({"--calibration", "theorem41"}).find("adp-sgd"), std::string::npos);
  EXPECT_NE(refusal({"--method", "dpsgd-ts", "--activation", "relu"}).find("tempered-sigmoid"),
            std::string::npos);
  EXPECT_NE(refusal({"--method", "sgd-ma", "--accountant", "pld"}).find("expected rdp"),
            std::string::npos);
  EXPECT_NE(refusal({"--method", "sgd-adv", "--accountant", "rdp"}).find("expected advanced"),
            std::string::npos);
  EXPECT_NE(
      refusal({"--method", "norm-bound", "--clip", "28"}).find("--clip: expected --method dpsgd"),
      std::string::npos);
  EXPECT_NE(refusal({"--method", "norm-bound", "--model", "cnn"}).find("expected logistic"),
            std::string::npos);
  // Where float32 has too few bits for the bound.
  EXPECT_NE(refusal({"--clip", "1e-16"}).find("--clip: expected at least"), std::string::npos);
  EXPECT_NE(refusal({"--method", "dpis", "--clip", "1e-12"}).find("expected at least 9.31e-10"),
            std::string::npos);
  EXPECT_NE(refusal({"--method", "adaclip", "--model", "mlp", "--adaclip-most", "1e20"})
                .find("--adaclip-most: expected at most 3.21e+19 for 795010 parameters"),
            std::string::npos);
  EXPECT_NE(refusal({"--method", "dpsgdd"}).find("one of dpsgd"), std::string::npos);
}

}  // namespace
}  // namespace cudp

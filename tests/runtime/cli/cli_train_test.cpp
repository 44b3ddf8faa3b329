#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

/// Runs of the program on a small table.
class CliTrain : public testing::Test {
 protected:
  /// Arguments of a short training, and more of them.
  std::vector<std::string> training(const std::string& out,
                                    const std::vector<std::string>& more = {}) const {
    return with({"train",       "--dataset",   table_.table, "--schema",
                 table_.schema, "--test-data", table_.test,  "--test-data-is-public",
                 "--model",     "logistic",    "--delta",    "1e-5",
                 "--batch",     "64",          "--steps",    "60",
                 "--threads",   "1",           "--device",   "cpu",
                 "--out",       folder_ / out},
                more);
  }
  Finished cudp(const std::vector<std::string>& arguments) const {
    return run_cudp(folder_, arguments);
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(CliTrain, EndsWithTheResultAsJson) {
  const Finished f = cudp(training("run", {"--epsilon", "3", "--size-is-public", "--json"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json j = Json::parse(f.out);
  EXPECT_GT(j["test_accuracy"], 0.7);
  EXPECT_LE(j["test_accuracy"], 1.0);
  EXPECT_LE(j["epsilon"], 3.0);
  EXPECT_GT(j["epsilon"], 2.99);
  EXPECT_EQ(j["delta"], 1e-5);
  EXPECT_GT(j["sigma"], 0.3);
  EXPECT_EQ(j["steps"], 60);
  EXPECT_GT(j["seconds"], 0.0);
  EXPECT_GT(j["examples_per_second"], 0.0);
  EXPECT_EQ(j["run_dir"], folder_ / "run");

  // eval sees the same model, from the release folder alone.
  const std::vector<std::string> eval = {
      "eval",     folder_ / "run/release", "--dataset", table_.test,
      "--schema", table_.schema,           "--json"};
  const Finished e = cudp(eval);
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(Json::parse(e.out)["test_accuracy"], j["test_accuracy"]);

  // Refused: the folder holds a run now.
  const Finished again = cudp(training("run", {"--epsilon", "3"}));
  EXPECT_EQ(again.exit, 2);
  EXPECT_NE(again.err.find("found a finished run"), std::string::npos) << again.err;
  // Complete: a resume has nothing to do and says the same.
  const Finished resumed = cudp({"train", "--resume", folder_ / "run", "--json"});
  EXPECT_EQ(resumed.exit, 0);
  EXPECT_EQ(Json::parse(resumed.out), j);
}

TEST_F(CliTrain, LeavesARunFolderThatIsSafeToPublish) {
  ASSERT_EQ(cudp(training("run", {"--epsilon", "3", "--ema", "0.9"})).exit, 0);
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run"))
    if (entry.is_regular_file())
      names.push_back(fs::relative(entry.path(), folder_ / "run").string());
  std::erase_if(names, [](const std::string& n) { return n.ends_with(".png"); });  // by gnuplot
  std::ranges::sort(names);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "private/ledger", "private/log.txt", "private/result.json", "release/PRIVACY.txt",
                "release/README.md", "release/config.toml", "release/evaluation.json",
                "release/metrics.jsonl", "release/model.safetensors", "release/privacy.json",
                "release/report.html", "release/schema.toml"}));
  const Json evaluation = Json::parse(file("run/release/evaluation.json"));
  EXPECT_EQ(evaluation["test_examples"], 200);
  EXPECT_EQ(evaluation["test_accuracy"],
            Json::parse(file("run/private/result.json"))["test_accuracy"]);

  // The size was not declared public: neither it nor the split's sizes are anywhere.
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  // What ran, not what is asked for by default.
  EXPECT_EQ(certificate["precision"], "fp32");
  EXPECT_NE(file("run/release/config.toml").find("precision = \"fp32\""), std::string::npos);
  EXPECT_TRUE(certificate["for_release"]);
  EXPECT_FALSE(certificate.contains("training_examples"));
  EXPECT_GT(certificate["size_release"]["noise_std"], 10.0);
  const TensorFile model = decode_safetensors(file("run/release/model.safetensors"), "model");
  EXPECT_EQ(model.tensors[0].name, "linear.weight");
  const std::string log = file("run/private/log.txt");
  for (const std::string& text :
       {file("run/release/privacy.json"), log, file("run/release/config.toml"),
        file("run/release/metrics.jsonl")}) {
    EXPECT_EQ(text.find("training examples"), std::string::npos) << text;
    EXPECT_EQ(
        text.find("loss\":") == std::string::npos || text.find("test_loss") != std::string::npos,
        true);
    EXPECT_EQ(text.find(folder_.path().string()), std::string::npos) << text;
  }
  for (const char* word : {"training_loss", "clipped", "gradient_norm"}) {
    EXPECT_EQ(log.find(word), std::string::npos) << log;
    EXPECT_EQ(file("run/release/metrics.jsonl").find(word), std::string::npos);
  }
}

/// Without a test set all rows are trained on, and whoever deletes one moves no other row's part.
TEST_F(CliTrain, WithoutTestDataNothingIsMeasured) {
  const std::vector<std::string> flags = {
      "train",    "--dataset", table_.table, "--schema",        table_.schema, "--model",
      "logistic", "--delta",   "1e-5",       "--batch",         "64",          "--steps",
      "20",       "--epsilon", "3",          "--size-is-public"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return cudp(more);
  };
  const Finished f = with({"--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string last = f.out.substr(f.out.rfind('\n', f.out.size() - 2) + 1);
  EXPECT_NE(last.find("not measured"), std::string::npos) << f.out;
  EXPECT_NE(last.find("--test-data FILE"), std::string::npos) << f.out;
  for (const char* name : {"release/metrics.jsonl", "release/privacy.json", "private/log.txt"})
    EXPECT_EQ(file(std::string("run/") + name).find("accuracy"), std::string::npos) << name;
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(certificate["training_examples"], 613);
  EXPECT_EQ(certificate["test_set"], "none");
  const Finished json = with({"--out", folder_ / "json", "--json"});
  EXPECT_EQ(Json::parse(json.out)["test_set"], "none");
  EXPECT_FALSE(Json::parse(json.out).contains("test_accuracy"));
}

TEST_F(CliTrain, AccuraciesOnPrivateTestDataStayInThePrivateFolder) {
  std::vector<std::string> a = training("run", {"--epsilon", "3"});
  std::erase(a, "--test-data-is-public");
  const Finished f = cudp(a);
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string kept = file("run/private/metrics.jsonl");
  const double accuracy =
      Json::parse(kept.substr(kept.rfind('\n', kept.size() - 2) + 1))["test_accuracy"]
          .get<double>();
  EXPECT_GT(accuracy, 0.7);
  char text[16];
  std::snprintf(text, sizeof text, "%.2f %%", 100.0 * accuracy);
  for (const std::string& told : {f.out, f.err})
    EXPECT_EQ(told.find(text), std::string::npos) << told;
  for (const char* name : {"metrics.jsonl", "privacy.json", "config.toml"})
    EXPECT_EQ(file(std::string("run/release/") + name).find("accuracy\":"), std::string::npos);
  EXPECT_EQ(Json::parse(file("run/private/result.json"))["test_accuracy"], accuracy);
  const Json evaluation = Json::parse(file("run/private/evaluation.json"));
  EXPECT_EQ(evaluation["test_accuracy"], accuracy);
  EXPECT_FALSE(fs::exists(folder_ / "run/release/evaluation.json"));
  for (const char* picture : {"roc.png", "reliability.png", "confusion.png"})
    EXPECT_FALSE(fs::exists(folder_ / (std::string("run/release/") + picture))) << picture;
  EXPECT_EQ(fs::status(folder_ / "run/private/evaluation.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  std::snprintf(text, sizeof text, "%.4f", evaluation["auc"].get<double>());
  for (const std::string& told : {f.out, f.err}) {
    EXPECT_EQ(told.find(text), std::string::npos) << told;
    for (const char* word : {"PRIVATE", "AUC", "balanced", "majority", "always saying"})
      EXPECT_EQ(told.find(word), std::string::npos) << told;
  }
  EXPECT_NE(file("run/private/log.txt").find(std::string("PRIVATE AUC: ") + text),
            std::string::npos);
  const Finished again = cudp({"train", "--resume", folder_ / "run", "--json"});
  for (const char* key : {"test_accuracy", "auc", "majority_baseline", "majority_class"})
    EXPECT_FALSE(Json::parse(again.out).contains(key)) << again.out;
}

/// Whoever sits at a terminal has asked; a pipe or a log may have other readers.
TEST_F(CliTrain, AccuraciesOnPrivateTestDataAreShownOnATerminalMarked) {
  const auto run = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> a = training(out, more);
    std::erase(a, "--test-data-is-public");
    return run_on_terminal(folder_, a);
  };
  const OnTerminal t = run("run", {"--epsilon", "3"});
  ASSERT_EQ(t.exit, 0) << t.terminal;
  EXPECT_NE(t.terminal.find("PRIVATE test accuracy: "), std::string::npos) << t.terminal;
  EXPECT_NE(t.terminal.find("PRIVATE AUC: "), std::string::npos) << t.terminal;
  EXPECT_EQ(t.out.find("AUC"), std::string::npos) << t.out;
  const OnTerminal quiet = run("quiet", {"--epsilon", "3", "--quiet"});
  ASSERT_EQ(quiet.exit, 0) << quiet.terminal;
  EXPECT_EQ(quiet.terminal.find("PRIVATE"), std::string::npos) << quiet.terminal;
}

/// All test rows are of one class, and the model says the other to some.
TEST_F(CliTrain, SaysWhereTheMajorityIsNotBeaten) {
  std::string rows = "x,y,colour,class\n";
  for (int i = 0; i < 60; ++i) rows += i % 20 == 0 ? "10,10,red,yes\n" : "10,10,blue,no\n";
  write_text(table_.test, rows);
  const std::vector<std::string> a = training("run", {"--epsilon", "3"});
  const Finished f = cudp(a);
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("no better than always saying"), std::string::npos) << f.out;
}

TEST_F(CliTrain, TheSeedDecidesTheModelAndThreadsDoNot) {
  const auto model = [&](const std::string& out, std::vector<std::string> more) {
    const std::vector<std::string> common = {"--sigma", "1", "--size-is-public"};
    more.insert(more.end(), common.begin(), common.end());
    EXPECT_EQ(cudp(training(out, more)).exit, 0);
    return file(out + "/release/model.safetensors");
  };
  const std::string one = model("a", {"--seed", "7"});
  EXPECT_EQ(model("b", {"--seed", "7", "--threads", "3"}), one);
  EXPECT_EQ(model("c", {"--seed", "7", "--checkpoint-every", "7", "--micro-batch", "5"}), one);
  EXPECT_NE(model("d", {"--seed", "8"}), one);
  EXPECT_NE(model("e", {}), one);
  EXPECT_FALSE(Json::parse(file("a/release/privacy.json"))["for_release"]);
  // The released config gives the run again.
  const std::vector<std::string> replay = {
      "train",       "--config",    folder_ / "a/release/config.toml",
      "--dataset",   table_.table,  "--schema",
      table_.schema, "--test-data", table_.test,
      "--out",       folder_ / "f"};
  ASSERT_EQ(cudp(replay).exit, 0);
  EXPECT_EQ(file("f/release/model.safetensors"), one);
}

TEST_F(CliTrain, UnsafeDiagnosticsAreKeptApartAndCertified) {
  const Finished f = cudp(training("run", {"--epsilon", "3", "--unsafe-diagnostics"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json row = Json::parse(file("run/private/diagnostics.jsonl")
                                   .substr(0, file("run/private/diagnostics.jsonl").find('\n')));
  EXPECT_GT(row["training_loss"], 0.0);
  EXPECT_GT(row["examples"], 0);
  EXPECT_NE(f.err.find("training_loss"), std::string::npos);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_FALSE(certificate["for_release"]);
  EXPECT_EQ(certificate["unsafe_flags"], Json({"unsafe-diagnostics"}));
  EXPECT_EQ(file("run/release/metrics.jsonl").find("training_loss"), std::string::npos);
}

TEST_F(CliTrain, ADivergedTrainingEndsAndSaysSo) {
  const Finished f = cudp(
      training("run", {"--sigma", "1e5", "--lr", "1e30", "--size-is-public", "--clip", "1e10"}));
  EXPECT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("training diverged"), std::string::npos) << f.err;
}

TEST_F(CliTrain, ExitCodesAndNothingWrittenOnBadInput) {
  struct Case {
    std::vector<std::string> more;
    int exit;
    const char* says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {{"--epsilon", "3", "--sigma", "0.1", "--size-is-public"}, 3, "budget"},
           {{"--sigma", "1"}, 2, "--sigma needs --epsilon too"},
           {{"--epsilon", "3", "--clip", "1e-30", "--size-is-public"}, 2, "--clip: expected"},
           {{"--epsilon", "201"}, 2, "--epsilon: expected at most 200 (--allow-weak-privacy)"},
           {{"--epsilon", "3", "--delta", "0.1"}, 2, "--delta: expected below 0.1"},
           {{"--sigma", "0.0625", "--size-is-public"}, 3, "expected at most 200"},
           {{"--sigma", "0.06", "--size-is-public"}, 3, "noise multiplier of 0.0625 to 262144"},
           {{"--epsilon", "1e-9", "--size-is-public"}, 3, "cannot be reached"},
           {{"--epsilon", "1e-9"}, 3, "number of training examples"},
           {{"--epsilon", "3", "--delta", "1"}, 2, "--delta: expected a number in (0, 1)"},
           {{"--epsilon", "3", "--batch", "100000", "--size-is-public"}, 2, "--batch"},
           {{"--epsilon", "3", "--model", "logistik"}, 2, "the nearest is 'logistic'"},
           {{"--epsilon", "3", "--model", "cnn"}, 2, "cnn, layer 1"},
           {{"--epsilon", "3", "--method", "dp-sgdd"}, 2, "--method: expected one of dpsgd"},
           {{"--epsilon", "3", "--method", "dpsgd-quantile", "--quantile-noise", "1e-7"},
            2,
            "--quantile-noise: expected a number of 1e-6"},
           {{"--epsilon", "3", "--dataset", folder_ / "none.csv"}, 2, "none.csv"},
           {{"--epsilon", "3", "--learning-rate", "1"}, 2, "'--learning-rate'; the nearest is"},
           {{"--epsilon", "3", "--config", folder_ / "none.toml"}, 2, "none.toml"},
           {{}, 2, "--epsilon: expected a privacy budget"},
           {{"--epsilon", "3", "stray"}, 2, "stray"},
       }) {
    const Finished f = cudp(training("run", c.more));
    EXPECT_EQ(f.exit, c.exit) << f.err;
    EXPECT_NE(f.err.find(c.says), std::string::npos) << f.err;
    EXPECT_EQ(f.out, "") << f.out;
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run")) << f.err;
  }
  EXPECT_EQ(cudp({"train", "--resume", folder_ / "nowhere"}).exit, 2);
  EXPECT_EQ(cudp({"eval", folder_ / "nowhere"}).exit, 2);
  EXPECT_EQ(cudp({}).exit, 2);
  const Finished misspelt = cudp({"trian"});
  EXPECT_EQ(misspelt.exit, 2);
  EXPECT_NE(misspelt.err.find("'train'"), std::string::npos) << misspelt.err;
  int hidden = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    hidden += entry.path().filename().string().starts_with('.') ? 1 : 0;
  EXPECT_EQ(hidden, 0);
}

/// What follows from a private number of examples is told only where that was paid for.
TEST_F(CliTrain, ARefusalByThePrivateSizeIsPaidFor) {
  const Finished f = cudp(training("run", {"--epsilon", "3", "--batch", "100000"}));
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("was paid for: " + (folder_ / "run/release/privacy.json")),
            std::string::npos)
      << f.err;
  const Json c = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(c["releases"].size(), 1u);
  EXPECT_EQ(c["releases"][0]["sigma"], c["size_release"]["noise_std"]);
  EXPECT_GT(c["epsilon"], 0.0);
  EXPECT_LT(c["epsilon"], 1.0);
  EXPECT_TRUE(fs::exists(folder_ / "run/private/ledger"));
  EXPECT_EQ(cudp({"train", "--resume", folder_ / "run"}).exit, 2);
  // DPIS wants batches of less than N~: a refusal tells that number, and not N.
  const Finished dpis = cudp(
      training("dpis", {"--epsilon", "3", "--method", "dpis", "--batch", "4000", "--seed", "1"}));
  EXPECT_EQ(dpis.exit, 2);
  EXPECT_NE(dpis.err.find("--batch: expected less than the "), std::string::npos) << dpis.err;
  EXPECT_EQ(Json::parse(file("dpis/release/privacy.json"))["status"], "refused");
}

/// Whatever the noisy size is: the same epsilon, and a whole number.
TEST_F(CliTrain, APrivateSizeDoesNotMoveTheCertifiedEpsilon) {
  for (const char* seed : {"1", "2", "3"}) {
    const std::string out = std::string("run") + seed;
    ASSERT_EQ(cudp(training(out, {"--epsilon", "3", "--seed", seed})).exit, 0);
    const Json c = Json::parse(file(out + "/release/privacy.json"));
    EXPECT_EQ(c["epsilon"], 3.0);
    EXPECT_TRUE(c["size_release"]["noisy_size"].is_number_integer());
  }
}

TEST_F(CliTrain, SaysWhyARunIsNotForReleaseAndWhatItIsTooWeakFor) {
  const auto certificate = [&](const std::string& out, const std::vector<std::string>& more) {
    const Finished f = cudp(training(out, more));
    EXPECT_EQ(f.exit, 0) << f.err;
    Json c = Json::parse(file(out + "/release/privacy.json"));
    c["stderr"] = f.err;
    return c;
  };
  const Json seeded = certificate("a", {"--epsilon", "3", "--seed", "1", "--rng", "philox"});
  EXPECT_FALSE(seeded["for_release"]);
  ASSERT_EQ(seeded["not_for_release"].size(), 2u);
  EXPECT_NE(seeded["not_for_release"][0].get<std::string>().find("seed"), std::string::npos);
  EXPECT_NE(seeded["not_for_release"][1].get<std::string>().find("philox"), std::string::npos);
  EXPECT_TRUE(seeded["warnings"].empty());
  const Json weak = certificate(
      "b", {"--epsilon", "300", "--delta", "0.2", "--size-is-public", "--allow-weak-privacy"});
  EXPECT_TRUE(weak["allow_weak_privacy"]);
  EXPECT_TRUE(weak["for_release"]);
  ASSERT_EQ(weak["warnings"].size(), 2u);
  for (const Json& warning : weak["warnings"])
    EXPECT_NE(weak["stderr"].get<std::string>().find(warning.get<std::string>()),
              std::string::npos);
}

TEST_F(CliTrain, AResultThatCannotBeWrittenIsAFailureOfOneLine) {
  // Of the quicker accountant, which is done before a loaded machine says that it computes.
  const std::string account = "account --q 0.01 --sigma 1 --steps 10 --delta 1e-5 --accountant rdp";
  const auto shell = [&](const std::string& line) {
    const std::string command =
        std::string(cudp_binary()) + " " + account + line + " 2>" + (folder_ / "err");
    const int status = std::system(command.c_str());
    return Finished{WEXITSTATUS(status), "", file("err")};
  };
  const Finished full = shell(" >/dev/full");
  EXPECT_EQ(full.exit, 1);
  EXPECT_EQ(full.err, "cudp: stdout: cannot write the result: No space left on device\n");
  const Finished nowhere = shell(" --curve /proc/curve.png >" + (folder_ / "out"));
  EXPECT_EQ(nowhere.exit, 1);
  EXPECT_EQ(std::count(nowhere.err.begin(), nowhere.err.end(), '\n'), 1) << nowhere.err;
  EXPECT_EQ(file("out"), "");
}

TEST_F(CliTrain, EveryCommandHasHelpWithExamples) {
  for (const char* command : {"train", "eval", "account", "calibrate", "info"}) {
    const Finished f = cudp({command, "--help"});
    EXPECT_EQ(f.exit, 0) << command;
    EXPECT_NE(f.out.find("Examples:"), std::string::npos) << f.out;
    EXPECT_NE(f.out.find("--json"), std::string::npos) << f.out;
  }
  EXPECT_EQ(cudp({"--help"}).exit, 0);
  EXPECT_EQ(cudp({"--version"}).out.substr(0, 5), "cudp ");
}

TEST_F(CliTrain, InfoSaysWhatIsThere) {
  const Finished f = cudp({"info", "--json"});
  ASSERT_EQ(f.exit, 0);
  const Json j = Json::parse(f.out);
  for (const char* key :
       {"version", "commit", "compiler", "backends", "devices", "simd", "threads"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["backends"][0], "cpu");
  EXPECT_GE(j["threads"], 1);
}

}  // namespace
}  // namespace cudp

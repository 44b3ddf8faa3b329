// `cudp audit` as a user runs it.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

class CliAudit : public testing::Test {
 protected:
  Finished run(const std::vector<std::string>& more) const {
    std::vector<std::string> a{
        "audit",    "--dataset", "glyphs",    "--model", "logistic", "--delta", "1e-5",
        "--epochs", "1",         "--batch",   "2000",    "--seed",   "3",       "--canaries",
        "300",      "--quiet",   "--threads", "1",       "--device", "cpu",     "--json"};
    if (std::ranges::find(more, "--method") == more.end()) a.insert(a.end(), {"--epsilon", "8"});
    a.insert(a.end(), more.begin(), more.end());
    return CudpProcess(folder_, a).wait();
  }
  TemporaryFolder folder_;
};

TEST_F(CliAudit, ShowsBoundsBelowTheCertificate) {
  const std::string out = folder_ / "audit";
  const Finished f = run({"--out", out, "--guesses", "60"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json j = Json::parse(f.out);
  EXPECT_LE(j["epsilon"], 8.0);
  EXPECT_EQ(j["delta"], 1e-5);
  EXPECT_EQ(j["guesses"], 60);
  EXPECT_GT(j["epsilon_lower_any"], 0.3);
  EXPECT_GT(j["epsilon_lower_gaussian"], j["epsilon_lower_any"]);
  EXPECT_LT(j["epsilon_lower_gaussian"], j["epsilon"]);
  EXPECT_LT(j["epsilon_lower_own"], j["epsilon"]);
  EXPECT_EQ(j["refuted"], false);
  EXPECT_NEAR(j["members"].get<double>(), 150.0, 45.0);  // 5 standard deviations
  EXPECT_EQ(j["certificate"]["method"], "dpsgd");
  EXPECT_EQ(j["certificate"]["for_release"], false);
  EXPECT_EQ(Json::parse(content_of(fs::path(out) / "audit.json")), j);
  EXPECT_FALSE(fs::exists(fs::path(out) / "release"));
  for (const char* const file : {"audit.json", "audit.png"})
    if (fs::exists(fs::path(out) / file)) {  // without gnuplot there is no picture
      EXPECT_EQ(fs::status(fs::path(out) / file).permissions(),
                fs::perms::owner_read | fs::perms::owner_write)
          << file;
    }
}

TEST_F(CliAudit, RepeatsWithASeed) {
  Json a = Json::parse(run({}).out);
  Json b = Json::parse(run({}).out);
  a.erase("seconds");
  b.erase("seconds");
  EXPECT_EQ(a, b);
}

TEST_F(CliAudit, OfOtherMethodsAndCanaries) {
  const std::vector<std::vector<std::string>> all{
      {"--canary", "example"},
      {"--clipping", "automatic", "--features", "pca", "--feature-dimensions", "40"},
      {"--method", "adaclip", "--epsilon", "8"},
      {"--method", "dpis", "--epsilon", "8"},
      {"--method", "dpsgd-quantile", "--epsilon", "8"},
      {"--method", "sgd-ma", "--epsilon", "8", "--canary", "example"}};
  for (const auto& flags : all) {
    const Finished f = run(flags);
    ASSERT_EQ(f.exit, 0) << flags[1] << ": " << f.err;
    const Json j = Json::parse(f.out);
    EXPECT_LE(j["epsilon"], 8.0) << flags[1];
    EXPECT_LT(j["epsilon_lower_any"], j["epsilon"]) << flags[1];
    EXPECT_EQ(j["guesses"], 30) << flags[1];
  }
}

/// A model with fewer parameters than the usual number of canaries has one for each; one with next
/// to none has a word for what to do.
TEST_F(CliAudit, TakesAsManyCanariesAsThereIsRoomFor) {
  std::string rows, columns;
  for (int k = 0; k < 10; ++k) {
    rows += "x" + std::to_string(k) + ",";
    columns += "  {name = \"x" + std::to_string(k) + "\", kind = \"numeric\", min = 0, max = 9},\n";
  }
  rows += "digit\n";
  for (int i = 0; i < 600; ++i) {
    for (int k = 0; k < 10; ++k) rows += std::to_string((7 * i + 3 * k * i) % 10) + ",";
    rows += std::to_string(i % 10) + "\n";
  }
  write_text(folder_ / "digits.csv", rows);
  write_text(folder_ / "digits.toml",
             "name = \"digits\"\ncolumns = [\n" + columns +
                 "  {name = \"digit\", kind = \"label\", values = [\"0\", \"1\", \"2\", "
                 "\"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"]},\n]\n");
  const Finished f = run_cudp(folder_, {"audit",
                                        "--dataset",
                                        folder_ / "digits.csv",
                                        "--schema",
                                        folder_ / "digits.toml",
                                        "--model",
                                        "logistic",
                                        "--delta",
                                        "1e-5",
                                        "--epsilon",
                                        "8",
                                        "--steps",
                                        "3",
                                        "--batch",
                                        "64",
                                        "--seed",
                                        "3",
                                        "--quiet",
                                        "--json",
                                        "--threads",
                                        "1",
                                        "--device",
                                        "cpu"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(Json::parse(f.out)["canaries"], 110);  // ten classes of 10 weights and a bias
  EXPECT_EQ(Json::parse(f.out)["guesses"], 10);    // half of them of each kind
  const SmallTable table = write_small_table(folder_);
  const Arguments tiny = {"audit",    "--dataset", table.table, "--schema", table.schema, "--model",
                          "logistic", "--epsilon", "3",         "--delta",  "1e-5",       "--steps",
                          "3",        "--seed",    "1",         "--quiet",  "--json"};
  const Finished none = run_cudp(folder_, tiny);
  EXPECT_EQ(none.exit, 2);
  EXPECT_EQ(
      none.err,
      "cudp: --canary: expected a model with at least 10 parameters, one for each canary, found "
      "5. Use --canary example.\n");
  const Finished examples = run_cudp(folder_, with(tiny, {"--canary", "example", "--batch", "64"}));
  ASSERT_EQ(examples.exit, 0) << examples.err;
  EXPECT_EQ(Json::parse(examples.out)["canaries"], 306);  // of 613 rows
}

/// The number of rows of a table is private, unless the user declares it.
TEST_F(CliAudit, NoMessageHasThePrivateNumberOfRows) {
  const SmallTable table = write_small_table(folder_);
  const Arguments words = {"audit",   "--dataset", table.table, "--schema", table.schema,
                           "--model", "logistic",  "--epsilon", "3",        "--delta",
                           "1e-5",    "--steps",   "3",         "--seed",   "1",
                           "--batch", "8",         "--canary",  "example",  "--quiet"};
  EXPECT_EQ(run_cudp(folder_, with(words, {"--canaries", "5000"})).err,
            "cudp: --canaries: expected at most half of the training examples, found 5000\n");
  EXPECT_EQ(run_cudp(folder_, with(words, {"--guesses", "5000"})).err,
            "cudp: --guesses: expected 2 to the number of canaries, found 5000\n");
  EXPECT_EQ(run_cudp(folder_, with(words, {"--canaries", "5000", "--size-is-public"})).err,
            "cudp: --canaries: expected at most half of the training examples, 306, found 5000\n");
  std::string few = "x,y\n";
  for (int i = 0; i < 18; ++i) few += "0.5," + std::to_string(i % 2) + "\n";
  write_text(folder_ / "few.csv", few);
  write_text(folder_ / "few.toml",
             "columns = [{name = \"x\", kind = \"numeric\", min = 0, max = 1}, "
             "{name = \"y\", kind = \"label\", values = [\"0\", \"1\"]}]\n");
  Arguments of_few = words;
  of_few[2] = folder_ / "few.csv";
  of_few[4] = folder_ / "few.toml";
  EXPECT_EQ(run_cudp(folder_, of_few).err,
            "cudp: --canary: expected at least 20 training examples, half of which may be "
            "canaries, found fewer\n");
}

TEST_F(CliAudit, PrintsATableThatFitsATerminal) {
  std::vector<std::string> flags{"audit",   "--dataset", "glyphs",  "--model",    "logistic",
                                 "--delta", "1e-5",      "--steps", "3",          "--epsilon",
                                 "8",       "--seed",    "3",       "--canaries", "50",
                                 "--quiet", "--threads", "1",       "--device",   "cpu"};
  const Finished f = CudpProcess(folder_, flags).wait();
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("certificate"), std::string::npos);
  EXPECT_NE(f.out.find("shown: any mechanism"), std::string::npos);
  EXPECT_NE(f.out.find("meaning"), std::string::npos);
  std::istringstream lines(f.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
}

TEST_F(CliAudit, RefusesInOneLineAndWritesNothing) {
  const std::string out = folder_ / "audit";
  const std::vector<std::vector<std::string>> all{
      {"--canary", "bird"},   {"--canaries", "5"},
      {"--canaries", "-1"},   {"--canaries", "1000000"},
      {"--canaries", "many"}, {"--canaries", "100000", "--canary", "example"},
      {"--guesses", "301"},   {"--guesses", "1"},
      {"--confidence", "1"},  {"--confidence", "0"},
      {"--resume", out},      {"--unsafe-diagnostics"},
      {"--log-json"},         {"--tensorboard", out},
      {"--method", "sgd"},    {"--canarys", "50"}};
  for (std::vector<std::string> flags : all) {
    const std::string what = flags[0] + " " + flags.back();
    flags.insert(flags.end(), {"--out", out});
    const Finished f = run(flags);
    EXPECT_EQ(f.exit, 2) << what << ": " << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << what << ": " << f.err;
    EXPECT_TRUE(f.out.empty()) << what;
    EXPECT_FALSE(fs::exists(out)) << what;
  }
}

/// It releases directions, and no sums that a gradient canary could be seen in.
TEST_F(CliAudit, OfMethodsWithoutSumsNeedsExamples) {
  const SmallTable table = write_small_table(folder_);
  std::vector<std::string> flags{
      "audit",    "--dataset", table.table,  "--schema", table.schema, "--size-is-public",
      "--method", "dp-agd",    "--epsilon",  "3",        "--delta",    "1e-5",
      "--seed",   "1",         "--canaries", "60",       "--quiet",    "--json"};
  const Finished refused = CudpProcess(folder_, flags).wait();
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("--canary: expected example"), std::string::npos) << refused.err;
  flags.insert(flags.end(), {"--canary", "example"});
  const Finished f = CudpProcess(folder_, flags).wait();
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_FALSE(Json::parse(f.out).contains("epsilon_lower_own"));
}

}  // namespace
}  // namespace cudp

// What follows from a private row count: what it costs, and which batches it refuses.
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

class RowCount : public testing::Test {
 protected:
  Finished train(const std::string& out, const Arguments& more) const {
    return run_cudp(folder_,
                    with({"train",    "--dataset", table_.table, "--schema",  table_.schema,
                          "--model",  "logistic",  "--delta",    "1e-5",      "--epsilon",
                          "2",        "--seed",    "3",          "--threads", "1",
                          "--device", "cpu",       "--json",     "--out",     folder_ / out},
                         more));
  }
  Json certificate(const std::string& run) const {
    return Json::parse(content_of(folder_ / (run + "/release/privacy.json")));
  }
  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

/// The two noise multipliers of the line are those of a run with, and of one without it.
TEST_F(RowCount, ARunSaysWhatAPrivateOneCosts) {
  const Finished with = train("private", {"--batch", "64", "--steps", "30"});
  ASSERT_EQ(with.exit, 0) << with.err;
  const std::regex line(
      "a private row count costs ([0-9.]+) % more noise: sigma ([0-9.]+) instead of ([0-9.]+)");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(with.err, found, line)) << with.err;
  const double percent = std::stod(found[1]), sigma = std::stod(found[2]),
               other = std::stod(found[3]);
  const Json own = certificate("private");
  EXPECT_NEAR(sigma, own["sigma"].get<double>(), 1e-4);
  EXPECT_GT(percent, 1.0);
  EXPECT_NEAR(percent, 100.0 * (sigma / other - 1.0), 0.1 * percent);
  // The same rate as of the noisy count, by the accountant alone.
  const std::string noisy = own["size_release"]["noisy_size"].dump();
  const Finished calibrated =
      run_cudp(folder_, {"calibrate", "--examples", noisy, "--batch", "64", "--steps", "30",
                         "--epsilon", "2", "--delta", "1e-5", "--json"});
  EXPECT_NEAR(other, Json::parse(calibrated.out)["sigma"].get<double>(), 1e-3);
  const Finished without = train("public", {"--batch", "64", "--steps", "30", "--size-is-public"});
  EXPECT_EQ(without.err.find("row count costs"), std::string::npos) << without.err;
  // Where the noise is given, it is epsilon that it costs.
  const Finished given = train("given", {"--batch", "64", "--steps", "30", "--sigma", "20"});
  ASSERT_EQ(given.exit, 0) << given.err;
  EXPECT_NE(given.err.find("a private row count costs epsilon: 2 instead of "), std::string::npos)
      << given.err;
  // It takes a calibration of its own, which is left out if stderr does not show the line.
  ASSERT_EQ(train("quiet", {"--batch", "64", "--steps", "30", "--quiet"}).exit, 0);
  EXPECT_EQ(content_of(folder_ / "quiet/private/log.txt").find("row count costs"),
            std::string::npos);
}

/// What no row count allows, and a noise multiplier that keeps the budget for some counts only: the
/// count would be paid for in vain. The refusal is the same for every table.
TEST_F(RowCount, WhatCannotKeepTheBudgetIsRefusedBeforeTheCountIsPaidFor) {
  struct Case {
    Arguments more;
    int exit;
    const char* says;
  };
  const Case cases[] = {
      {{"--batch", "64", "--epochs", "2", "--sigma", "1"},
       3,
       "--sigma: expected none with --epsilon, or one that keeps epsilon 2 whatever the number "
       "of "
       "training examples is"},
      {{"--batch", "64", "--steps", "3", "--sigma", "0.06"}, 3, "noise multiplier of 0.0625"},
      {{"--batch", "64", "--steps", "3", "--sigma", "0.1"}, 3, "--size-is-public"},
      {{"--batch", "64", "--steps", "3", "--clip", "1e-30"}, 2, "--clip: expected at least"},
      {{"--batch", "64", "--steps", "3", "--features", "pca", "--feature-dimensions", "2",
        "--feature-sigma", "0.5"},
       3,
       "epsilon"},
      {{"--method", "dp-agd", "--features", "pca", "--feature-dimensions", "2", "--feature-sigma",
        "0.5"},
       3,
       "the releases before training take the whole budget"},
      {{"--method", "dp-agd", "--splits", "0.5"}, 3, "the budget does not allow a single step"},
      {{"--method", "privgene", "--features", "pca", "--feature-dimensions", "2", "--feature-sigma",
        "0.5"},
       3,
       "take the whole budget"},
  };
  for (const Case& c : cases) {
    const Finished f = train("run", c.more);
    EXPECT_EQ(f.exit, c.exit) << f.err;
    EXPECT_NE(f.err.find(c.says), std::string::npos) << f.err;
    EXPECT_EQ(f.err.find("was paid for"), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run")) << f.err;
  }
  // The number that is stated is the accountant's best, not that of one order for all.
  const Finished f = train("run", {"--batch", "64", "--steps", "30", "--sigma", "1"});
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      f.err, found,
      std::regex("below about ([0-9]+) examples \\(30 steps at sigma 1 spend epsilon "
                 "([0-9.]+), the budget is 1.92 without the 0.08 of the noisy row count")))
      << f.err;
  const std::string examples = std::to_string(std::stol(found[1]) - 1);
  const Finished best =
      run_cudp(folder_, {"account", "--examples", examples, "--batch", "64", "--steps", "30",
                         "--sigma", "1", "--delta", "9e-6", "--json"});
  EXPECT_NEAR(Json::parse(best.out)["epsilon"].get<double>(), std::stod(found[2]), 1e-2);
  // What depends on the count is refused by the noisy one, and paid for.
  EXPECT_EQ(train("large", {"--batch", "2000", "--steps", "3"}).exit, 2);
  EXPECT_TRUE(fs::exists(folder_ / "large/release/privacy.json"));
}

/// What is refused follows from the noisy count alone: it is paid for, certified, and named.
TEST_F(RowCount, ABatchAboveAPrivateOneIsRefusedByTheNoisyCount) {
  const Finished f = train("run", {"--batch", "2000", "--steps", "3"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_EQ(f.out, "");
  const Json c = certificate("run");
  EXPECT_EQ(c["status"], "refused");
  const std::string noisy = c["size_release"]["noisy_size"].dump();
  EXPECT_NE(noisy, "613") << "another seed is needed, for the next line to mean something";
  EXPECT_NE(f.err.find("--batch: expected at most the " + noisy +
                       " rows of the noisy row count, "
                       "found 2000"),
            std::string::npos)
      << f.err;
  EXPECT_EQ(f.err.find("613"), std::string::npos) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/release/model.safetensors"));
  EXPECT_LT(c["epsilon"], 0.3);  // of the count alone
  // One that is public is refused before anything is written.
  const Finished known = train("known", {"--batch", "2000", "--steps", "3", "--size-is-public"});
  EXPECT_EQ(known.exit, 2);
  EXPECT_EQ(known.err, "cudp: --batch: expected at most the 613 training examples, found 2000\n");
  EXPECT_FALSE(fs::exists(folder_ / "known"));
}

/// Jobs that start in the same second, of the same data and model.
TEST_F(RowCount, RunsWithoutANameOfTheirOwnNeverCollide) {
  const fs::path here = folder_.path() / "here";
  fs::create_directory(here);
  const Arguments words = {"train",     "--dataset", table_.table, "--schema", table_.schema,
                           "--model",   "logistic",  "--delta",    "1e-5",     "--epsilon",
                           "2",         "--steps",   "1",          "--batch",  "16",
                           "--threads", "1",         "--device",   "cpu",      "--quiet"};
  constexpr int kJobs = 6;
  std::vector<TemporaryFolder> outputs(kJobs);
  std::vector<CudpProcess> jobs;
  jobs.reserve(outputs.size());
  for (const TemporaryFolder& output : outputs) jobs.emplace_back(output, words, here.string());
  for (CudpProcess& job : jobs) {
    const Finished f = job.wait();
    EXPECT_EQ(f.exit, 0) << f.err;
  }
  int runs = 0;
  for (const auto& entry : fs::directory_iterator(here / "runs")) {
    EXPECT_TRUE(fs::exists(entry.path() / "release/privacy.json")) << entry.path();
    ++runs;
  }
  EXPECT_EQ(runs, kJobs);
  // A run that is refused leaves no folder, neither its own nor an empty runs/.
  fs::remove_all(here / "runs");
  Arguments refused = words;
  refused.insert(refused.end(), {"--batch", "2000", "--size-is-public"});
  EXPECT_EQ(CudpProcess(folder_, refused, here.string()).wait().exit, 2);
  EXPECT_TRUE(fs::is_empty(here));
}

}  // namespace
}  // namespace cudp

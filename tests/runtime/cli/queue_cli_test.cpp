// Trainings as a queue of jobs runs them: several at once, and read later from their logs.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/table_training.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class QueueCli : public testing::Test {
 protected:
  Arguments job(const Arguments& more = {}) const {
    return with({"train", "--dataset", table_.table, "--schema", table_.schema, "--epsilon", "3",
                 "--delta", "1e-5", "--steps", "20", "--device", "cpu", "--size-is-public"},
                more);
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(QueueCli, JobsOfOneSecondHaveFoldersOfTheirOwn) {
  constexpr int kJobs = 5;
  std::vector<std::unique_ptr<TemporaryFolder>> outputs;
  std::vector<CudpProcess> jobs;
  for (int i = 0; i < kJobs; ++i) {
    outputs.push_back(std::make_unique<TemporaryFolder>());
    jobs.emplace_back(*outputs.back(), job({"--threads", "1", "--quiet"}), folder_.path());
  }
  for (CudpProcess& process : jobs) {
    const Finished f = process.wait();
    EXPECT_EQ(f.exit, 0) << f.err;
  }
  int complete = 0;
  for (const auto& run : fs::directory_iterator(folder_ / "runs"))
    complete += fs::exists(run.path() / "private/result.json") ? 1 : 0;
  EXPECT_EQ(complete, kJobs);
}

TEST_F(QueueCli, AFolderOfAnotherMachineIsRefused) {
  for (const char* flag : {"--out", "--resume-or-start"}) {
    const Finished f = run_cudp(folder_, job({flag, "s3://bucket/run"}));
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(f.err,
              "cudp: --out: expected a folder of this machine, found s3://bucket/run; mount the "
              "storage, or copy the run folder there afterwards\n");
  }
  EXPECT_FALSE(fs::exists("s3:"));
}

TEST_F(QueueCli, MoreThreadsThanCoresAreReported) {
  const auto warnings = [&](const Arguments& more, const std::string& out) {
    const Finished f = run_cudp(folder_, job(with({"--quiet", "--out", folder_ / out}, more)));
    EXPECT_EQ(f.exit, 0) << f.err;
    std::size_t found = 0;
    for (const std::string& line : lines_of(f.err))
      found += line.find("--threads 1000 is more than the ") != std::string::npos ? 1 : 0;
    return found;
  };
  EXPECT_EQ(warnings({"--threads", "1000"}, "many"), 1u);
  EXPECT_EQ(warnings({"--threads", "1"}, "one"), 0u);
}

TEST_F(QueueCli, TheLogHasNoBars) {
  const Finished f = run_cudp(folder_, job({"--out", folder_ / "run"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("[=="), std::string::npos) << f.err;
  const std::string log = content_of(folder_ / "run/private/log.txt");
  EXPECT_EQ(log.find("=="), std::string::npos) << log;
  EXPECT_NE(log.find(" step 20/20  epsilon "), std::string::npos) << log;
}

TEST_F(QueueCli, RanksWithMoreThreadsThanTheNodeAreReported) {
  const Finished f = run_cudp(
      folder_, job({"--quiet", "--ranks", "2", "--threads", "700", "--out", folder_ / "run"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("2 ranks with 700 threads each are more than the "), std::string::npos)
      << f.err;
}

TEST_F(QueueCli, AMonitoringSystemReadsTheProgress) {
  const std::string file = folder_ / "cudp.prom";
  const Finished f =
      run_cudp(folder_, job({"--quiet", "--metrics-file", file, "--out", folder_ / "run"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string text = content_of(file);
  for (const char* line :
       {"# TYPE cudp_steps gauge\ncudp_steps{run=\"run\"} 20\n",
        "\ncudp_steps_planned{run=\"run\"} 20\n", "\ncudp_epsilon_spent{run=\"run\"} 2.9",
        "\ncudp_examples_per_second{run=\"run\"} ", "\ncudp_running{run=\"run\"} 0\n",
        "\ncudp_updated_timestamp_seconds{run=\"run\"} 1"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "in:\n" << text;
  EXPECT_EQ(text.find("accuracy"), std::string::npos);
  const Finished none = run_cudp(folder_, job({"--quiet", "--metrics-file",
                                               folder_ / "no/cudp.prom", "--out", folder_ / "b"}));
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("--metrics-file: expected a file in a folder that exists"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "b"));
}

/// Number of interruptions by each signal: 20 in scripts/check.sh queue.
int interruptions() {
  const char* const given = std::getenv("CUDP_KILLS");
  return given != nullptr ? std::stoi(given) : 4;
}

/// A job that is interrupted at random moments, and started by the same command each time, ends
/// with the files of one that never was.
TEST_F(QueueCli, InterruptedByAnySignalItEndsTheSame) {
  (void)std::signal(SIGHUP, SIG_DFL);  // children would inherit that it is ignored
  std::mt19937 random(57);
  const auto long_job = [&](const std::string& run) {
    return with({"train",       "--dataset",
                 table_.table,  "--schema",
                 table_.schema, "--epsilon",
                 "3",           "--delta",
                 "1e-5",        "--steps",
                 "400000",      "--batch",
                 "64",          "--eval-every",
                 "0",           "--device",
                 "cpu",         "--size-is-public",
                 "--seed",      "5",
                 "--threads",   "1",
                 "--quiet"},
                {"--resume-or-start", folder_ / run});
  };
  const auto released = [&](const std::string& run) {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::directory_iterator(folder_ / (run + "/release")))
      if (file.path().extension() != ".png")
        files[file.path().filename().string()] = content_of(file.path());
    return files;
  };
  ASSERT_EQ(run_cudp(folder_, long_job("whole")).exit, 0);
  const auto whole = released("whole");
  EXPECT_GT(whole.size(), 3u);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const std::string run = "signal" + std::to_string(signal);
    int interrupted = 0;
    for (int i = 0; i < interruptions(); ++i) {
      CudpProcess process(folder_, long_job(run));
      process.wait_for_handler(signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 250));
      process.signal(signal);
      const Finished f = process.wait();
      if (f.exit == 0) break;
      EXPECT_EQ(f.exit, 75) << f.err;
      EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
      ++interrupted;
    }
    EXPECT_GT(interrupted, 0);
    const Finished f = run_cudp(folder_, long_job(run));
    EXPECT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(released(run), whole);
    std::cout << "signal " << signal << ": interrupted " << interrupted << " times, then exit code "
              << f.exit << ", " << (released(run) == whole ? "the same" : "other") << " bytes\n";
  }
}

}  // namespace
}  // namespace cudp

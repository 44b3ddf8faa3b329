// Trainings as a queue of jobs runs them: several at once, and read later from their logs.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/table_training.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class QueueCli : public testing::Test {
 protected:
  Words job(const Words& more = {}) const {
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
  const auto warnings = [&](const Words& more, const std::string& out) {
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

}  // namespace
}  // namespace cudp

// What a sweep is told of its trainings, and when.
#include "runtime/sweep/trainings.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/settings/settings.hpp"
#include "runtime/sweep/children.hpp"
#include "tests/support/temporary_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

TrainConfig config_of_table(const TemporaryFolder& folder, std::int64_t batch = 100) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 500; ++i) rows += std::to_string(i % 10) + "," + std::to_string(i % 2) + "\n";
  write_text(folder / "rows.csv", rows);
  write_text(folder / "rows.toml",
             "columns = [{name = \"x\", kind = \"numeric\", min = 0, max = 9}, "
             "{name = \"y\", kind = \"label\", values = [\"0\", \"1\"]}]\n");
  const Settings settings = {{"dataset", {std::string(folder / "rows.csv"), "test"}},
                             {"schema", {std::string(folder / "rows.toml"), "test"}},
                             {"model", {std::string("logistic"), "test"}},
                             {"epsilon", {3.0, "test"}},
                             {"delta", {1e-5, "test"}},
                             {"steps", {std::int64_t{20}, "test"}},
                             {"batch", {batch, "test"}},
                             {"device", {std::string("cpu"), "test"}},
                             {"out", {std::string(folder / "run"), "test"}}};
  std::vector<std::string> notes;
  return resolve_config(settings, notes);
}

/// Trains in a child process, and returns its exit code. observe: called in the child.
Exit trained(const TrainConfig& config, const std::function<void(RunEvent)>& observe) {
  ChildProcesses children;
  children.start(0,
                 [&](const QueuedSignals& signals) { train_in_child(config, signals, observe); });
  for (;;) {
    (void)children.wait();
    for (const EndedChild& child : children.ended()) return child.code;
  }
}

/// If the process is killed in between and the folder is removed by hand, the run must not be
/// forgotten.
TEST(SweptTraining, IsReportedToBeginBeforeItHasItsFolder) {
  for (const std::int64_t batch :
       {100, 5'000}) {  // the second one is refused after the noisy count
    const TemporaryFolder folder;
    const TrainConfig config = config_of_table(folder, batch);
    const Exit exit = trained(config, [&](RunEvent event) {
      std::ofstream(folder / "events", std::ios::app)
          << (event == RunEvent::starts ? "starts" : "begins")
          << (fs::exists(folder / "run") ? " with a folder\n" : " without a folder\n");
    });
    EXPECT_EQ(exit == Exit::ok, batch == 100);
    EXPECT_TRUE(fs::exists(folder / "run"));
    EXPECT_EQ(content_of(folder / "events"), "starts without a folder\nbegins without a folder\n");
  }
}

TEST(SweptTraining, HasNoFolderIfItsBeginningCannotBeRecorded) {
  const TemporaryFolder folder;
  const Exit exit = trained(config_of_table(folder), [](RunEvent event) {
    if (event == RunEvent::begins) throw Error("the disk is full");
  });
  EXPECT_EQ(exit, Exit::failure);
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace
}  // namespace cudp

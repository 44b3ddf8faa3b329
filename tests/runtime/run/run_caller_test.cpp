#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/run/run.hpp"
#include "runtime/training/loaded_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {

/// Paths of the files that are synced to disk, in order; null while nothing is recorded.
std::vector<std::string>* synced_files = nullptr;

namespace {

/// Asks to stop after some rows of metrics.
class StoppingCaller final : public RunCaller {
 public:
  explicit StoppingCaller(std::size_t rows) : rows_(rows) {}
  bool interrupts() override {
    handler_unchanged = handler_unchanged && handler() == handler_;
    return seen.size() >= rows_;
  }
  void measured(const std::vector<MetricsRow>& rows) override { seen = rows; }

  std::vector<MetricsRow> seen;
  bool handler_unchanged = true;

 private:
  using Handler = void (*)(int);
  static Handler handler() {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler;
  }

  std::size_t rows_;
  Handler handler_ = handler();  ///< SIG_IGN if a shell runs the test in the background
};

Settings called_settings(const std::string& out) {
  const auto number = [](double x) { return Setting{x, "test"}; };
  const auto whole = [](std::int64_t x) { return Setting{x, "test"}; };
  return {{"dataset", {std::string("glyphs"), "test"}},
          {"model", {std::string("logistic"), "test"}},
          {"epsilon", number(3.0)},
          {"delta", number(1e-5)},
          {"epochs", whole(4)},
          {"batch", whole(1024)},
          {"seed", whole(1)},
          {"device", {std::string("cpu"), "test"}},
          {"out", {out, "test"}}};
}

TEST(RunCaller, StopsARunThatResumesToTheSameModel) {
  const TemporaryFolder dir;
  const auto start = [&](const std::string& name, RunCaller& caller) {
    std::vector<std::string> notes;
    Reporter reporter(Reporter::Silent{});
    const TrainConfig config = resolve_config(called_settings(dir / name), notes);
    const auto run = start_run(config, reporter, nullptr, alone(), &caller);
    (void)train(*run);
  };
  StoppingCaller never(99), early(2);
  start("whole", never);
  EXPECT_EQ(never.seen.size(), 4u);
  try {
    start("stopped", early);
    FAIL() << "the run was not stopped";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::again);
  }
  EXPECT_LT(early.seen.size(), 4u);
  Reporter reporter(Reporter::Silent{});
  StoppingCaller later(99);
  const Settings flags = {{"resume", {dir / "stopped", "test"}}};
  (void)train(*resume_run(flags, reporter, nullptr, alone(), &later));
  EXPECT_EQ(read_file(dir / "stopped/release/model.safetensors"),
            read_file(dir / "whole/release/model.safetensors"));
  EXPECT_TRUE(never.handler_unchanged && early.handler_unchanged && later.handler_unchanged);
}

/// The second training with the same public settings computes no bound again, and its files are the
/// same.
TEST(RunCaller, TrainingsShareWhatTheAccountantComputed) {
  const TemporaryFolder dir;
  const auto run_with = [&](const std::string& name,
                            const std::shared_ptr<privacy::AccountantMemo>& memo) {
    std::vector<std::string> notes;
    Reporter reporter(Reporter::Silent{});
    StoppingCaller never(99);
    TrainConfig config = resolve_config(called_settings(dir / name), notes);
    config.of<MemoInUse>().memo = memo;
    (void)train(*start_run(config, reporter, nullptr, alone(), &never), DrawPictures::no);
  };
  const auto memo = memo_for_trainings();
  run_with("alone", nullptr);
  run_with("first", memo);
  const std::size_t computed = memo->computations();
  EXPECT_GT(computed, 4u) << "the plan, each epoch, groups";
  run_with("second", memo);
  EXPECT_EQ(memo->computations(), computed);
  for (const char* const name : {"privacy.json", "metrics.jsonl", "model.safetensors"}) {
    const auto file = [&](const std::string& run) {
      return read_file(dir / (run + "/release/" + name));
    };
    EXPECT_EQ(file("first"), file("alone")) << name;
    EXPECT_EQ(file("second"), file("alone")) << name;
  }
}

/// The pages are made from metrics.jsonl: after a crash they must not stand beside earlier rows.
TEST(RunCaller, MetricsAreSyncedBeforeThePagesAreWritten) {
  const TemporaryFolder dir;
  std::vector<std::string> notes, synced;
  Reporter reporter(Reporter::Silent{});
  const TrainConfig config = resolve_config(called_settings(dir / "run"), notes);
  StoppingCaller never(99);
  const auto run = start_run(config, reporter, nullptr, alone(), &never);
  synced_files = &synced;
  (void)train(*run);
  synced_files = nullptr;
  // A file is written, and synced, as .NAME.new first.
  const auto first = [&](const char* name) {
    return std::ranges::find_if(
        synced, [&](const std::string& path) { return path.find(name) != std::string::npos; });
  };
  EXPECT_LT(first("release/.metrics.jsonl"), first("release/.report.html"));
  EXPECT_NE(first("release/.report.html"), synced.end());
}

}  // namespace
}  // namespace cudp

/// In place of the C library's: records the path, then syncs.
extern "C" int fsync(int file) {
  if (cudp::synced_files != nullptr) {
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    if (length > 0) cudp::synced_files->emplace_back(path, static_cast<std::size_t>(length));
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/boot_id.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/run.hpp"
#include "runtime/training/loaded_data.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {

/// Paths of the files that are synced to disk, in order; null while nothing is recorded. Several
/// threads sync files.
std::vector<std::string>* synced_files = nullptr;
std::mutex synced_files_lock;

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
  const auto first = [&](const char* name) {
    return std::ranges::find_if(
        synced, [&](const std::string& path) { return path.find(name) != std::string::npos; });
  };
  EXPECT_LT(first("release/metrics.jsonl"), first("release/report.html"));
  EXPECT_LT(first("release/model.safetensors"), first("release/report.html"));
  // The certificate and the result are written, and synced, as .NAME.new first.
  EXPECT_LT(first("release/report.html"), first("release/.privacy.json"));
  EXPECT_LT(first("release/.privacy.json"), first("private/.result.json"));
  EXPECT_NE(first("private/.result.json"), synced.end());
}

/// The folder of a new run is synced when it is moved to its path. But a private number of examples
/// is released before, so its charge is synced at once.
TEST(RunCaller, AChargeIsSyncedBeforeTheFolderOfANewRun) {
  const TemporaryFolder dir;
  std::vector<std::string> notes, synced;
  Reporter reporter(Reporter::Silent{});
  Settings settings = called_settings(dir / "run");
  std::vector<float> x(std::size_t{2} * 400);
  std::vector<std::int64_t> y(400);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<std::int64_t>(i % 2);
    x[2 * i] = static_cast<float>(y[i]);
  }
  std::ofstream(dir / "rows.npz", std::ios::binary)
      << zip({{"x.npy", npy_floats(y.size(), x)}, {"y.npy", npy_labels(y)}});
  settings["dataset"] = {dir / "rows.npz", "test"};
  settings["classes"] = {std::int64_t{2}, "test"};
  settings["batch"] = {std::int64_t{64}, "test"};
  StoppingCaller never(99);
  synced_files = &synced;
  const auto run = start_run(resolve_config(settings, notes), reporter, nullptr, alone(), &never);
  synced_files = nullptr;
  EXPECT_FALSE(run->training->size().is_public());
  ASSERT_FALSE(synced.empty());
  EXPECT_TRUE(synced.front().ends_with("private/.ledger.new")) << synced.front();
  const auto key = std::ranges::find_if(
      synced, [](const std::string& path) { return path.ends_with("private/key"); });
  ASSERT_NE(key, synced.end());
  EXPECT_NE(key->find(".run.new"), std::string::npos) << *key;
}

/// Trains with files that are not synced in the first seconds, and returns the files that were.
std::vector<std::string> synced_by(const std::string& out, double seconds, RunCaller& caller,
                                   bool trains = true) {
  std::vector<std::string> notes, synced;
  Reporter reporter(Reporter::Silent{});
  TrainConfig config = resolve_config(called_settings(out), notes);
  config.of<UnsyncedStart>().seconds = seconds;
  synced_files = &synced;
  try {
    const auto run = start_run(config, reporter, nullptr, alone(), &caller);
    if (trains) (void)train(*run, DrawPictures::no);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::again);
  }
  synced_files = nullptr;
  return synced;
}

Checkpoint newest_in_run(const std::string& run) {
  return newest_checkpoint(run + "/private", [](const std::string&) {})->checkpoint;
}

/// Whether the file was synced under its own name, or under that of its temporary file.
bool was_synced(const std::vector<std::string>& synced, const std::string& folder,
                const std::string& name) {
  return std::ranges::any_of(synced, [&](const std::string& path) {
    return path.ends_with(folder + "/" + name) || path.ends_with(folder + "/." + name + ".new");
  });
}

/// The zeros that replace the key are synced if the key may have reached the disk by itself.
TEST(UnsyncedStart, ARunThatEndsBeforeSyncsItsKeyAtMost) {
  const TemporaryFolder dir;
  StoppingCaller never(99);
  std::vector<std::string> few = synced_by(dir / "unsynced", 1e6, never);
  std::erase(few, dir / "unsynced/private/key");
  EXPECT_EQ(few, std::vector<std::string>());
  const std::vector<std::string> all = synced_by(dir / "synced", 0.0, never);
  for (const char* const name : {"ledger", "key", "checkpoint-0", "result.json"})
    EXPECT_TRUE(was_synced(all, "private", name)) << name;
  for (const char* const name : {"config.toml", "metrics.jsonl", "model.safetensors", "report.html",
                                 "PRIVACY.txt", "README.md", "privacy.json"}) {
    EXPECT_TRUE(was_synced(all, "release", name)) << name;
    EXPECT_EQ(read_file(dir / (std::string("synced/release/") + name)),
              read_file(dir / (std::string("unsynced/release/") + name)))
        << name;
  }
}

TEST(UnsyncedStart, EndsWithAnInterruptionOrWithItsTime) {
  const TemporaryFolder dir;
  StoppingCaller early(2), later(2);
  const std::vector<std::string> synced = synced_by(dir / "interrupted", 1e6, early);
  for (const char* const name : {"ledger", "key"}) EXPECT_TRUE(was_synced(synced, "private", name));
  EXPECT_TRUE(was_synced(synced, "release", "privacy.json"));
  EXPECT_TRUE(newest_in_run(dir / "interrupted").boot.empty());
  // Its time is over when the first charge is made.
  const std::vector<std::string> timed = synced_by(dir / "timed", 1e-9, later);
  EXPECT_TRUE(was_synced(timed, "private", "ledger"));
  EXPECT_TRUE(newest_in_run(dir / "timed").boot.empty());
}

/// A process that is killed loses nothing: the run resumes until the machine restarts. After that
/// its files may be older than what it released.
TEST(UnsyncedStart, AKilledRunResumesUntilTheMachineRestarts) {
  const TemporaryFolder dir;
  StoppingCaller never(99);
  (void)synced_by(dir / "whole", 0.0, never);
  (void)synced_by(dir / "killed", 1e6, never, false);
  Checkpoint stored = newest_in_run(dir / "killed");
  EXPECT_EQ(stored.boot, boot_id());
  ASSERT_FALSE(stored.boot.empty());
  Reporter reporter(Reporter::Silent{});
  const Settings flags = {{"resume", {dir / "killed", "test"}}};
  const Authenticator authenticator(read_key(dir / "killed/private/key")->key());
  stored.boot = "of an earlier start";
  save_checkpoint(dir / "killed/private", stored, authenticator);
  try {
    (void)resume_run(flags, reporter, nullptr, alone(), &never);
    FAIL() << "the run was resumed";
  } catch (const BudgetError& e) {
    EXPECT_NE(std::string(e.what()).find("the machine's last start"), std::string::npos)
        << e.what();
  }
  stored.boot = boot_id();
  save_checkpoint(dir / "killed/private", stored, authenticator);
  std::vector<std::string> synced;
  synced_files = &synced;
  const auto run = resume_run(flags, reporter, nullptr, alone(), &never);
  synced_files = nullptr;
  EXPECT_TRUE(was_synced(synced, "private", "ledger"));
  EXPECT_TRUE(newest_in_run(dir / "killed").boot.empty());
  (void)train(*run, DrawPictures::no);
  EXPECT_EQ(read_file(dir / "killed/release/model.safetensors"),
            read_file(dir / "whole/release/model.safetensors"));
}

}  // namespace
}  // namespace cudp

/// In place of the C library's: records the path, then syncs.
extern "C" int fsync(int file) {
  const std::lock_guard lock(cudp::synced_files_lock);
  if (cudp::synced_files != nullptr) {
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
    if (length > 0) cudp::synced_files->emplace_back(path, static_cast<std::size_t>(length));
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

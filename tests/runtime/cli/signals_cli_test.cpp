// Signals that ask for an end, at any moment of a training: exit code 75, one line, and either no
// folder or one that goes on.
#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/crash_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// Files and folders that are not whole yet have such names.
std::vector<std::string> unfinished_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || name.find(".new") != std::string::npos)
      names.push_back(entry.path().string());
  }
  return names;
}

class CliSignals : public CliCrash {
 protected:
  CliSignals() { (void)std::signal(SIGHUP, SIG_DFL); }

  Arguments short_training(const std::string& out) const {
    return with(training(out), {"--steps", "40"});
  }
  /// Writes a table of 64 MiB, which takes 0.8 s to read: ten times as long as the tests wait
  /// before they send a signal.
  void write_large_table() const {
    std::string rows = content_of(table_.table);
    const std::string header = rows.substr(0, rows.find('\n') + 1);
    const std::string block = rows.substr(header.size());
    rows = header;
    while (rows.size() < (std::size_t{64} << 20)) rows += block;
    write_text(folder_ / "large.csv", rows);
  }
  Arguments large_training(const Arguments& more = {}) const {
    return with({"train",
                 "--dataset",
                 folder_ / "large.csv",
                 "--schema",
                 table_.schema,
                 "--model",
                 "logistic",
                 "--epsilon",
                 "1",
                 "--delta",
                 "1e-8",
                 "--steps",
                 "5",
                 "--threads",
                 "1",
                 "--device",
                 "cpu",
                 "--quiet",
                 "--resume-or-start",
                 folder_ / "run"},
                more);
  }
};

constexpr const char* kBeforeFirst =
    "cudp: interrupted before the first step; nothing was kept, and the same command starts "
    "again\n";

TEST_F(CliSignals, WhileDataLoadEachEndsWithTryAgain) {
  write_large_table();
  int offset = 0;
  for (const int signal : kSignals) {
    CudpProcess process(folder_, large_training());
    process.wait_for_handler(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(offset));
    offset += 30;
    process.signal(signal);
    const Finished f = process.wait();
    EXPECT_EQ(f.exit, 75) << signal;
    EXPECT_EQ(f.err, kBeforeFirst) << signal;
    EXPECT_EQ(f.out, "");
    EXPECT_FALSE(fs::exists(folder_ / "run"));
    EXPECT_TRUE(unfinished_in(folder_.path()).empty());
  }
}

TEST_F(CliSignals, WhileDataLoadOnSeveralRanks) {
  write_large_table();
  for (const int signal : {SIGTERM, SIGHUP}) {
    CudpProcess process(folder_, large_training({"--ranks", "2"}));
    process.wait_for_handler(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    process.signal(signal);
    const Finished f = process.wait();
    EXPECT_EQ(f.exit, 75) << signal;
    EXPECT_EQ(f.err, kBeforeFirst) << signal;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

/// A file manager's hang-up is no reason to stop where the user said so.
TEST_F(CliSignals, AnIgnoredHangUpStaysIgnored) {
  (void)std::signal(SIGHUP, SIG_IGN);  // as nohup does
  CudpProcess process(folder_, training("run"));
  (void)std::signal(SIGHUP, SIG_DFL);
  wait_for_step("run", 10);
  process.signal(SIGHUP);
  EXPECT_EQ(process.wait().exit, 0);
}

TEST_F(CliSignals, AHangUpInTrainingLeavesACheckpoint) {
  const Finished f = signal_at(training("run"), "run", 30, SIGHUP);
  EXPECT_EQ(f.exit, 75);
  EXPECT_NE(f.err.find("interrupted at step"), std::string::npos) << f.err;
  EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
  const std::vector<std::string> log = lines_of(file("run/private/log.txt"));
  EXPECT_NE(log.back().find(" info: interrupted at step "), std::string::npos) << log.back();
  EXPECT_EQ(resume("run").exit, 0);
}

/// gnuplot takes its time. The files do not wait for it, and it does not outlive the program.
TEST_F(CliSignals, WhileTheReleaseIsWrittenItCanBeResumed) {
  ASSERT_EQ(run_cudp(folder_, short_training("whole")).exit, 0);
  fs::create_directory(folder_ / "bin");
  const std::string drawing = folder_ / "drawing";
  const std::string started = folder_ / "started";
  write_text(folder_ / "bin/gnuplot", "#!/bin/sh\ncat >/dev/null\necho $$ >>" + started +
                                          "\ntouch " + drawing + "\nwhile [ -e " + drawing +
                                          " ]; do sleep 0.02; done\n");
  fs::permissions(folder_ / "bin/gnuplot", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  for (const int signal : {SIGTERM, SIGHUP}) {
    ::setenv("PATH", ((folder_ / "bin") + ":" + path).c_str(), 1);
    CudpProcess process(folder_, short_training("run"));
    ::setenv("PATH", path.c_str(), 1);
    ASSERT_TRUE(wait_until([&] { return fs::exists(drawing); }));
    for (const char* name : {"run/release/model.safetensors", "run/release/privacy.json"})
      EXPECT_TRUE(wait_until([&] {
        return file(name) == file("whole" + std::string(name).substr(3));
      })) << name;
    process.signal(signal);
    const Finished f = process.wait();
    for (const std::string& id : lines_of(content_of(started)))
      EXPECT_NE(::kill(static_cast<pid_t>(std::stol(id)), 0), 0) << "gnuplot still runs";
    fs::remove(drawing);
    EXPECT_EQ(f.exit, 75) << signal;
    EXPECT_EQ(f.err,
              "cudp: interrupted; continue with: cudp train --resume " + (folder_ / "run") + "\n");
    EXPECT_TRUE(unfinished_in(folder_ / "run").empty());
    EXPECT_TRUE(file("run/private/log.txt")
                    .ends_with(" info: interrupted; continue with: cudp train --resume " +
                               (folder_ / "run") + "\n"))
        << file("run/private/log.txt");
    const Finished resumed = resume("run");
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    for (const char* name : {"model.safetensors", "privacy.json", "metrics.jsonl"})
      EXPECT_EQ(file(std::string("run/release/") + name),
                file(std::string("whole/release/") + name));
    fs::remove_all(folder_ / "run");
  }
}

/// The moments are spread over the whole of a short run.
TEST_F(CliSignals, AtAnyMomentTheSameCommandEndsTheSame) {
  Arguments job = short_training("run");
  std::ranges::replace(job, std::string("--out"), std::string("--resume-or-start"));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run_cudp(folder_, short_training("whole")).exit, 0);
  const auto whole = std::chrono::steady_clock::now() - start;
  constexpr int kTimes = 6;
  for (int i = 0; i < kTimes; ++i) {
    CudpProcess process(folder_, job);
    process.wait_for_handler(SIGTERM);
    std::this_thread::sleep_for(whole * i / kTimes);
    process.signal(kSignals[i % 4]);
    const Finished f = process.wait();
    // The program may have ended before.
    EXPECT_TRUE(f.exit == 75 || f.exit == 0) << f.exit << f.err;
    if (f.exit == 75) {
      EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
      EXPECT_TRUE(f.err.starts_with("cudp: interrupted")) << f.err;
    }
    EXPECT_TRUE(unfinished_in(folder_.path()).empty());
    const Finished again = run_cudp(folder_, job);
    ASSERT_EQ(again.exit, 0) << again.err;
    EXPECT_EQ(file("run/release/model.safetensors"), file("whole/release/model.safetensors"));
    EXPECT_EQ(file("run/release/privacy.json"), file("whole/release/privacy.json"));
    fs::remove_all(folder_ / "run");
  }
}

}  // namespace
}  // namespace cudp

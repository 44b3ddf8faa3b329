// A run that is killed at any moment, or whose files are changed, goes on to the same end, or says
// why not.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/common/simd_level.hpp"
#include "runtime/run/checkpoint.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/crash_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

/// Runs that are killed at random moments.
class CliKilled : public CliCrash {
 protected:
  /// Kills a run of `steps` at random moments, `times` over, and goes on with it each time.
  void kill_often(const std::function<Arguments(const std::string& out)>& training, int times,
                  int steps) const {
    const Finished whole = run_cudp(folder_, training("whole"));
    ASSERT_EQ(whole.exit, 0) << whole.err;
    const Json expected = Json::parse(whole.out);

    std::mt19937 random(20);
    int killed_in_training = 0;
    for (int i = 0; i < times; ++i) {
      const std::string out = "killed" + std::to_string(i);
      {
        CudpProcess process(folder_, training(out));
        // A few times while the run is being made; else a random while after a random checkpoint.
        const bool early = 5 * i < times;
        if (!early) wait_for_step(out, static_cast<int>(random() % (steps - 10)));
        std::this_thread::sleep_for(std::chrono::microseconds(random() % (early ? 30'000 : 5'000)));
        process.signal(SIGKILL);
        process.wait();
      }
      // Before its first checkpoint a run does not exist; afterwards it can always go on.
      const bool exists = fs::exists(folder_ / out);
      EXPECT_EQ(fs::exists(folder_ / (out + "/release/privacy.json")), exists);
      killed_in_training += exists && !fs::exists(folder_ / (out + "/private/result.json")) ? 1 : 0;
      const Finished f = exists ? resume(out) : run_cudp(folder_, training(out));
      ASSERT_EQ(f.exit, 0) << f.err;
      const Json got = Json::parse(f.out);
      EXPECT_EQ(got["epsilon"], expected["epsilon"]);
      EXPECT_EQ(got["test_accuracy"], expected["test_accuracy"]);
      for (const char* name : {"model.safetensors", "privacy.json", "metrics.jsonl", "config.toml"})
        EXPECT_EQ(file(out + "/release/" + name), file(std::string("whole/release/") + name))
            << name << " of run " << i;
      EXPECT_FALSE(fs::exists(folder_ / (out + "/private/key")));
      fs::remove_all(folder_ / out);
    }
    EXPECT_GE(killed_in_training, 2 * times / 5);
  }
};

TEST_F(CliKilled, AtTwentyRandomMomentsItEndsTheSame) {
  kill_often([this](const std::string& out) { return training(out); }, 20, kCrashSteps);
}

TEST_F(CliKilled, OnTextsItEndsTheSame) {
  kill_often([this](const std::string& out) { return training_on_texts(out); }, 10, 60);
}

TEST_F(CliCrash, ADamagedCheckpointIsNamedAndTheOneBeforeItUsed) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  interrupt_at("run", 50);
  const fs::path newest = newest_checkpoint_file(folder_ / "run");
  damage(newest);
  const Finished f = resume("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find(newest.filename().string() + ": damaged"), std::string::npos) << f.err;
  EXPECT_EQ(file("run/release/model.safetensors"), file("whole/release/model.safetensors"));
  EXPECT_EQ(file("run/release/privacy.json"), file("whole/release/privacy.json"));
}

/// As a kill while a picture is drawn, or a file is replaced, leaves them.
TEST_F(CliCrash, HalfWrittenFilesAreGoneAfterAResume) {
  interrupt_at("run", 50);
  const std::vector<std::string> left = {"release/.curves.png.new-77", "release/.privacy.json.new",
                                         "private/.ledger.new", "private/.rows.new-9",
                                         "release/.report.html.new-12-1"};
  for (const std::string& name : left) write_text(folder_ / ("run/" + name), "half");
  for (const char* const name : {".owners", ".news", ".a.newer"})
    write_text(folder_ / (std::string("run/private/") + name), "a note");
  ASSERT_EQ(resume("run").exit, 0);
  for (const std::string& name : left) EXPECT_FALSE(fs::exists(folder_ / ("run/" + name))) << name;
  for (const char* const name : {".owners", ".news", ".a.newer"})
    EXPECT_TRUE(fs::exists(folder_ / (std::string("run/private/") + name))) << name;
  const Finished verified = run_cudp(folder_, {"verify", folder_ / "run"});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
}

TEST_F(CliCrash, ChangedFlagsAreRefusedOnResume) {
  interrupt_at("run", 20);
  const Finished f =
      run_cudp(folder_, {"train", "--resume", folder_ / "run", "--lr", "0.02", "--quiet"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("--lr: expected 0.01 as in the run being resumed, found 0.02"),
            std::string::npos)
      << f.err;
  // Other data is not the run's data.
  write_small_table(folder_, 300);
  const Finished other = resume("run");
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("training examples as in the run"), std::string::npos) << other.err;
}

/// What is typed counts for a run that is complete, too.
TEST_F(CliCrash, ChangedFlagsAreRefusedWhereTheRunIsComplete) {
  Arguments job = training("run");
  std::ranges::replace(job, std::string("--out"), std::string("--resume-or-start"));
  const Finished first = run_cudp(folder_, job);
  ASSERT_EQ(first.exit, 0) << first.err;
  const Finished same = run_cudp(folder_, job);
  EXPECT_EQ(same.exit, 0) << same.err;
  EXPECT_EQ(same.out, first.out);
  const Finished bare = resume("run");
  EXPECT_EQ(bare.exit, 0) << bare.err;
  const auto refused = [&](const Arguments& more, const std::string& what) {
    const Finished f = run_cudp(folder_, with(job, more));
    EXPECT_EQ(f.exit, 2) << what;
    EXPECT_EQ(f.out, "");
    EXPECT_TRUE(f.err.starts_with("cudp: " + what)) << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
  };
  refused({"--lr", "0.02"}, "--lr: expected 0.01 as in the run being resumed, found 0.02");
  refused({"--epsilon", "4"}, "--epsilon: expected 3");
  refused({"--dataset", "glyphs"}, "--dataset: expected \"small.csv\"");
  refused({"--preset", "glyphs-cnn"}, "--");
  refused({"--clip", "0.5"}, "--clip: expected");
  // Where and how it runs does not matter to the result.
  EXPECT_EQ(run_cudp(folder_, with(job, {"--threads", "2", "--checkpoint-every", "3"})).exit, 0);
}

TEST_F(CliCrash, AMovedTableIsTheSameData) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  interrupt_at("run", 50);
  fs::create_directory(folder_ / "elsewhere");
  fs::rename(table_.table, folder_ / "elsewhere/small.csv");
  const Finished f = run_cudp(folder_, {"train", "--resume", folder_ / "run", "--dataset",
                                        folder_ / "elsewhere/small.csv", "--quiet", "--json"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(file("run/release/model.safetensors"), file("whole/release/model.safetensors"));
}

/// Copies of a checkpoint or a ledger with other numbers and right checksums.
TEST_F(CliCrash, FilesThatTheRunDidNotWriteAreRefused) {
  interrupt_at("run", 50);
  const fs::path path = newest_checkpoint_file(folder_ / "run");
  const std::string written = content_of(path);
  Checkpoint forged = decode_checkpoint(read_authenticated(path).content, path.string());
  forged.training.method.numbers["plan"]["sensitivity"] = 0.1;
  write_authenticated(path, "checkpoint", encode_checkpoint(forged),
                      Authenticator(key_from_seed(1)));
  Finished f = resume("run");
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("found one that it did not write"), std::string::npos) << f.err;
  write_text(path, written);

  const fs::path ledger = folder_ / "run/private/ledger";
  const std::string charged = content_of(ledger);
  write_text(ledger, read_authenticated(ledger).content);
  f = resume("run");
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("private/ledger: expected the file that this run wrote"), std::string::npos)
      << f.err;
  write_text(ledger, charged);
  EXPECT_EQ(resume("run").exit, 0);
}

/// An attacker who copies the folder learns nothing from a second resume.
TEST_F(CliCrash, ACopiedRunEndsTheSame) {
  interrupt_at("run", 50);
  fs::copy(folder_ / "run", folder_ / "copy", fs::copy_options::recursive);
  ASSERT_EQ(resume("run").exit, 0);
  ASSERT_EQ(resume("copy").exit, 0);
  EXPECT_EQ(file("copy/release/model.safetensors"), file("run/release/model.safetensors"));
  EXPECT_EQ(file("copy/release/privacy.json"), file("run/release/privacy.json"));
}

TEST_F(CliCrash, OtherArithmeticIsRefusedOnResumeUnlessTheKeyIsGone) {
  if (best_simd_level() == SimdLevel::baseline) GTEST_SKIP() << "there is one level only";
  interrupt_at("run", 20);
  ::setenv("CUDP_SIMD_LEVEL", "baseline", 1);
  const Finished refused = resume("run");
  std::filesystem::remove(folder_ / "run/private/key");
  const Finished charged = resume("run");
  ::unsetenv("CUDP_SIMD_LEVEL");
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("found cpu baseline"), std::string::npos) << refused.err;
  ASSERT_EQ(charged.exit, 0) << charged.err;
  EXPECT_NE(charged.err.find("key is lost"), std::string::npos) << charged.err;
}

TEST_F(CliCrash, AResumeMayRepeatTheCommandThatStartedTheRun) {
  interrupt_at("run", 20);
  const Finished elsewhere =
      run_cudp(folder_, {"train", "--resume", folder_ / "run", "--out", folder_ / "b"});
  EXPECT_EQ(elsewhere.exit, 2);
  EXPECT_NE(elsewhere.err.find("--out"), std::string::npos) << elsewhere.err;
  std::vector<std::string> again = training("run");
  again.insert(again.end(), {"--resume", folder_ / "run"});
  const Finished f = run_cudp(folder_, again);
  EXPECT_EQ(f.exit, 0) << f.err;
}

TEST_F(CliCrash, AnInterruptLeavesACheckpointAndSaysHowToGoOn) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  const Finished f = signal_at(training("run"), "run", 30, SIGTERM);
  EXPECT_EQ(f.exit, 75);
  EXPECT_EQ(f.out, "");
  EXPECT_NE(f.err.find("continue with: cudp train --resume " + (folder_ / "run")),
            std::string::npos)
      << f.err;
  ASSERT_EQ(resume("run").exit, 0);
  EXPECT_EQ(file("run/release/model.safetensors"), file("whole/release/model.safetensors"));
  EXPECT_EQ(file("run/release/metrics.jsonl"), file("whole/release/metrics.jsonl"));
}

}  // namespace
}  // namespace cudp

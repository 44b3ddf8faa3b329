#include <cstdlib>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/common/simd_level.hpp"
#include "privacy/ledger.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/seal.hpp"
#include "tests/support/cudp_process.hpp"

// A run that is killed at any moment, or loses files, goes on to the same end, or says why not.

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 150;

class CliCrash : public testing::Test {
 protected:
  /// Short steps and many checkpoints: there is always one being written.
  std::vector<std::string> training(const std::string& out) const {
    return {"train",
            "--dataset",
            table_.table,
            "--schema",
            table_.schema,
            "--test-data",
            table_.test,
            "--test-data-is-public",
            "--size-is-public",
            "--model",
            "mlp",
            "--seed",
            "11",
            "--epsilon",
            "3",
            "--delta",
            "1e-5",
            "--batch",
            "256",
            "--steps",
            std::to_string(kSteps),
            "--optimizer",
            "adam",
            "--lr",
            "0.01",
            "--ema",
            "0.9",
            "--checkpoint-every",
            "10",
            "--threads",
            "1",
            "--device",
            "cpu",
            "--quiet",
            "--json",
            "--out",
            folder_ / out};
  }
  /// A recurrent network on the built-in sentences.
  std::vector<std::string> training_on_texts(const std::string& out) const {
    return {"train",
            "--preset",
            "sentences-lstm",
            "--size-is-public",
            "--seed",
            "11",
            "--batch",
            "256",
            "--steps",
            "60",
            "--ema",
            "0.9",
            "--threads",
            "1",
            "--device",
            "cpu",
            "--quiet",
            "--json",
            "--out",
            folder_ / out,
            "--checkpoint-every",
            "5"};
  }
  Finished resume(const std::string& out) const {
    return run_cudp(folder_, {"train", "--resume", folder_ / out, "--quiet", "--json"});
  }
  Finished resume_with_fresh_noise(const std::string& out) const {
    return run_cudp(folder_,
                    {"train", "--resume", folder_ / out, "--fresh-noise", "--quiet", "--json"});
  }
  privacy::Ledger ledger_of(const std::string& out) const {
    const std::string path = folder_ / (out + "/private/ledger");
    return privacy::Ledger::from_text(read_sealed(path).content, path);
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }

  /// Waits until a run has a checkpoint at this step or a later one, or is complete.
  void wait_for_step(const std::string& out, int step) const {
    const auto reached = [&] {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder_ / (out + "/private"), error)) {
        const std::string name = entry.path().filename().string();
        if (name == "result.json") return true;
        if (name.starts_with("checkpoint-") && std::stoi(name.substr(11)) >= step) return true;
      }
      return false;
    };
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    while (!reached() && Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  /// Starts a run and kills it when it has a checkpoint at this step or a later one.
  void interrupt_at(const std::string& out, int step) const {
    CudpProcess process(folder_, training(out));
    wait_for_step(out, step);
    process.signal(SIGKILL);
    ASSERT_EQ(process.wait().exit, -1);
    ASSERT_TRUE(fs::exists(folder_ / (out + "/private/key")));
  }

  /// Kills a run of `steps` at random moments, `times` over, and goes on with it each time.
  template <class Arguments>
  void kill_often(const Arguments& training, int times, int steps) const {
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

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(CliCrash, KilledAtTwentyRandomMomentsItEndsTheSame) {
  kill_often([this](const std::string& out) { return training(out); }, 20, kSteps);
}

TEST_F(CliCrash, KilledOnTextsItEndsTheSame) {
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

TEST_F(CliCrash, WithoutItsKeyARunPaysAgainAndStaysWithinTheBudget) {
  interrupt_at("run", 50);
  // So that some steps are repeated for certain.
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  fs::remove(folder_ / "run/private/key");
  const Finished f = resume("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("key is gone"), std::string::npos) << f.err;
  const Json result = Json::parse(f.out);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  // The budget was for kSteps steps in all: what was authorised before the loss is gone.
  EXPECT_LT(result["steps"], kSteps);
  EXPECT_EQ(certificate["steps"], kSteps);
  // Where it stopped may have been chosen by what it showed: the budget is what holds.
  EXPECT_EQ(certificate["epsilon"], 3.0);
}

TEST_F(CliCrash, WithoutItsKeyASpentBudgetIsNotExceeded) {
  interrupt_at("run", 50);
  const std::string path = folder_ / "run/private/ledger";
  privacy::Ledger ledger = privacy::Ledger::from_text(read_sealed(path).content, path);
  ledger.authorise(ledger.authorised_until(), kSteps, ledger.releases().back().mechanism);
  write_text(path, ledger.to_text());
  fs::remove(folder_ / "run/private/key");
  const Finished f = resume("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("the budget is spent"), std::string::npos) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/release/model.safetensors"));
}

/// Its number of steps would follow from what it showed, and nothing would bound it.
TEST_F(CliCrash, WithoutItsKeyAndBudgetARunEnds) {
  std::vector<std::string> by_sigma = training("run");
  *std::find(by_sigma.begin(), by_sigma.end(), "--epsilon") = "--sigma";
  CudpProcess process(folder_, by_sigma);
  wait_for_step("run", 50);
  process.signal(SIGKILL);
  process.wait();
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  fs::remove(folder_ / "run/private/key");
  const Finished f = resume("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("without --epsilon nothing bounds what repeated steps spend"),
            std::string::npos)
      << f.err;
}

TEST_F(CliCrash, WithoutLedgerAndKeyNothingIsAssumed) {
  ASSERT_EQ(run_cudp(folder_, training("whole")).exit, 0);
  interrupt_at("run", 50);
  const std::string ledger = file("run/private/ledger");
  const std::string key = file("run/private/key");
  fs::remove(folder_ / "run/private/ledger");
  fs::remove(folder_ / "run/private/key");
  Finished f = resume("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("what was spent is not known"), std::string::npos) << f.err;
  write_text(folder_ / "run/private/ledger", ledger.substr(0, ledger.size() - 20));
  EXPECT_EQ(resume("run").exit, 3);
  // Neither where the key is there and another one is asked for.
  fs::remove(folder_ / "run/private/ledger");
  write_text(folder_ / "run/private/key", key);
  f = resume_with_fresh_noise("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("expected the ledger, found none, and fresh noise is asked for"),
            std::string::npos)
      << f.err;
  EXPECT_EQ(file("run/private/key"), key);
  // With the key, repeated steps release nothing new.
  f = resume("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(file("run/release/privacy.json"), file("whole/release/privacy.json"));
  EXPECT_EQ(file("run/release/model.safetensors"), file("whole/release/model.safetensors"));
}

/// With the run's own key, what is repeated may be less than what was lost with the ledger.
TEST_F(CliCrash, AfterALostLedgerThereIsNoOtherKey) {
  interrupt_at("run", 50);
  fs::remove(folder_ / "run/private/ledger");
  {
    CudpProcess process(folder_, {"train", "--resume", folder_ / "run", "--quiet", "--json"});
    while (!fs::exists(folder_ / "run/private/ledger"))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    process.signal(SIGKILL);
    process.wait();
  }
  if (fs::exists(folder_ / "run/private/result.json")) GTEST_SKIP() << "it was faster";
  const Finished f = resume_with_fresh_noise("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("expected a ledger that was never lost"), std::string::npos) << f.err;
  EXPECT_EQ(resume("run").exit, 0);
}

/// The ledger of an earlier moment, genuine and sealed, where a checkpoint or what was reported
/// knows more.
TEST_F(CliCrash, AnOlderLedgerIsNotTakenForTheRuns) {
  const fs::path folder = folder_ / "run/private";
  const fs::path earlier = folder_ / "earlier";
  {
    CudpProcess process(folder_, training("run"));
    wait_for_step("run", 20);
    process.signal(SIGSTOP);
    fs::copy(folder, earlier);
    process.signal(SIGCONT);
    wait_for_step("run", 70);
    process.signal(SIGKILL);
    process.wait();
  }
  fs::copy_file(earlier / "ledger", folder / "ledger", fs::copy_options::overwrite_existing);
  for (const Finished& f : {resume("run"), resume_with_fresh_noise("run")}) {
    EXPECT_EQ(f.exit, 3);
    EXPECT_NE(f.err.find("lacks what a checkpoint knows"), std::string::npos) << f.err;
  }
  // With the checkpoints of that moment, too, the released metrics still know.
  fs::remove_all(folder);
  fs::copy(earlier, folder);
  const Finished f = resume_with_fresh_noise("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("which metrics.jsonl shows, found an older ledger"), std::string::npos)
      << f.err;
  // Under its own key it releases what it released.
  EXPECT_EQ(resume("run").exit, 0);
}

TEST_F(CliCrash, AnotherRunsKeyIsNotTakenForItsOwn) {
  interrupt_at("run", 50);
  std::string key = file("run/private/key");
  ASSERT_EQ(
      run_cudp(folder_, {"train",          "--dataset",   table_.table, "--schema",
                         table_.schema,    "--test-data", table_.test,  "--test-data-is-public",
                         "--model",        "logistic",    "--epsilon",  "1",
                         "--delta",        "1e-5",        "--batch",    "64",
                         "--steps",        "5",           "--quiet",    "--out",
                         folder_ / "other"})
          .exit,
      0);
  key[20] = static_cast<char>(key[20] ^ 1);
  write_text(folder_ / "run/private/key", key);
  const Finished f = resume("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("key is gone"), std::string::npos) << f.err;
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

/// The same noise on two sums tells their difference: one label changed is enough.
TEST_F(CliCrash, OtherDataIsRefusedOnResumeOrPaidFor) {
  interrupt_at("run", 50);
  const std::string table = content_of(table_.table);
  std::string other = table;
  const std::size_t at = other.rfind(",yes\n");
  other.replace(at, 5, ",no\n");
  write_text(table_.table, other);
  const Finished refused = resume("run");
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("expected the training data that the run began with"),
            std::string::npos)
      << refused.err;
  fs::remove(
      newest_checkpoint_file(folder_ / "run"));  // so that some steps are repeated for certain
  const Finished paid = run_cudp(
      folder_, {"train", "--resume", folder_ / "run", "--fresh-noise", "--quiet", "--json"});
  ASSERT_EQ(paid.exit, 0) << paid.err;
  EXPECT_NE(paid.err.find("paid again"), std::string::npos) << paid.err;
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(certificate["steps"], kSteps);
  EXPECT_LT(Json::parse(paid.out)["steps"], kSteps);
  EXPECT_LE(certificate["epsilon"], 3.0);
}

struct RepeatedSteps {
  const char* name;
  std::vector<std::string> settings;
};
class FreshNoise : public CliCrash, public testing::WithParamInterface<RepeatedSteps> {};

/// Every release that is repeated under another key is charged again, whatever the method.
TEST_P(FreshNoise, RepeatedStepsAreChargedAgain) {
  std::vector<std::string> arguments = training("run");
  arguments.insert(arguments.end(), GetParam().settings.begin(), GetParam().settings.end());
  {
    CudpProcess process(folder_, arguments);
    wait_for_step("run", 50);
    process.signal(SIGKILL);
    process.wait();
  }
  ASSERT_TRUE(fs::exists(folder_ / "run/private/key"));
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  const fs::path path = newest_checkpoint_file(folder_ / "run");
  const Checkpoint c = decode_checkpoint(read_sealed(path).content, path.string());
  const auto count = [](const privacy::Ledger& ledger) {
    std::uint64_t releases = 0;
    for (const privacy::Release& release : ledger.releases()) releases += release.count;
    return releases;
  };
  const std::uint64_t before = count(ledger_of("run"));
  const std::uint64_t repeated = ledger_of("run").authorised_until() - c.training.step;
  ASSERT_GE(repeated, 10u);
  const Finished f = resume_with_fresh_noise("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto steps = Json::parse(f.out)["steps"].get<std::uint64_t>();
  EXPECT_LT(steps, kSteps);  // the budget was for kSteps in all
  EXPECT_EQ(count(ledger_of("run")), before + steps - c.training.step);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(certificate["steps"], c.training.step + repeated + steps - c.training.step);
  EXPECT_EQ(certificate["epsilon"], 3.0);
  EXPECT_EQ(certificate["releases_repeated"], repeated);
  const auto verify = [&](const char* run) { return run_cudp(folder_, {"verify", folder_ / run}); };
  fs::copy(folder_ / "run/release", folder_ / "alone");  // without the ledger
  for (const char* run : {"run", "alone"}) {
    const Finished honest = verify(run);
    EXPECT_EQ(honest.exit, 0) << honest.out << honest.err;
  }
  // One repeated release more or less is noticed: by the ledger, and by a method that lists a noisy
  // count for each step from the certificate alone.
  for (const std::uint64_t other : {repeated - 1, repeated + 1}) {
    Json changed = certificate;
    changed["releases_repeated"] = other;
    for (const char* release : {"run/release", "alone"})
      write_text(fs::path(folder_ / release) / "privacy.json", changed.dump(2));
    EXPECT_EQ(verify("run").exit, 1);
    EXPECT_EQ(verify("alone").exit, certificate.contains("quantile") ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, FreshNoise,
    testing::Values(
        RepeatedSteps{"dpsgd", {}}, RepeatedSteps{"quantile", {"--method", "dpsgd-quantile"}},
        RepeatedSteps{"adaclip", {"--method", "adaclip", "--optimizer", "sgd"}},
        RepeatedSteps{
            "decay", {"--method", "dpsgd-decay", "--noise-decay", "0.02", "--fresh-noise-allowed"}},
        RepeatedSteps{"adp",
                      {"--method", "adp-sgd", "--schedule", "cosine", "--fresh-noise-allowed"}}),
    [](const auto& info) { return info.param.name; });

/// The accountant's bound of what was charged is none then (tests/privacy/fresh_key_test.cpp).
TEST_F(CliCrash, WhereNoiseDiffersByStepOnlyAFilterAllowsForAnotherKey) {
  std::vector<std::string> arguments = training("run");
  *std::find(arguments.begin(), arguments.end(), std::to_string(kSteps)) = "40";
  arguments.insert(arguments.end(), {"--eval-every", "0", "--checkpoint-every", "5", "--method",
                                     "dpsgd-decay", "--noise-decay", "0.02"});
  {
    CudpProcess process(folder_, arguments);
    wait_for_step("run", 10);
    process.signal(SIGKILL);
    process.wait();
  }
  const std::string ledger = file("run/private/ledger");
  const Finished f = resume_with_fresh_noise("run");
  EXPECT_EQ(f.exit, 3);
  EXPECT_NE(f.err.find("--fresh-noise-allowed"), std::string::npos) << f.err;
  EXPECT_EQ(file("run/private/ledger"), ledger);
  EXPECT_EQ(resume("run").exit, 0);

  *std::find(arguments.begin(), arguments.end(), folder_ / "run") = folder_ / "filtered";
  arguments.push_back("--fresh-noise-allowed");
  ASSERT_EQ(run_cudp(folder_, arguments).exit, 0);
  const Json certificate = Json::parse(file("filtered/release/privacy.json"));
  EXPECT_EQ(certificate["epsilon"], 3.0);
  EXPECT_EQ(certificate["steps"], 40);
  EXPECT_EQ(certificate["order_fixed_before"], true);
  EXPECT_TRUE(ledger_of("filtered").budget());
  // Little more noise than without.
  const Json without = Json::parse(file("run/release/privacy.json"));
  EXPECT_GT(certificate["sigma"], without["sigma"]);
  EXPECT_LT(certificate["sigma"], 1.2 * without["sigma"].get<double>());
}

/// Killed while it changes keys, a run still knows what was spent.
TEST_F(CliCrash, KilledWhileItTakesAFreshKeyARunForgetsNothing) {
  for (int i = 0; i < 6; ++i) {
    const std::string out = "run" + std::to_string(i);
    interrupt_at(out, 30);
    fs::remove(newest_checkpoint_file(folder_ / out));
    const privacy::Ledger charged = ledger_of(out);
    {
      CudpProcess process(
          folder_, {"train", "--resume", folder_ / out, "--fresh-noise", "--quiet", "--json"});
      std::this_thread::sleep_for(std::chrono::milliseconds(3 + 4 * i));
      process.signal(SIGKILL);
      process.wait();
    }
    EXPECT_TRUE(ledger_of(out).continues(charged));
    const Finished f = resume(out);
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_TRUE(ledger_of(out).continues(charged));
    EXPECT_LE(Json::parse(file(out + "/release/privacy.json"))["epsilon"], 3.0);
    fs::remove_all(folder_ / out);
  }
}

/// The bound on a batch follows from the first data's noisy size.
TEST_F(CliCrash, MoreRowsThanTheRunWasPlannedForAreNotSummed) {
  std::vector<std::string> a = training("run");
  std::erase(a, "--size-is-public");
  CudpProcess process(folder_, a);
  wait_for_step("run", 50);
  process.signal(SIGKILL);
  process.wait();
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  write_small_table(folder_, 60'000);
  const Finished f =
      run_cudp(folder_, {"train", "--resume", folder_ / "run", "--fresh-noise", "--quiet"});
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.err.find("larger than the plan allows for"), std::string::npos) << f.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/release/model.safetensors"));
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
  Checkpoint forged = decode_checkpoint(read_sealed(path).content, path.string());
  forged.training.method.numbers["plan"]["sensitivity"] = 0.1;
  write_sealed(path, "checkpoint", encode_checkpoint(forged), Seal(key_from_seed(1)));
  Finished f = resume("run");
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("found one that it did not write"), std::string::npos) << f.err;
  write_text(path, written);

  const fs::path ledger = folder_ / "run/private/ledger";
  const std::string charged = content_of(ledger);
  write_text(ledger, read_sealed(ledger).content);
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
  EXPECT_NE(charged.err.find("key is gone"), std::string::npos) << charged.err;
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
  CudpProcess process(folder_, training("run"));
  wait_for_step("run", 30);
  process.signal(SIGTERM);
  const Finished f = process.wait();
  EXPECT_EQ(f.exit, 1);
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

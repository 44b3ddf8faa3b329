// A run whose key or ledger was lost pays again for what it repeats, or says why it cannot.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/run/checkpoint.hpp"
#include "tests/support/crash_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

TEST_F(CliCrash, WithoutItsKeyARunPaysAgainAndStaysWithinTheBudget) {
  interrupt_at("run", 50);
  // So that some steps are repeated for certain.
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  fs::remove(folder_ / "run/private/key");
  const Finished f = resume("run");
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("key is lost"), std::string::npos) << f.err;
  const Json result = Json::parse(f.out);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  // The budget was for kCrashSteps steps in all: what was authorised before the loss is gone.
  EXPECT_LT(result["steps"], kCrashSteps);
  EXPECT_EQ(certificate["steps"], kCrashSteps);
  // Where it stopped may have been chosen by what it showed: the budget is what holds.
  EXPECT_EQ(certificate["epsilon"], 3.0);
}

TEST_F(CliCrash, WithoutItsKeyASpentBudgetIsNotExceeded) {
  interrupt_at("run", 50);
  const std::string path = folder_ / "run/private/ledger";
  privacy::Ledger ledger = privacy::Ledger::from_text(read_authenticated(path).content, path);
  ledger.authorise(ledger.authorised_until(), kCrashSteps, ledger.releases().back().mechanism);
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
  signal_at(by_sigma, "run", 50, SIGKILL);
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
  EXPECT_NE(f.err.find("expected the ledger, found none, and fresh noise was requested"),
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

/// The ledger of an earlier moment, genuine and with its code, where a checkpoint or what was
/// reported knows more.
TEST_F(CliCrash, AnOlderLedgerIsNotTakenForTheRuns) {
  const fs::path folder = folder_ / "run/private";
  const fs::path earlier = folder_ / "earlier";
  int attempts = 0;
  do {  // until a run is killed before it is complete
    ASSERT_LT(attempts++, 10);
    fs::remove_all(folder_ / "run");
    fs::remove_all(earlier);
    CudpProcess process(folder_, training("run"));
    wait_for_step("run", 20);
    process.signal(SIGSTOP);
    fs::copy(folder, earlier);
    process.signal(SIGCONT);
    wait_for_step("run", 70);
    process.signal(SIGKILL);
    process.wait();
  } while (fs::exists(folder / "result.json"));
  fs::copy_file(earlier / "ledger", folder / "ledger", fs::copy_options::overwrite_existing);
  for (const Finished& f : {resume("run"), resume_with_fresh_noise("run")}) {
    EXPECT_EQ(f.exit, 3);
    EXPECT_NE(f.err.find("without charges that a checkpoint has"), std::string::npos) << f.err;
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
  EXPECT_NE(f.err.find("key is lost"), std::string::npos) << f.err;
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
  EXPECT_NE(paid.err.find("paid for again"), std::string::npos) << paid.err;
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(certificate["steps"], kCrashSteps);
  EXPECT_LT(Json::parse(paid.out)["steps"], kCrashSteps);
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
  signal_at(arguments, "run", 50, SIGKILL);
  ASSERT_TRUE(fs::exists(folder_ / "run/private/key"));
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  const fs::path path = newest_checkpoint_file(folder_ / "run");
  const Checkpoint c = decode_checkpoint(read_authenticated(path).content, path.string());
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
  EXPECT_LT(steps, kCrashSteps);  // the budget was for kCrashSteps in all
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
      write_text(fs::path(folder_ / release) / "privacy.json", changed.dump(2) + "\n");
    for (const char* run : {"run", "alone"})  // pages that say the same
      EXPECT_EQ(run_cudp(folder_, {"report", folder_ / run}).exit, 0);
    EXPECT_EQ(verify("run").exit, 1);
    // Where noise differs by step, the list of releases may tell, too.
    if (!certificate.contains("noise_over_time")) {
      EXPECT_EQ(verify("alone").exit, certificate.contains("quantile") ? 1 : 0);
    }
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
  *std::find(arguments.begin(), arguments.end(), std::to_string(kCrashSteps)) = "40";
  *std::find(arguments.begin(), arguments.end(), "rdp") = "pld";  // a filter is dearer
  arguments.insert(arguments.end(), {"--eval-every", "0", "--checkpoint-every", "5", "--method",
                                     "dpsgd-decay", "--noise-decay", "0.02"});
  signal_at(arguments, "run", 10, SIGKILL);
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

/// With --epsilon 8 and a sigma that spends less: one place decides what is stated after a key
/// was lost, and all statements go through it.
TEST_F(CliCrash, WithoutItsKeyARunStatesItsBudgetAlone) {
  std::vector<std::string> by_sigma = with(training("run"), {"--sigma", "8"});
  *std::find(by_sigma.begin(), by_sigma.end(), "3") = "8";
  signal_at(by_sigma, "run", 50, SIGKILL);
  const Json planned = Json::parse(file("run/release/privacy.json"));
  EXPECT_LT(planned["epsilon"], 4.0);
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  fs::remove(folder_ / "run/private/key");
  const Finished f = run_cudp(folder_, {"train", "--resume", folder_ / "run", "--json"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("epsilon 8 at delta"), std::string::npos) << f.err;
  EXPECT_EQ(Json::parse(f.out)["epsilon"], 8.0);
  const Json certificate = Json::parse(file("run/release/privacy.json"));
  EXPECT_EQ(certificate["epsilon"], 8.0);
  EXPECT_EQ(certificate["keys_lost"], 1);
  ASSERT_TRUE(certificate["groups"].is_string()) << certificate["groups"];
  EXPECT_NE(certificate["groups"].get<std::string>().find("not stated"), std::string::npos);
  const std::vector<std::string> rows = lines_of(file("run/release/metrics.jsonl"));
  EXPECT_EQ(Json::parse(rows.back())["epsilon"], 8.0);
  const Finished told = run_cudp(folder_, {"account", folder_ / "run"});
  EXPECT_NE(told.out.find("Several rows of one person have a larger epsilon"), std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("key of the noise was lost"), std::string::npos) << told.out;
  const auto verify = [&] { return run_cudp(folder_, {"verify", folder_ / "run"}); };
  EXPECT_EQ(verify().exit, 0) << verify().out;

  // What such runs used to state.
  const std::string release = folder_ / "run/release/";
  const std::string metrics = file("run/release/metrics.jsonl");
  Json groups = certificate;
  groups["groups"] = {{{"examples", 1}, {"epsilon", 0.5}}, {{"examples", 2}, {"epsilon", 1.1}}};
  Json low = certificate;
  low["epsilon"] = 4.0;  // more than the releases come to
  Json one_more = certificate;
  one_more["keys_lost"] = 2;
  Json none = certificate;
  none.erase("keys_lost");
  for (const auto& [forged, why] :
       {std::pair{groups, "groups: expected no bounds after a key was lost"},
        {low, "equal to the settings' after a key was"},
        {one_more, "keys_lost: expected 1, found 2"},
        {none, "keys_lost: expected 1, found 0"}}) {
    write_text(release + "privacy.json", forged.dump(2));
    const Finished found = verify();
    EXPECT_EQ(found.exit, 1);
    EXPECT_NE(found.out.find(why), std::string::npos) << found.out;
  }
  write_text(release + "privacy.json", certificate.dump(2));
  Json row = Json::parse(rows.back());
  row["epsilon"] = 4.0;
  write_text(release + "metrics.jsonl", metrics + row.dump() + "\n");
  EXPECT_EQ(verify().exit, 1);
}

/// The noisy size that the run was planned for is the first data's. Nothing rests on the number of
/// rows: how many examples a batch has shows in nothing.
TEST_F(CliCrash, MoreRowsThanTheRunWasPlannedForAreTrainedOn) {
  std::vector<std::string> a = training("run");
  std::erase(a, "--size-is-public");
  signal_at(a, "run", 50, SIGKILL);
  fs::remove(newest_checkpoint_file(folder_ / "run"));
  write_small_table(folder_, 60'000);
  const Finished f =
      run_cudp(folder_, {"train", "--resume", folder_ / "run", "--fresh-noise", "--quiet"});
  EXPECT_EQ(f.exit, 0) << f.err;
  EXPECT_TRUE(fs::exists(folder_ / "run/release/model.safetensors"));
  const Finished found = run_cudp(folder_, {"verify", folder_ / "run"});
  EXPECT_EQ(found.exit, 0) << found.out;
}

}  // namespace
}  // namespace cudp

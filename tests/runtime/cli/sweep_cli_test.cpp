// cudp sweep: runs of all combinations of settings, on data that are read once.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/cli/run_certificate.hpp"
#include "runtime/sweep/table.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class SweepCli : public testing::Test {
 protected:
  /// Returns a sweep of the table. Its test rows are public if `more` says so.
  Arguments sweep(const Arguments& more, const Arguments& size = {"--size-is-public"},
                  const std::string& steps = "20") const {
    return with(with({"sweep", "--dataset", table_.table, "--schema", table_.schema, "--test-data",
                      table_.test},
                     args("--delta 1e-5 --batch 64 --device cpu --quiet")),
                with(with({"--steps", steps}, size), more));
  }
  std::string out(const std::string& name = "sweep") const { return folder_ / name; }
  std::string text(const std::string& file, const std::string& name = "sweep") const {
    return content_of(out(name) + "/" + file);
  }
  nlohmann::json certificate(const std::string& run) const {
    return nlohmann::json::parse(text("runs/" + run + "/release/privacy.json"));
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(SweepCli, TrainsEachCombinationInAFolderOfItsOwn) {
  const Finished f = run_cudp(folder_, sweep({"--epsilon", "1,3", "--lr", "0.1,0.5", "--repeats",
                                              "2", "--test-data-is-public", "--out", out()}));
  ASSERT_EQ(f.exit, 0) << f.err;
  std::set<std::string> models;
  for (int i = 1; i <= 8; ++i) {
    const std::string run = "00" + std::to_string(i);
    EXPECT_EQ(certificate(run)["status"], "finished");
    models.insert(text("runs/" + run + "/release/model.safetensors"));
    EXPECT_TRUE(fs::exists(out() + "/runs/" + run + "/private/ledger"));
  }
  EXPECT_EQ(models.size(), 8u) << "two runs have the same noise";
  EXPECT_NEAR(certificate("001")["epsilon"].get<double>(), 1.0, 0.01);
  EXPECT_NEAR(certificate("008")["epsilon"].get<double>(), 3.0, 0.01);
  const std::vector<std::string> lines = lines_of(text("release/sweep.csv"));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].substr(0, 66),
            "epsilon,lr,runs,spent_epsilon,spent_delta,test_accuracy_mean,test_");
  EXPECT_TRUE(lines[1].starts_with("1,0.1,2,")) << lines[1];
  EXPECT_TRUE(lines[4].starts_with("3,0.5,2,")) << lines[4];
  EXPECT_EQ(lines_of(text("release/runs.csv")).size(), 9u);
  const auto json = nlohmann::json::parse(text("release/sweep.json"));
  EXPECT_EQ(json["cells"].size(), 4u);
  EXPECT_GT(json["epsilon_of_all_runs"].get<double>(), 3.0);
  EXPECT_FALSE(fs::exists(out() + "/private/sweep.csv")) << "nothing of these runs is private";
  EXPECT_EQ(run_cudp(folder_, {"verify", out() + "/runs/003"}).exit, 0);
  // The total is that of `cudp account` for the runs.
  Arguments account = {"account", "--json"};
  for (int i = 1; i <= 8; ++i) account.push_back(out() + "/runs/00" + std::to_string(i));
  const auto all = nlohmann::json::parse(run_cudp(folder_, account).out);
  EXPECT_EQ(json["epsilon_of_all_runs"], all["as_chosen_on_the_way"]);
}

TEST_F(SweepCli, FinishedRunsAreNotRepeated) {
  const Arguments words = sweep({"--epsilon", "1,3", "--test-data-is-public", "--out", out()});
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  const auto time = fs::last_write_time(out() + "/runs/002/release/model.safetensors");
  fs::remove_all(out() + "/runs/001");
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  EXPECT_TRUE(fs::exists(out() + "/runs/001/private/result.json"));
  EXPECT_EQ(fs::last_write_time(out() + "/runs/002/release/model.safetensors"), time);
  EXPECT_EQ(run_cudp(folder_, {"sweep", "--resume", out(), "--quiet"}).exit, 0);
  const Finished other =
      run_cudp(folder_, sweep({"--epsilon", "1,4", "--test-data-is-public", "--out", out()}));
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("expected the settings of the sweep in it"), std::string::npos);
}

TEST_F(SweepCli, WhoseFolderCannotBeMadeSaysSoAtOnce) {
  write_text(folder_ / "file", "");
  const Finished f =
      run_cudp(folder_, sweep({"--epsilon", "1,2", "--out", folder_ / "file" + "/sweep"}));
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("expected a folder, found the file '" + (folder_ / "file") + "' above it"),
            std::string::npos)
      << f.err;
  EXPECT_EQ(f.err.find("waiting for the runs of another call"), std::string::npos) << f.err;
}

TEST_F(SweepCli, ARunThatWasKilledInItsLastMomentLeavesNoKey) {
  const Arguments words = sweep({"--epsilon", "1,3", "--out", out()});
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  // The process of the second run was killed when the run was complete, and its files were not
  // removed yet.
  const std::string run = out() + "/runs/002/private/";
  write_text(run + "key", "the key");
  write_text(run + "checkpoint-3", "of a run in progress");
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  EXPECT_TRUE(fs::exists(run + "result.json"));
  EXPECT_FALSE(fs::exists(run + "key"));
  EXPECT_FALSE(fs::exists(run + "checkpoint-3"));
}

TEST_F(SweepCli, AKilledSweepGoesOn) {
  const Arguments words = sweep({"--epsilon", "1,3", "--repeats", "2", "--test-data-is-public",
                                 "--eval-every", "0", "--out", out()},
                                {"--size-is-public"}, "60000");
  int interrupted = 0;
  for (const int signal : {SIGTERM, SIGINT, SIGKILL, SIGTERM, SIGTERM}) {
    CudpProcess process(folder_, words);
    process.wait_for_handler(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + 150 * interrupted));
    process.signal(signal);
    const Finished f = process.wait();
    if (f.exit == 0) break;
    EXPECT_EQ(f.exit, signal == SIGKILL ? -1 : 75) << f.err;
    ++interrupted;  // the next one waits for runs of a sweep that was killed outright
  }
  EXPECT_GT(interrupted, 0);
  const Finished f = run_cudp(folder_, words);
  ASSERT_EQ(f.exit, 0) << f.err;
  for (const char* run : {"001", "002", "003", "004"}) {
    EXPECT_EQ(certificate(run)["status"], "finished");
    EXPECT_EQ(certificate(run)["steps"], 60000);
    EXPECT_FALSE(certificate(run).contains("keys_lost"));
  }
}

/// A signal at any moment of a sweep whose runs are complete: it ends as complete, or as one that
/// the same command continues, and never by the signal.
TEST_F(SweepCli, ASignalNearTheEndDoesNotEndItByTheSignal) {
  const Arguments words = sweep({"--epsilon", "1", "--test-data-is-public", "--out", out()});
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  for (int i = 0; i < 30; ++i) {
    CudpProcess process(folder_, words);
    process.wait_for_handler(SIGTERM);
    std::this_thread::sleep_for(std::chrono::microseconds(700 * i));
    process.signal(SIGTERM);
    const Finished f = process.wait();
    EXPECT_TRUE(f.exit == 0 || f.exit == 75) << "after " << i << ": " << f.exit << " " << f.err;
  }
}

TEST_F(SweepCli, IsCheckedBeforeTheFirstRun) {
  const auto refused = [&](const Arguments& more, int code, const std::string& why) {
    const Finished f = run_cudp(folder_, sweep(with(more, {"--out", out("refused")})));
    EXPECT_EQ(f.exit, code) << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
    EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
    EXPECT_FALSE(fs::exists(out("refused")));
  };
  refused({"--epsilon", "1,300"}, 2, "the runs with epsilon = 300");
  refused({"--epsilon", "1", "--model", "logistic,resnot"}, 2, "resnot");
  refused({"--epsilon", "1", "--lr", "0.1,x"}, 2, "--lr");
  refused({"--epsilon", "1,1"}, 2, "each value once");
  refused({"--epsilon", "1", "--seed", "3", "--repeats", "2"}, 2, "--repeats");
  refused({"--epsilon", "1,3", "--total-epsilon", "3"}, 3, "the 2 runs together may spend");
  refused({"--epsilon", "1", "--share", "3/2"}, 2, "--share");
}

TEST_F(SweepCli, ExactFiguresOfPrivateRowsStayPrivate) {
  const Finished f = run_cudp(folder_, sweep({"--epsilon", "1,3", "--out", out()}, {}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(f.out.find("accuracy"), std::string::npos) << f.out;
  for (const char* file : {"sweep.csv", "runs.csv", "sweep.json"}) {
    EXPECT_EQ(text(std::string("release/") + file).find("accuracy"), std::string::npos);
    EXPECT_NE(text(std::string("private/") + file).find("accuracy"), std::string::npos);
    const auto mode = fs::status(out() + "/private/" + file).permissions();
    EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
  }
  EXPECT_FALSE(fs::exists(out() + "/release/sweep.png"));
  // Each run has counted its rows with noise of its own.
  EXPECT_NE(certificate("001")["noisy_values"], certificate("002")["noisy_values"]);
}

TEST_F(SweepCli, TheLegendOfManyCurvesLeavesRoomForThem) {
  const DrawnPictures drawn(folder_ / "drawn");
  const auto script = [&](const Arguments& lists) {
    fs::remove_all(out());
    const Finished f = run_cudp(
        folder_,
        sweep(with(lists, {"--test-data-is-public", "--out", out()}), {"--size-is-public"}, "1"));
    EXPECT_EQ(f.exit, 0) << f.err;
    return drawn.script("sweep.png");
  };
  const std::string few = script({"--epsilon", "1,3", "--lr", "0.1,0.5"});
  EXPECT_NE(few.find("height = 540\n"), std::string::npos) << few;
  EXPECT_NE(few.find("set title 'test accuracy'\n"), std::string::npos) << few;
  EXPECT_NE(few.find("set key outside bottom"), std::string::npos) << few;
  const std::string many = script({"--epsilon", "1,3", "--lr", "0.1,0.2,0.3,0.4,0.5,0.6", "--clip",
                                   "0.1,0.2,0.3,0.4", "--repeats", "2"});
  EXPECT_NE(many.find("height = 720\n"), std::string::npos) << many;  // 24 + 6 lines of 24
  EXPECT_NE(many.find("mean and standard deviation"), std::string::npos) << many;
  EXPECT_NE(many.find("set key outside right"), std::string::npos) << many;
  // The eighth curve has the first colour again, and another dash: no two look the same.
  EXPECT_NE(many.find("$data7 using 1:2:3 with yerrorlines lt 1 dt 2 "), std::string::npos) << many;
  EXPECT_EQ(many.find("lt 8"), std::string::npos) << "the colour of results without privacy";
}

TEST_F(SweepCli, ItsTableSaysWhyARunHasNoResult) {
  const Finished f = run_cudp(
      folder_, sweep({"--epsilon", "1,3", "--seed", "1", "--test-data-is-public", "--out", out()}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("1 run, not for release\n"), std::string::npos) << f.out;
  EXPECT_EQ(f.out.find("accuracy"), std::string::npos) << f.out;
  EXPECT_NE(text("release/runs.csv").find("not for release"), std::string::npos);

  const SweptRun missing{.folder = "runs/001", .status = "missing", .result = std::nullopt};
  SweptRun finished{.folder = "runs/002", .status = "finished", .result = RunResult{}};
  finished.result->for_release = true;
  SweptRun secret = finished;
  secret.result->for_release = false;
  const auto text_of = [](const std::vector<SweptRun>& runs) {
    SweepTable table;
    table.keys = {"lr"};
    table.cells = {{.settings = {"1"}, .runs = runs}};
    return rows_of(released_part(table)).front().second;
  };
  EXPECT_EQ(text_of({finished}), "1 run");
  EXPECT_EQ(text_of({finished, finished}), "2 runs");
  EXPECT_EQ(text_of({secret, secret}), "2 runs, not for release");
  EXPECT_EQ(text_of({missing}), "1 run, missing");
  EXPECT_EQ(text_of({finished, secret}), "1 of 2 runs; 1 not for release");
  EXPECT_EQ(text_of({missing, finished, secret}), "1 of 3 runs; 1 missing, 1 not for release");
  EXPECT_EQ(text_of({missing, secret}), "0 of 2 runs; 1 missing, 1 not for release");
}

TEST_F(SweepCli, MethodsThatChooseTheirReleasesCountByTheirPromises) {
  const Finished f = run_cudp(
      folder_, with({"sweep", "--dataset", table_.table, "--schema", table_.schema, "--out", out()},
                    args("--delta 1e-5 --epsilon 1 --device cpu --quiet --size-is-public "
                         "--method dpsgd,dp-agd --total-epsilon 2.01 --total-delta 2e-5")));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(certificate("002")["method"], "dp-agd");
}

/// Runs with a noisy row count have an odometer whose epsilon is random. Which bound is stated
/// follows from the number of runs and their deltas alone, not from which one is smaller.
TEST_F(SweepCli, TheRuleForAllRunsFollowsFromNoRelease) {
  const Finished f = run_cudp(
      folder_,
      with({"train", "--dataset", table_.table, "--schema", table_.schema, "--out", out("run")},
           args("--delta 1e-5 --epsilon 0.5 --device cpu --quiet --batch 64 --steps 9 --seed 1")));
  ASSERT_EQ(f.exit, 0) << f.err;
  const SpendingRun run{
      .certificate = text("release/privacy.json", "run"), .epsilon = 0.5, .delta = 1e-5};
  for (const char* const copy : {"b", "c"}) {
    fs::create_directory(out(copy));
    write_text(out(copy) + "/privacy.json", run.certificate);
  }
  const auto odometer = [&](const std::vector<std::string>& runs, double delta) {
    return several_runs(runs, delta, false).json["as_chosen_on_the_way"].get<double>();
  };
  // Two promises are added, though here the odometer's epsilon is smaller.
  EXPECT_LT(odometer({out("run"), out("b")}, 0.5), 1.0);
  EXPECT_EQ(joint_spending({run, run}, 0.5).epsilon, 1.0);
  // Three are not, though here the odometer's is larger.
  const double of_three = odometer({out("run"), out("b"), out("c")}, 3e-5);
  EXPECT_EQ(joint_spending({run, run, run}, 3e-5).epsilon, of_three);
  const SpendingRun cheap{.certificate = run.certificate, .epsilon = 1e-3, .delta = 1e-5};
  EXPECT_EQ(joint_spending({cheap, cheap, cheap}, 3e-5).epsilon, of_three);
  // A run is what it promises.
  EXPECT_EQ(joint_spending({run}, {}).epsilon, 0.5);
  EXPECT_EQ(joint_spending({run}, {}).delta, 1e-5);
}

/// A run whose folder was removed is made again, and what it has spent stays spent.
TEST_F(SweepCli, ARunWhoseFolderIsRemovedHasSpentItsBudget) {
  const auto call = [&](const Arguments& more) {
    return run_cudp(folder_,
                    sweep(with({"--epsilon", "1", "--repeats", "2", "--out", out()}, more)));
  };
  const Arguments total = {"--total-epsilon", "2.01", "--total-delta", "2e-5"};
  const auto spent = [&] {
    return nlohmann::json::parse(text("release/sweep.json"))["epsilon_of_all_runs"].get<double>();
  };
  ASSERT_EQ(call(total).exit, 0);
  const double of_two = spent();
  ASSERT_EQ(call(total).exit, 0);
  EXPECT_EQ(spent(), of_two);
  fs::remove_all(out() + "/runs/002");
  const Finished refused = call(total);
  EXPECT_EQ(refused.exit, 3) << refused.err;
  EXPECT_FALSE(fs::exists(out() + "/runs/002"));
  // Without a limit it is made, and counts beside the one that was removed, however often.
  for (int removed = 1; removed <= 2; ++removed) {
    fs::remove_all(out() + "/runs/002");
    ASSERT_EQ(call({"--total-delta", "1e-4"}).exit, 0);
    EXPECT_GT(spent(), of_two + 0.4 * removed);
  }
}

TEST_F(SweepCli, AStartThatMadeNoFolderHasSpentNothing) {
  const auto call = [&] {
    return run_cudp(folder_, sweep({"--epsilon", "1", "--repeats", "2", "--out", out(),
                                    "--total-epsilon", "2.01", "--total-delta", "2e-5"}));
  };
  const auto spent = [&] {
    return nlohmann::json::parse(text("release/sweep.json"))["epsilon_of_all_runs"].get<double>();
  };
  ASSERT_EQ(call().exit, 0);
  const double of_two = spent();
  const std::string file = out() + "/private/begun/002";
  const std::string line = text("private/begun/002");
  fs::remove_all(out() + "/runs/002");
  write_text(file, line.substr(0, line.size() - 1) + " starts\n");
  ASSERT_EQ(call().exit, 0);
  EXPECT_EQ(spent(), of_two);
  EXPECT_EQ(text("private/begun/002"), line);
  // The run of the first line is not that of the folder, which a process made that was killed then.
  write_text(file, line + line.substr(0, line.size() - 1) + " starts\n");
  EXPECT_EQ(call().exit, 3);
  write_text(file, "1 starts\n");
  EXPECT_EQ(call().exit, 3);
}

TEST_F(SweepCli, FeaturesAreComputedOnceFromTheImages) {
  const Arguments images = args(
      "--dataset glyphs --features scatter --feature-cache none --delta 1e-5 --epsilon 3 "
      "--batch 64 --steps 2 --seed 5 --threads 1 --quiet");  // on a device, if there is one
  const Finished all =
      run_cudp(folder_, with({"sweep", "--out", out(), "--lr", "0.1,0.2,0.3"}, images));
  ASSERT_EQ(all.exit, 0) << all.err;
  const Finished last =
      run_cudp(folder_, with({"train", "--out", out("alone"), "--lr", "0.3"}, images));
  ASSERT_EQ(last.exit, 0) << last.err;
  EXPECT_EQ(text("runs/003/release/model.safetensors"), text("release/model.safetensors", "alone"));
}

TEST_F(SweepCli, TasksOfAnArrayShareTheRuns) {
  const auto task = [&](const std::string& share) {
    return run_cudp(folder_, sweep({"--epsilon", "1,2,3", "--test-data-is-public", "--share", share,
                                    "--out", out()}));
  };
  ASSERT_EQ(task("1/2").exit, 0);
  EXPECT_TRUE(fs::exists(out() + "/runs/001"));
  EXPECT_FALSE(fs::exists(out() + "/runs/002"));
  ASSERT_EQ(task("2/2").exit, 0);
  EXPECT_NE(text("release/sweep.csv").find("\n2,1,"), std::string::npos);
}

TEST_F(SweepCli, TasksOfAnArrayMayEndTogether) {
  const auto words = [&](const std::string& share) {
    return sweep(
        {"--epsilon", "1,2,3,4", "--test-data-is-public", "--share", share, "--out", out()});
  };
  const TemporaryFolder texts[3];
  std::vector<CudpProcess> tasks;
  tasks.reserve(3);
  for (int task = 0; task < 3; ++task)
    tasks.emplace_back(texts[task], words(std::to_string(task + 1) + "/3"));
  for (CudpProcess& task : tasks) {
    const Finished f = task.wait();
    EXPECT_EQ(f.exit, 0) << f.err;
  }
  for (const char* run : {"001", "002", "003", "004"})
    EXPECT_EQ(certificate(run)["status"], "finished");
  EXPECT_EQ(lines_of(text("release/runs.csv")).size(), 5u);
  EXPECT_EQ(text("release/runs.csv").find("missing"), std::string::npos)
      << "the last task's table has the runs of all";

  // A call that makes the runs that are left removes what a killed task left.
  write_text(out() + "/release/.sweep.csv.new-12-1", "half");
  fs::remove_all(out() + "/runs/004");
  ASSERT_EQ(run_cudp(folder_, {"sweep", "--resume", out(), "--quiet"}).exit, 0);
  EXPECT_FALSE(fs::exists(out() + "/release/.sweep.csv.new-12-1"));
}

TEST_F(SweepCli, AFileHasTheSameSettings) {
  write_text(folder_ / "sweep.toml", "repeats = 2\nepsilon = [1, 3.5]\nfeature-whiten = false\n");
  const Finished f =
      run_cudp(folder_, sweep({folder_ / "sweep.toml", "--test-data-is-public", "--out", out()}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(lines_of(text("release/runs.csv")).size(), 5u);
  write_text(folder_ / "bad.toml", "epsilon = [1, 3]\nepslon = 2\n");
  const Finished bad = run_cudp(folder_, sweep({folder_ / "bad.toml", "--out", out("bad")}));
  EXPECT_EQ(bad.exit, 2);
  EXPECT_NE(bad.err.find("line 2, epslon: expected a known key"), std::string::npos) << bad.err;
}

/// Runs at the same time would overwrite a file that the file of --config names.
TEST_F(SweepCli, RefusesSharedFilesOfAConfigFile) {
  for (const std::string key : {"metrics-file", "tensorboard"}) {
    write_text(folder_ / "more.toml", key + " = \"" + out("shared") + "\"\n");
    const Finished f = run_cudp(
        folder_, sweep({"--epsilon", "1,3", "--config", folder_ / "more.toml", "--out", out()}));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_TRUE(f.err.starts_with("cudp: " + key + ": expected none")) << f.err;
    EXPECT_FALSE(fs::exists(out()));
    EXPECT_FALSE(fs::exists(out("shared")));
  }
}

}  // namespace
}  // namespace cudp

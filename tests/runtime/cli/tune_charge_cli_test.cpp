// cudp tune: which settings may be given where, what a continuation must have in common with its
// start, and what is charged.
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/random_key.hpp"
#include "runtime/run/key_file.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/tune_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// The same fixture under a name of its own.
class TuneChargeCli : public TuneCli {};

/// Settings of a file are those of a flag: what no tuning may have, and what candidates must share.
TEST_F(TuneChargeCli, RefusesSettingsOfAFileThatItRefusesAsFlags) {
  const auto refused = [&](const std::string& text, const Arguments& more, const std::string& why) {
    write_text(folder_ / "more.toml", text);
    const Finished f = run_cudp(
        folder_,
        tune(with(with(scored(), more), {"--config", folder_ / "more.toml", "--out", out()}), "5"));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
    EXPECT_TRUE(f.err.starts_with("cudp: " + why + ": expected")) << f.err;
    EXPECT_FALSE(fs::exists(out()));
  };
  refused("metrics-file = \"" + out("shown.prom") + "\"\n", {}, "metrics-file");
  refused("tensorboard = \"" + out("events") + "\"\n", {}, "tensorboard");
  refused("unsafe-diagnostics = true\n", {}, "unsafe-diagnostics");
  refused("fresh-noise-allowed = true\n", {}, "fresh-noise-allowed");
  // Without its flag: what a table of one method states would hold for some candidates alone.
  refused("[dpsgd]\nsize-is-public = true\n", {"--method", "dpsgd,dpsgd-ts"}, "size-is-public");
  refused("[dpsgd-ts]\nrows-in = \"file\"\n", {"--method", "dpsgd,dpsgd-ts"}, "rows-in");
  EXPECT_FALSE(fs::exists(out("shown.prom")));
  EXPECT_FALSE(fs::exists(out("events")));
}

TEST_F(TuneChargeCli, ASeedIsTheTuningsOwn) {
  write_text(folder_ / "more.toml", "seed = 7\n");
  Arguments words = {"tune",     "--dataset",           table_.table, "--schema", table_.schema,
                     "--config", folder_ / "more.toml", "--out",      out()};
  words = with(with(words, scored()),
               args("--epsilon 2 --delta 1e-5 --batch 64 --steps 12 --device cpu "
                    "--quiet --lr 0.1,0.5 --runs 2"));
  const Finished f = run_cudp(folder_, words);
  EXPECT_EQ(f.exit, 2) << f.err;
  EXPECT_TRUE(f.err.starts_with("cudp: seed: expected")) << f.err;
  EXPECT_FALSE(fs::exists(out()));
}

/// A tuning that ends right after its noisy row count was released, since the batch is larger. It
/// leaves what a tuning leaves that is interrupted there.
class CountedTuneCli : public TuneCli {
 protected:
  CountedTuneCli() { write_settings("epsilon = 2\n"); }
  void write_settings(const std::string& text) const { write_text(folder_ / "more.toml", text); }
  Finished counted() const {
    Arguments words = {"tune",     "--dataset",           table_.table, "--schema", table_.schema,
                       "--config", folder_ / "more.toml", "--out",      out()};
    words = with(with(words, scored()), args("--delta 1e-5 --batch 5000 --steps 12 --device cpu "
                                             "--clip 0.1,0.5 --runs 2 --most-runs 8"));
    return run_cudp(folder_, words);
  }
  /// Returns the contents of all files in the folder of the tuning.
  TunedFiles files() const {
    TunedFiles all;
    for (const auto& entry : fs::recursive_directory_iterator(out()))
      if (entry.is_regular_file()) all[entry.path()] = content_of(entry.path());
    return all;
  }
};

TEST_F(CountedTuneCli, OneRowCountIsReleasedWhateverHappensAfterIt) {
  const Finished first = counted();
  EXPECT_NE(first.exit, 0);
  EXPECT_NE(first.err.find("noisy row count"), std::string::npos) << first.err;
  const double noisy = json("private/tuning.json").at("noisy_size");
  EXPECT_NE(first.err.find("count, " + std::to_string(static_cast<int>(noisy)) + " +-"),
            std::string::npos)
      << first.err;
  // The same number again, and no second line with one.
  const Finished again = counted();
  EXPECT_EQ(again.exit, first.exit);
  EXPECT_EQ(again.err.find("released for all trainings"), std::string::npos) << again.err;
  EXPECT_EQ(json("private/tuning.json").at("noisy_size"), noisy);
}

TEST_F(CountedTuneCli, AContinuationWithOtherSettingsIsRefused) {
  EXPECT_NE(counted().exit, 0);
  const TunedFiles before = files();
  const std::string schema = content_of(table_.schema);
  const auto refused = [&](const std::string& why) {
    const Finished f = counted();
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
    EXPECT_NE(f.err.find("expected " + why), std::string::npos) << f.err;
    EXPECT_NE(f.err.find("that the tuning began with"), std::string::npos) << f.err;
    EXPECT_EQ(files(), before);
  };
  write_settings("epsilon = 20\n");
  refused("the epsilon");
  write_settings("epsilon = 2\naccountant = \"rdp\"\n");
  refused("the settings of all candidates");
  write_settings("epsilon = 2\n[dpsgd]\nweight-decay = 0.1\n");
  refused("the settings of all candidates");
  write_settings("epsilon = 2\n");
  const std::string colour = R"(kind = "categorical", values = ["red", "blue"])";
  std::string units = schema;
  units.replace(units.find(colour), colour.size(), R"(kind = "ignore")");
  write_text(table_.schema, "unit = \"colour\"\nmax_rows = 3\n" + units);
  refused("the schema");
  write_text(table_.schema, schema);
  EXPECT_EQ(counted().err.find("began with"), std::string::npos);
}

/// An earlier version computes other codes of the same rows.
TEST_F(CountedTuneCli, AContinuationOfAnotherVersionIsRefusedAsSuch) {
  EXPECT_NE(counted().exit, 0);
  auto plan = json("private/tuning.json");
  const auto refused = [&](const std::string& why) {
    write_text(out() + "/private/tuning.json", plan.dump(2) + "\n");
    const TunedFiles before = files();
    const Finished f = counted();
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(f.err, "cudp: " + out() + ": expected " + why + "\n");
    EXPECT_EQ(files(), before);
  };
  plan["data"] = "another code";
  refused("the data that the tuning began with, found others");
  plan.erase("format");
  refused(
      "a tuning of this version of cudp, found one of an earlier version, which computes other "
      "codes of rows, and which alone can continue it (cudp tune --resume); another tuning (cudp "
      "tune --out DIR) is paid for by itself");
}

TEST_F(CountedTuneCli, ATuningThatEndsEarlyHasACertificateOfItsCharge) {
  EXPECT_NE(counted().exit, 0);
  const auto certificate = json("release/privacy.json");
  EXPECT_EQ(certificate["status"], "not finished");
  EXPECT_EQ(certificate["for_release"], false);
  EXPECT_EQ(certificate["epsilon"], 2.0);
  EXPECT_EQ(certificate["delta"], 1e-5);
  fs::copy(out(), out("other"), fs::copy_options::recursive);
  const Finished both =
      run_cudp(folder_, {"account", out(), out("other"), "--delta", "1e-4", "--json"});
  EXPECT_EQ(both.exit, 0) << both.err;
  // Whole budgets add up, since it is not known which releases they are for.
  EXPECT_NEAR(nlohmann::json::parse(both.out)["epsilon"].get<double>(), 4.0, 0.05);
  const Finished explained = run_cudp(folder_, {"account", out()});
  EXPECT_EQ(explained.exit, 0) << explained.err;
  EXPECT_NE(explained.out.find("not finished"), std::string::npos) << explained.out;
  const Finished verified = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(verified.exit, 1) << verified.err;
  EXPECT_NE(verified.out.find("not finished"), std::string::npos) << verified.out;
}

/// Rows in a file are read by each training, so that the tuning has none in memory.
TEST_F(TuneChargeCli, UnitsCountWhereverRowsAreKept) {
  std::string rows = "who,x,class\n";
  for (int i = 0; i < 600; ++i)
    rows += std::to_string(i / 5) + "," + std::to_string(i * 37 % 100) + "," +
            (i * 37 % 100 > 50 ? "yes" : "no") + "\n";
  write_text(folder_ / "visits.csv", rows);
  write_text(folder_ / "visits.toml", R"(unit = "who"
max_rows = 5
columns = [
  {name = "who", kind = "ignore"},
  {name = "x", kind = "numeric", min = 0, max = 100},
  {name = "class", kind = "label", values = ["no", "yes"]},
]
)");
  std::set<double> charged;
  for (const std::string kept : {"memory", "file"}) {
    Arguments words = {"tune",
                       "--dataset",
                       folder_ / "visits.csv",
                       "--schema",
                       folder_ / "visits.toml",
                       "--test-data",
                       folder_ / "visits2.csv",
                       "--rows-in",
                       kept,
                       "--out",
                       out(kept)};
    write_text(folder_ / "visits2.csv", rows);
    words = with(words, args("--test-data-is-public --size-is-public --epsilon 2 --delta 1e-5 "
                             "--batch 50 --steps 10 --device cpu --quiet --clip 0.1,0.5 --lr 0.5 "
                             "--seed 5 --runs 2 --most-runs 8"));
    if (kept == "memory") words = with(words, {"--dry-run", "--json"});
    const Finished f = run_cudp(folder_, words);
    ASSERT_EQ(f.exit, 0) << f.err;
    const double epsilon = kept == "memory"
                               ? nlohmann::json::parse(f.out)["epsilon"].get<double>()
                               : json("private/tuning.json", kept)["charged_epsilon"].get<double>();
    EXPECT_LE(epsilon, 2.0);
    charged.insert(epsilon);
  }
  EXPECT_EQ(charged.size(), 1u);
  EXPECT_EQ(json("release/privacy.json", "file")["epsilon"], *charged.begin());
}

/// A plan in the folder that states a smaller charge than its trainings need.
TEST_F(TuneChargeCli, NothingLeavesThatCostsMoreThanWasCharged) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--size-is-public", "--out", out()}))).exit, 0);
  const auto plan = json("private/tuning.json");
  // The state before the release was written.
  fs::remove(out() + "/private/result.json");
  for (const auto& file : fs::directory_iterator(out() + "/release")) fs::remove(file.path());
  write_key(out() + "/private/tuning-key", key_from_seed(5));
  const auto ended = [&](double share) {
    auto changed = plan;
    changed["charged_epsilon"] = share * plan["charged_epsilon"].get<double>();
    write_text(out() + "/private/tuning.json", changed.dump(2) + "\n");
    return run_cudp(folder_, tune(with(scored(), {"--size-is-public", "--out", out()})));
  };
  const Finished refused = ended(0.5);
  EXPECT_NE(refused.exit, 0);
  EXPECT_NE(refused.err.find("internal error"), std::string::npos) << refused.err;
  EXPECT_TRUE(fs::is_empty(out() + "/release"));
  EXPECT_EQ(ended(1.0).exit, 0);
  EXPECT_EQ(run_cudp(folder_, {"verify", out()}).exit, 0);
}

/// What a training alone states does not count the others.
TEST_F(TuneChargeCli, ATrainingOfATuningIsNoRunOfItsOwn) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--size-is-public", "--out", out()}))).exit, 0);
  const std::string training = out("tuned/private/runs/000001");
  fs::create_directory_symlink(training, out("link"));
  const auto refused = [&](const Arguments& words) {
    const Finished f = run_cudp(folder_, words);
    EXPECT_EQ(f.exit, 2) << words.front() << f.out << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
    EXPECT_NE(f.err.find("cudp tune --resume " + fs::canonical(out()).string()), std::string::npos)
        << f.err;
  };
  const std::string certificate = content_of(training + "/release/privacy.json");
  for (const std::string& place : {training, training + "/", out("link")}) {
    refused({"train", "--resume", place});
    refused({"train", "--resume", place, "--fresh-noise"});
    refused({"verify", place});
    refused({"report", place});
    refused({"account", place});
    refused({"predict", place, "--dataset", table_.test, "--out", out("p.csv")});
    refused({"export", place, "--to", "python", "--out", out("model.py")});
  }
  refused({"verify", training + "/release"});
  refused({"account", out(), training + "/release/privacy.json"});
  refused({"predict", training + "/release/model.safetensors", "--dataset", table_.test, "--out",
           out("p.csv")});
  EXPECT_EQ(content_of(training + "/release/privacy.json"), certificate);
  EXPECT_FALSE(fs::exists(out("p.csv")));
  EXPECT_FALSE(fs::exists(out("model.py")));
  EXPECT_EQ(run_cudp(folder_, {"verify", out()}).exit, 0);
}

/// Of a training that continued with another key only its own promise is known.
TEST_F(TuneChargeCli, NothingIsReleasedIfATrainingLostItsKey) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--size-is-public", "--out", out()}))).exit, 0);
  const std::string winner = json("private/scores.json")["released"];
  // The state before the release was written.
  fs::remove(out() + "/private/result.json");
  for (const auto& file : fs::directory_iterator(out() + "/release")) fs::remove(file.path());
  write_key(out() + "/private/tuning-key", key_from_seed(5));
  const std::string place = out("tuned/private/runs/") + winner + "/release/privacy.json";
  auto training = nlohmann::ordered_json::parse(content_of(place));
  training["keys_lost"] = 1;
  training["releases_repeated"] = 0;
  write_text(place, training.dump(2) + "\n");
  const Arguments again = tune(with(scored(), {"--size-is-public", "--out", out()}));
  const Finished f = run_cudp(folder_, again);
  EXPECT_EQ(f.exit, 3) << f.err;
  EXPECT_NE(f.err.find("all of the tuning's budget counts as spent"), std::string::npos) << f.err;
  EXPECT_EQ(f.err.find("000"), std::string::npos) << f.err;
  EXPECT_TRUE(fs::is_empty(out() + "/release"));
  EXPECT_FALSE(fs::exists(out() + "/private/result.json"));
}

TEST_F(TuneChargeCli, ATrainingThatWasKilledInItsLastMomentLeavesNoKey) {
  const Arguments words = tune(with(scored(), {"--size-is-public", "--out", out()}));
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  // The state before the tuning ended; the process of its first training was killed when the
  // training was complete, and its files were not removed yet.
  fs::remove(out() + "/private/result.json");
  write_key(out() + "/private/tuning-key", key_from_seed(5));
  const std::string training = out("tuned/private/runs/000001/private/");
  write_key(training + "key", key_from_seed(6));
  write_text(training + "checkpoint-3", "of a run in progress");
  const Finished f = run_cudp(folder_, words);
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_TRUE(fs::exists(training + "result.json"));
  EXPECT_FALSE(fs::exists(training + "key"));
  EXPECT_FALSE(fs::exists(training + "checkpoint-3"));
}

// Scores by other rows would make the number of trainings among which the best one is chosen depend
// on when the rows were changed.
TEST_F(TuneChargeCli, AContinuationWithOtherTestRowsIsRefused) {
  const Arguments words = tune(with(scored(), {"--size-is-public", "--out", out()}));
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  // The state before the tuning ended.
  fs::remove(out() + "/private/result.json");
  write_key(out() + "/private/tuning-key", key_from_seed(5));
  const std::string rows = content_of(table_.test);
  std::string fewer = rows;
  fewer.resize(fewer.find_last_of('\n', fewer.size() - 2) + 1);
  write_text(table_.test, fewer);
  const Finished f = run_cudp(folder_, words);
  EXPECT_EQ(f.exit, 2) << f.err;
  EXPECT_NE(f.err.find("expected the data that the tuning began with"), std::string::npos) << f.err;
  write_text(table_.test, rows);
  const Finished again = run_cudp(folder_, words);
  EXPECT_EQ(again.exit, 0) << again.err;
}

}  // namespace
}  // namespace cudp

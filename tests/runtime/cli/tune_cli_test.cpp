// cudp tune: settings chosen by trainings of which the best one alone is released.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/random_key.hpp"
#include "runtime/run/key_file.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using TunedFiles = std::map<std::string, std::string>;

class TuneCli : public testing::Test {
 protected:
  /// Returns a tuning of the table with four candidates, by a seed.
  Words tune(const Words& more, const std::string& seed = "5") const {
    return with(with({"tune", "--dataset", table_.table, "--schema", table_.schema},
                     args("--epsilon 2 --delta 1e-5 --batch 64 --steps 12 --device cpu --quiet "
                          "--lr 0.1,0.5 --clip 0.1,1 --runs 2 --most-runs 8")),
                with({"--seed", seed}, more));
  }
  /// Test rows that are public.
  Words scored() const { return {"--test-data", table_.test, "--test-data-is-public"}; }
  std::string out(const std::string& name = "tuned") const { return folder_ / name; }
  nlohmann::json json(const std::string& file, const std::string& name = "tuned") const {
    return nlohmann::json::parse(content_of(out(name) + "/" + file));
  }
  TunedFiles released(const std::string& name = "tuned") const {
    TunedFiles files;
    for (const auto& file : fs::directory_iterator(out(name) + "/release"))
      files[file.path().filename()] = content_of(file.path());
    return files;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(TuneCli, ReleasesTheBestTrainingAloneWithTheGuaranteeOfAll) {
  const Finished f = run_cudp(folder_, tune(with(scored(), {"--out", out()})));
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto certificate = json("release/privacy.json");
  EXPECT_LE(certificate["epsilon"].get<double>(), 2.0);
  EXPECT_GT(certificate["epsilon"].get<double>(), 1.9);
  EXPECT_LT(certificate["training_epsilon"], certificate["epsilon"]);
  EXPECT_EQ(certificate["tuning"]["grid"].size(), 4u);
  EXPECT_NE(content_of(out() + "/release/config.toml").find("tuned = true"), std::string::npos);
  const auto scores = json("private/scores.json");
  double best = 0.0;
  for (const auto& s : scores["scores"]) best = std::max(best, s["value"].get<double>());
  const std::string winner = scores["released"];
  EXPECT_EQ(content_of(out() + "/release/model.safetensors"),
            content_of(out() + "/private/runs/" + winner + "/release/model.safetensors"));
  for (const auto& s : scores["scores"])
    if (s["training"] == winner) {
      EXPECT_EQ(s["value"], best);
    }
  for (const char* const page : {"PRIVACY.txt", "report.html", "README.md"}) {
    EXPECT_EQ(content_of(out() + "/release/" + page).find("not counted in epsilon"),
              std::string::npos)
        << page;
  }
  for (const std::string& line : lines_of(content_of(out() + "/release/metrics.jsonl"))) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["epsilon"], certificate["epsilon"]);
    EXPECT_LE(row["training_epsilon"], certificate["training_epsilon"]);
  }
  EXPECT_FALSE(fs::exists(out() + "/private/tuning-key"));
  for (const std::string& line : lines_of(f.out)) EXPECT_LE(line.size(), 80u) << line;
  const Finished verified = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
  const Finished predicted =
      run_cudp(folder_, {"predict", out(), "--dataset", table_.test, "--out", out("p.csv")});
  EXPECT_EQ(predicted.exit, 0) << predicted.err;
}

TEST_F(TuneCli, AForgedTuningIsFound) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--out", out()}))).exit, 0);
  const auto certificate = json("release/privacy.json");
  const auto forged = [&](const auto& change) {
    auto changed = certificate;
    change(changed);
    write_text(out() + "/release/privacy.json", changed.dump(2) + "\n");
    return run_cudp(folder_, {"verify", out()}).exit;
  };
  EXPECT_EQ(forged([](auto&) {}), 0);
  EXPECT_NE(forged([](auto& c) { c["epsilon"] = 0.9 * c["epsilon"].template get<double>(); }), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"]["eta"] = -0.5; }), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"]["grid"][0] = "lr 0.2, clip 0.1"; }), 0);
  EXPECT_NE(forged([](auto& c) {
              c["epsilon"] = c["training_epsilon"];
              c.erase("tuning");
              c.erase("training_epsilon");
              c.erase("training_delta");
              c["hyperparameter_tuning"] = "not counted in epsilon";
            }),
            0);
  // A row that states what the training alone had spent by then.
  write_text(out() + "/release/privacy.json", certificate.dump(2) + "\n");
  std::string rows;
  for (const std::string& line : lines_of(content_of(out() + "/release/metrics.jsonl"))) {
    auto row = nlohmann::ordered_json::parse(line);
    row["epsilon"] = row["training_epsilon"];
    rows += row.dump() + "\n";
  }
  write_text(out() + "/release/metrics.jsonl", rows);
  EXPECT_NE(run_cudp(folder_, {"verify", out()}).exit, 0);
}

TEST_F(TuneCli, AllocatedTrainingsAreCountedByTheirPromise) {
  Words words = {"tune", "--dataset", table_.table, "--schema",    table_.schema, "--seed",
                 "5",    "--out",     out(),        "--test-data", table_.test};
  words = with(words, args("--test-data-is-public --size-is-public --epsilon 2 --delta 1e-5 "
                           "--batch 64 --epochs 2 --sampling allocation --device cpu --quiet "
                           "--lr 0.1,0.5 --runs 2 --most-runs 8"));
  const Finished f = run_cudp(folder_, words);
  ASSERT_EQ(f.exit, 0) << f.err;
  const Finished verified = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(verified.exit, 0) << verified.out;
}

TEST_F(TuneCli, RowsInAFileKeepTheBudgetForTheirUnit) {
  std::string csv = "who,age,ill\n";
  for (int i = 0; i < 600; ++i)
    csv += "p" + std::to_string(i / 4) + "," + std::to_string(i % 90) + "," +
           std::to_string(i % 90 > 60 ? 1 : 0) + "\n";
  write_text(folder_ / "visits.csv", csv);
  write_text(folder_ / "later.csv", csv);
  write_text(folder_ / "visits.toml",
             "unit = \"who\"\nmax_rows = 4\ncolumns = [\n  {name = \"who\", kind = \"ignore\"},\n"
             "  {name = \"age\", kind = \"numeric\", min = 0, max = 100},\n"
             "  {name = \"ill\", kind = \"label\", values = [\"0\", \"1\"]},\n]\n");
  for (const std::string where : {"memory", "file"}) {
    const Finished f = run_cudp(
        folder_,
        with({"tune", "--dataset", folder_ / "visits.csv", "--schema", folder_ / "visits.toml",
              "--test-data", folder_ / "later.csv", "--rows-in", where, "--out", out(where)},
             args("--test-data-is-public --size-is-public --epsilon 2 --delta 1e-5 --batch 64 "
                  "--steps "
                  "12 --device cpu --quiet --lr 0.1,0.5 --runs 2 --most-runs 8 --seed 5")));
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_LE(json("release/privacy.json", where)["epsilon"].get<double>(), 2.0) << where;
  }
}

TEST_F(TuneCli, JobsAndKillsChangeNothing) {
  const Words whole = tune(with(scored(), {"--out", out()}));
  ASSERT_EQ(run_cudp(folder_, whole).exit, 0);
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--jobs", "3", "--out", out("jobs")}))).exit, 0);
  EXPECT_EQ(released("jobs"), released());
  // Each call is killed a little later, until one ends by itself.
  const Words again = tune(with(scored(), {"--resume-or-start", out("killed")}));
  Finished f;
  int killed = 0;
  for (int wait = 100; f.exit != 0 && killed < 40; wait += 100) {
    CudpProcess process(folder_, again);
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    process.signal(killed % 2 == 0 ? SIGKILL : SIGTERM);
    f = process.wait();
    ++killed;
    EXPECT_TRUE(f.exit == 0 || f.exit == 75 || f.exit == -1) << f.exit << f.err;
    EXPECT_EQ(f.err.find(" of "), std::string::npos) << f.err;
  }
  if (f.exit != 0) f = run_cudp(folder_, again);
  ASSERT_EQ(f.exit, 0) << f.err;
  // A crash may have left the key of a complete tuning: the next call destroys it.
  write_text(out("killed") + "/private/tuning-key", "left");
  const Finished complete = run_cudp(folder_, again);
  EXPECT_EQ(complete.exit, 0) << complete.err;
  EXPECT_EQ(complete.out, f.out);
  EXPECT_FALSE(fs::exists(out("killed") + "/private/tuning-key"));
  EXPECT_EQ(released("killed"), released());
  EXPECT_EQ(json("private/scores.json", "killed"), json("private/scores.json"));
}

TEST_F(TuneCli, NothingOfTheOtherTrainingsLeaves) {
  // Tunings of two seeds that draw different numbers of trainings look alike outside private/.
  std::set<std::size_t> numbers;
  std::set<std::vector<std::string>> names;
  for (const std::string seed : {"1", "2", "3", "4"}) {
    const std::string name = "seed" + seed;
    const Finished f = run_cudp(folder_, tune(with(scored(), {"--out", out(name)}), seed));
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(f.err, "");
    numbers.insert(json("private/scores.json", name)["trainings"].get<std::size_t>());
    std::vector<std::string> files;
    for (const auto& [file, content] : released(name)) files.push_back(file);
    names.insert(files);
    for (const auto& entry : fs::directory_iterator(out(name)))
      EXPECT_TRUE(entry.path().filename() == "release" || entry.path().filename() == "private");
    auto certificate = json("release/privacy.json", name);
    auto first = json("release/privacy.json", "seed1");
    EXPECT_EQ(certificate["epsilon"], first["epsilon"]);
    // Rates and noise follow from the noisy row count.
    for (auto* const stated : {&certificate, &first}) (*stated)["tuning"].erase("spending");
    EXPECT_EQ(certificate["tuning"], first["tuning"]);
  }
  EXPECT_GT(numbers.size(), 1u);
  EXPECT_EQ(names.size(), 1u);
}

TEST_F(TuneCli, HeldOutRowsScoreWithNoise) {
  const Finished f = run_cudp(folder_, tune({"--out", out()}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto certificate = json("release/privacy.json");
  EXPECT_LE(certificate["epsilon"].get<double>(), 2.0);
  EXPECT_TRUE(certificate.contains("holdout"));
  EXPECT_TRUE(fs::exists(out() + "/release/holdout.json"));
  EXPECT_EQ(run_cudp(folder_, {"verify", out()}).exit, 0);
  // One noisy row count, which is charged once, and the scores' noise alone: both are releases with
  // a known noise, and no stated promise.
  EXPECT_EQ(certificate["epsilon"], 2.0);
  EXPECT_EQ(certificate["tuning"]["size_release"]["epsilon"], 0.04 * 2.0);
  for (const auto& part : certificate["tuning"]["spending"]) EXPECT_EQ(part["spent"], "releases");
  EXPECT_EQ(json("private/tuning.json")["noisy_size"], certificate["size_release"]["noisy_size"]);
  for (const auto& run : fs::directory_iterator(out() + "/private/runs")) {
    if (!run.is_directory()) continue;
    const auto own = nlohmann::json::parse(content_of(run.path() / "release/privacy.json"));
    EXPECT_EQ(own["size_release"], certificate["size_release"]);
  }
  const Finished counted = run_cudp(folder_, {"account", out(), "--json"});
  EXPECT_EQ(counted.exit, 0) << counted.err;
  // One split key: all trainings hold the same rows out.
  std::set<std::size_t> rows;
  for (const auto& run : fs::directory_iterator(out() + "/private/runs")) {
    if (!run.is_directory()) continue;
    const auto evaluation =
        nlohmann::json::parse(content_of(run.path() / "private/evaluation.json"));
    std::size_t counted = 0;
    for (const auto& line : evaluation["confusion"])
      for (const auto& cell : line) counted += cell.get<std::size_t>();
    rows.insert(counted);
  }
  EXPECT_EQ(rows.size(), 1u);
}

TEST_F(TuneCli, AnotherRowCountOfTheReleasedTrainingIsFound) {
  ASSERT_EQ(run_cudp(folder_, tune({"--out", out()})).exit, 0);
  const auto certificate = json("release/privacy.json");
  const auto forged = [&](const auto& change) {
    auto changed = certificate;
    change(changed);
    write_text(out() + "/release/privacy.json", changed.dump(2) + "\n");
    return run_cudp(folder_, {"verify", out()}).exit;
  };
  EXPECT_EQ(forged([](auto&) {}), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"].erase("size_release"); }), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"]["size_release"]["epsilon"] = 0.01; }), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"]["size_release"]["selection_epsilon"] = 2.0; }), 0);
  EXPECT_NE(forged([](auto& c) { c["tuning"]["size_release"]["what"] = "none"; }), 0);
  EXPECT_NE(forged([](auto& c) { c["epsilon"] = 1.9; }), 0);
  EXPECT_NE(forged([](auto& c) {
              auto& noise = c["size_release"]["noise_std"];
              noise = 2.0 * noise.template get<double>();
            }),
            0);
}

TEST_F(TuneCli, AReplayOfTheReleasedTrainingAgrees) {
  for (const bool holds_out : {false, true}) {
    const std::string name = holds_out ? "held" : "scored";
    const Finished f =
        run_cudp(folder_, tune(with(holds_out ? Words{} : scored(), {"--out", out(name)})));
    ASSERT_EQ(f.exit, 0) << f.err;
    const Finished replayed =
        run_cudp(folder_, {"verify", out(name), "--replay", out(name + "-replay"), "--dataset",
                           table_.table, "--data-dir", folder_.path(), "--device", "cpu"});
    EXPECT_EQ(replayed.exit, 0) << replayed.out << replayed.err;
  }
}

TEST_F(TuneCli, OneRowDecidesNeitherTrainingsNorWhatIsThere) {
  // The last row is removed, or its cells are far outside the bounds of their columns.
  const std::string all = content_of(table_.table);
  const std::string last = all.substr(all.rfind('\n', all.size() - 2) + 1);
  const std::string extreme = "999999,-999999,red" + last.substr(last.rfind(','));
  std::vector<std::string> seen;
  for (const std::string& end : {last, std::string(), extreme}) {
    write_text(table_.table, all.substr(0, all.size() - last.size()) + end);
    const std::string name = "neighbour" + std::to_string(seen.size());
    const Finished f = run_cudp(folder_, tune({"--out", out(name), "--json"}));
    auto scores = json("private/scores.json", name);
    scores.erase("released");
    for (auto& score : scores["scores"]) score.erase("value");
    auto certificate = json("release/privacy.json", name);
    std::string what = std::to_string(f.exit) + f.err + scores.dump();
    for (const auto& [file, content] : released(name)) what += file + "\n";
    // What follows from the noisy row count may differ, and what is stated must not.
    certificate["tuning"].erase("spending");
    what += certificate["tuning"].dump() + certificate["epsilon"].dump() +
            certificate["delta"].dump() + certificate["holdout"]["epsilon"].dump();
    for (const auto& [field, value] : certificate.items()) what += field + "\n";
    const auto printed = nlohmann::json::parse(f.out);
    for (const auto& [field, value] : printed.items()) what += field + "\n";
    seen.push_back(what);
  }
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
}

TEST_F(TuneCli, MethodsThatCountInTheirProofCountInEachTraining) {
  const Finished f = run_cudp(
      folder_, with({"tune", "--dataset", table_.table, "--schema", table_.schema, "--test-data",
                     table_.test, "--out", out()},
                    args("--test-data-is-public --epsilon 2 --delta 1e-5 --method outpert --device "
                         "cpu --quiet --l2 0.1,0.5 --runs 2 --most-runs 8 --seed 5")));
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto certificate = json("release/privacy.json");
  EXPECT_FALSE(certificate["tuning"].contains("size_release"));
  EXPECT_EQ(certificate["tuning"]["spending"][0]["spent"], "stated");
  EXPECT_EQ(run_cudp(folder_, {"verify", out()}).exit, 0);
}

TEST_F(TuneCli, ADryRunWritesNothing) {
  const Finished f =
      run_cudp(folder_, tune(with(scored(), {"--dry-run", "--json", "--out", out()})));
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto plan = nlohmann::json::parse(f.out);
  EXPECT_EQ(plan["candidates"].size(), 4u);
  EXPECT_EQ(plan["unit"], "each row");
  EXPECT_NEAR(plan["expected_runs"].get<double>(), 2.0, 1e-6);
  EXPECT_LE(plan["epsilon"].get<double>(), 2.0);
  EXPECT_LT(plan["candidate_epsilon"].get<double>(), plan["epsilon"].get<double>());
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_NEAR(plan["expected_steps"].get<double>(), 2.0 * 12.0, 1e-6);
  EXPECT_GT(plan["expected_seconds"].get<double>(), 0.0);
  // A smaller expected spread needs more held-out rows.
  const auto rows = [&](const char* spread) {
    const Finished held =
        run_cudp(folder_, tune({"--dry-run", "--json", "--expected-spread", spread}));
    EXPECT_EQ(held.exit, 0) << held.err;
    return nlohmann::json::parse(held.out)["held_out_rows_for_spread"].get<double>();
  };
  EXPECT_GT(rows("0.01"), 1.5 * rows("0.02"));
}

TEST_F(TuneCli, RefusesBeforeAnythingIsWritten) {
  const auto refused = [&](const Words& more, int code, const std::string& why) {
    const Finished f = run_cudp(folder_, tune(with(more, {"--out", out("refused")})));
    EXPECT_EQ(f.exit, code) << f.err;
    EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
    EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
    EXPECT_FALSE(fs::exists(out("refused")));
  };
  refused({"--sigma", "2"}, 2, "--sigma");
  refused({"--holdout-epsilon", "1"}, 2, "--holdout-epsilon");
  refused({"--epsilon", "1"}, 2, "which all candidates share");
  refused({"--score", "public"}, 2, "--score");
  refused({"--score", "best"}, 2, "one of public, holdout");
  refused({"--eta", "-1"}, 2, "--eta");
  refused({"--resume-or-start", out("other")}, 2, "--resume-or-start");
  refused({"--method", "sgd"}, 2, "sgd");
}

/// Settings of a file are those of a flag: what no tuning may have, and what candidates must share.
TEST_F(TuneCli, RefusesSettingsOfAFileThatItRefusesAsFlags) {
  const auto refused = [&](const std::string& text, const Words& more, const std::string& why) {
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

TEST_F(TuneCli, ASeedIsTheTuningsOwn) {
  write_text(folder_ / "more.toml", "seed = 7\n");
  Words words = {"tune",     "--dataset",           table_.table, "--schema", table_.schema,
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
    Words words = {"tune",     "--dataset",           table_.table, "--schema", table_.schema,
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
TEST_F(TuneCli, UnitsCountWhereverRowsAreKept) {
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
    Words words = {"tune",
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
TEST_F(TuneCli, NothingLeavesThatCostsMoreThanWasCharged) {
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

}  // namespace
}  // namespace cudp

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
#include <spdlog/fmt/fmt.h>

#include "privacy/certificate/certificate.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/tune_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

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
  EXPECT_NE(f.out.find(fmt::format(" {:.4g}\n", best)), std::string::npos) << f.out << best;
  const Finished verified = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
  const Finished predicted =
      run_cudp(folder_, {"predict", out(), "--dataset", table_.test, "--out", out("p.csv")});
  EXPECT_EQ(predicted.exit, 0) << predicted.err;
}

TEST_F(TuneCli, AForgedTuningIsFound) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--out", out()}))).exit, 0);
  const auto certificate = json("release/privacy.json");
  const auto forged = [&](const auto& change) { return verify_changed(certificate, change); };
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
  // Settings that no candidate has.
  const std::string settings = content_of(out() + "/release/config.toml");
  std::string others = settings;
  const std::size_t lr = others.find("\nlr = ") + 6;
  others.replace(lr, others.find('\n', lr) - lr, "7.0");
  write_text(out() + "/release/config.toml", others);
  EXPECT_NE(forged([](auto&) {}), 0);
  write_text(out() + "/release/config.toml", settings);
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

/// A training that is not released is in no guarantee: neither are its weights.
TEST_F(TuneCli, WeightsOfItsTrainingsAreNoStart) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--out", out()}))).exit, 0);
  fs::create_directory_symlink(out() + "/private/runs/000001/release", out("link"));
  const auto start = [&](const std::string& weights) {
    return run_cudp(folder_, with({"train", "--dataset", table_.table, "--schema", table_.schema,
                                   "--init", weights, "--out", out("run")},
                                  args("--epsilon 0.05 --delta 1e-5 --batch 64 --steps 1 --lr 1e-4 "
                                       "--device cpu --quiet --size-is-public")));
  };
  for (const std::string& weights :
       {out() + "/private/runs/000001/release/model.safetensors", out("link/model.safetensors")}) {
    const Finished f = start(weights);
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(f.err, "cudp: --init " + weights +
                         ": expected weights that are released, found those of a training of a "
                         "tuning, which releases the best one alone: --init " +
                         out() + "/release/model.safetensors (cudp tune --resume " + out() +
                         " finishes it)\n");
    EXPECT_FALSE(fs::exists(out("run")));
  }
  const Finished f = start(out() + "/release/model.safetensors");
  EXPECT_EQ(f.exit, 0) << f.err;
}

/// The released training is a candidate of the grid, and its own part pays for it.
TEST_F(TuneCli, AReleaseOfAnotherCandidateIsFound) {
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--out", out()}))).exit, 0);
  const auto certificate = json("release/privacy.json");
  const std::string settings = content_of(out() + "/release/config.toml");
  // Returns the differences of the check of the tuning.
  const auto differences = [&](const auto& change) {
    auto changed = certificate;
    change(changed["tuning"]);
    write_text(out() + "/release/privacy.json", changed.dump(2) + "\n");
    const Finished f = run_cudp(folder_, {"verify", out(), "--json"});
    const auto answer = nlohmann::json::parse(f.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << f.out << f.err;
    std::string found;
    if (answer.is_object())
      for (const auto& check : answer["checks"])
        if (check["check"] == "tuning" && check["result"] == "differs")
          found += check["differences"].dump();
    return found;
  };
  const std::string expected = "expected a candidate with the settings of config.toml";
  const auto expect_found = [&](const auto& change) {
    const std::string found = differences(change);
    EXPECT_NE(found.find(expected), std::string::npos) << found;
  };
  EXPECT_EQ(differences([](auto&) {}), "");
  EXPECT_EQ(certificate["tuning"]["grid"][1], "clip 0.1, lr 0.5");
  // The part of the released candidate is made smaller, the others' stays.
  std::vector<std::uint64_t> released, others;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::string lr = i % 2 == 0 ? "0.1" : "0.5", clip = i < 2 ? "0.1" : "1.0";
    const bool is_released = settings.find("\nlr = " + lr + "\n") != std::string::npos &&
                             settings.find("\nclip = " + clip + "\n") != std::string::npos;
    (is_released ? released : others).push_back(i);
  }
  ASSERT_EQ(released.size(), 1u) << certificate["tuning"]["grid"];
  const auto split = [&](std::uint64_t steps) {
    return [&, steps](auto& tuning) {
      auto one = tuning["spending"][0], other = one;
      one["candidates"] = released;
      one["releases"][0]["steps"] = steps;
      other["candidates"] = others;
      tuning["spending"] = {other, one};
    };
  };
  EXPECT_EQ(differences(split(12)), "");
  expect_found(split(1));
  const auto renamed = [](auto& tuning) {
    const std::vector<std::string> grid = {"lr 0.2, clip 0.1", "method dp-agd", "anything", "lr"};
    tuning["grid"] = grid;
    tuning["grid_checksum"] = privacy::checksum_of_grid(grid);
  };
  expect_found(renamed);
  std::string other = settings;
  const std::size_t lr = other.find("\nlr = ");
  other.replace(lr, other.find('\n', lr + 1) - lr, "\nlr = 7.0");
  write_text(out() + "/release/config.toml", other);
  expect_found([](auto&) {});
}

TEST_F(TuneCli, AllocatedTrainingsAreCountedByTheirPromise) {
  Arguments words = {"tune", "--dataset", table_.table, "--schema",    table_.schema, "--seed",
                     "5",    "--out",     out(),        "--test-data", table_.test};
  words = with(words, args("--test-data-is-public --size-is-public --epsilon 2 --delta 1e-5 "
                           "--batch 64 --epochs 2 --sampling allocation --device cpu --quiet "
                           "--lr 0.1,0.5 --runs 2 --most-runs 8"));
  const Finished f = run_cudp(folder_, words);
  ASSERT_EQ(f.exit, 0) << f.err;
  const Finished verified = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(verified.exit, 0) << verified.out;
  // A tuning releases nothing if a training lost its key, however it counts its trainings.
  auto certificate = nlohmann::ordered_json::parse(content_of(out() + "/release/privacy.json"));
  certificate["keys_lost"] = 1;
  certificate["releases_repeated"] = 0;
  write_text(out() + "/release/privacy.json", certificate.dump(2) + "\n");
  const Finished forged = run_cudp(folder_, {"verify", out()});
  EXPECT_EQ(forged.exit, 1) << forged.out << forged.err;
  EXPECT_NE(forged.out.find("keys_lost: expected none in a tuning"), std::string::npos)
      << forged.out;
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
  const Arguments whole = tune(with(scored(), {"--out", out()}));
  ASSERT_EQ(run_cudp(folder_, whole).exit, 0);
  ASSERT_EQ(run_cudp(folder_, tune(with(scored(), {"--jobs", "3", "--out", out("jobs")}))).exit, 0);
  EXPECT_EQ(released("jobs"), released());
  // Each call is killed later than the one before, until one ends by itself.
  const Arguments again = tune(with(scored(), {"--resume-or-start", out("killed")}));
  Finished f;
  int killed = 0;
  for (int wait = 100; f.exit != 0 && killed < 40; wait += wait * 2 / 5) {
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
  const auto forged = [&](const auto& change) { return verify_changed(certificate, change); };
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
        run_cudp(folder_, tune(with(holds_out ? Arguments{} : scored(), {"--out", out(name)})));
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
  EXPECT_EQ(plan["expected_spread"], 0.02);
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
  const auto refused = [&](const Arguments& more, int code, const std::string& why) {
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

}  // namespace
}  // namespace cudp

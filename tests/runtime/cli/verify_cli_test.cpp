// cudp verify: finished runs of several methods hold; changed ones do not; a replay is checked.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using OrderedJson = nlohmann::ordered_json;

const Arguments kSteps = {"--batch", "40", "--steps", "5"};

class VerifyCli : public testing::Test {
 protected:
  void train(const std::string& out, const Arguments& more) const {
    const Arguments words =
        with({"train", "--dataset", table_.table, "--schema", table_.schema, "--model", "logistic",
              "--epsilon", "3", "--delta", "1e-5", "--threads", "1", "--device", "cpu", "--quiet",
              "--out", folder_ / out},
             more);
    const Finished f = run_cudp(folder_, words);
    ASSERT_EQ(f.exit, 0) << f.err;
  }
  Finished verify(const std::string& run, const Arguments& more = {}) const {
    return run_cudp(folder_, with({"verify", folder_ / run}, more));
  }
  void expect_holds(const std::string& run, const Arguments& more = {}) const {
    const Finished f = verify(run, more);
    EXPECT_EQ(f.exit, 0) << run << "\n" << f.out << f.err;
    EXPECT_NE(f.out.find("the noise itself cannot be checked: its key is destroyed"),
              std::string::npos);
    EXPECT_EQ(f.out.find("DIFFERS"), std::string::npos) << f.out;
    for (std::size_t at = 0; at < f.out.size();) {  // fits a terminal
      const std::size_t end = f.out.find('\n', at);
      EXPECT_LE(end - at, 80u) << f.out.substr(at, end - at);
      at = end + 1;
    }
  }
  /// Exit 1, and this check has a difference that says `word`.
  void expect_differs(const std::string& run, const std::string& check, const std::string& word,
                      const Arguments& more = {}) const {
    const Finished f = verify(run, with({"--json"}, more));
    ASSERT_EQ(f.exit, 1) << f.out << f.err;
    const OrderedJson answer = OrderedJson::parse(f.out);
    EXPECT_EQ(answer["holds"], false);
    std::string found;
    for (const OrderedJson& c : answer["checks"])
      if (c["check"] == check && c["result"] == "differs") found += c["differences"].dump();
    EXPECT_NE(found.find(word), std::string::npos) << answer.dump(1);
  }
  /// The run with one file changed, and only that, in place until the next.
  void change(const std::string& file, const std::function<void(std::string&)>& how) {
    fs::remove_all(folder_ / "changed");
    fs::copy(folder_ / "run", folder_ / "changed", fs::copy_options::recursive);
    std::string content = content_of(folder_ / ("changed/" + file));
    const std::string before = content;
    how(content);
    ASSERT_NE(content, before);
    write_text(folder_ / ("changed/" + file), content);
  }
  void change_certificate(const std::function<void(OrderedJson&)>& how) {
    change("release/privacy.json", [&](std::string& text) {
      OrderedJson j = OrderedJson::parse(text);
      how(j);
      text = j.dump(2) + "\n";
    });
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_, 400);
};

TEST_F(VerifyCli, FinishedRunsHold) {
  const std::vector<std::pair<const char*, Arguments>> cases = {
      {"dpsgd", kSteps},
      {"public", with(kSteps, {"--size-is-public"})},
      {"quantile", with(kSteps, {"--method", "dpsgd-quantile"})},
      {"adp", with(kSteps, {"--method", "adp-sgd", "--schedule", "polynomial"})},
      {"decay", with(kSteps, {"--method", "dpsgd-decay", "--size-is-public"})},
      {"epochs", {"--batch", "40", "--epochs", "3"}},
      {"rdp", {"--batch", "40", "--epochs", "2", "--accountant", "rdp", "--size-is-public"}},
      {"decay-epochs",
       {"--batch", "40", "--epochs", "3", "--method", "dpsgd-decay", "--size-is-public"}},
      {"adaclip", {"--batch", "40", "--epochs", "1", "--method", "adaclip"}},
      {"norm-bound", with(kSteps, {"--method", "norm-bound"})},
      {"pca", with(kSteps, {"--features", "pca", "--feature-dimensions", "2"})},
      {"sigma", with(kSteps, {"--sigma", "2", "--size-is-public"})},
      {"dpis", {"--method", "dpis", "--batch", "40", "--steps", "12"}},
      {"dpis-adaptive",
       {"--method", "dpis", "--batch", "40", "--steps", "25", "--dpis-adaptive-clip"}},
      {"dp-agd", {"--method", "dp-agd", "--splits", "6"}},
      {"objpert", {"--method", "objpert"}},
      {"outpert", {"--method", "outpert"}},
      {"privgene", {"--method", "privgene", "--generations", "8", "--candidates", "20"}},
      {"seeded", with(kSteps, {"--seed", "3", "--rng", "philox"})},
  };
  for (const auto& [name, words] : cases) {
    SCOPED_TRACE(name);
    train(name, words);
    expect_holds(name);
    expect_holds(std::string(name) + "/release");
    // Without the private folder there is no ledger to look at.
    fs::rename(folder_ / (std::string(name) + "/private"), folder_ / "away");
    const Finished f = verify(name, {"--json"});
    EXPECT_EQ(f.exit, 0) << f.out;
    EXPECT_EQ(OrderedJson::parse(f.out)["checks"][1]["result"], "not checked");
    fs::remove_all(folder_ / "away");
  }
}

TEST_F(VerifyCli, ARunOfTextsHolds) {
  const Finished f =
      run_cudp(folder_, {"train",     "--dataset", "sentences", "--model",   "sentences-lstm",
                         "--epsilon", "3",         "--delta",   "1e-5",      "--batch",
                         "20",        "--steps",   "2",         "--threads", "1",
                         "--device",  "cpu",       "--quiet",   "--out",     folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  expect_holds("run");
  // A word less, and the table of their vectors does not fit.
  change("release/vocabulary.txt", [](std::string& text) { text.erase(0, text.find('\n') + 1); });
  expect_differs("changed", "model", "expected [");
}

TEST_F(VerifyCli, ChangedRunsDoNot) {
  train("run", kSteps);
  change_certificate([](OrderedJson& c) { c["epsilon"] = 2.9; });
  expect_differs("changed", "epsilon", "2.9");
  change_certificate([](OrderedJson& c) { c["epsilon"] = 3.1; });
  expect_differs("changed", "epsilon", "3.1");
  change_certificate([](OrderedJson& c) { c["sigma"] = c["sigma"].get<double>() * 1.01; });
  expect_differs("changed", "noise", "noise_std");
  change_certificate([](OrderedJson& c) {
    c["sigma"] = c["sigma"].get<double>() * 1.01;
    c["noise_std"] = c["sigma"].get<double>() * c["sensitivity"].get<double>();
  });
  expect_differs("changed", "noise", "sigma");
  // With all of it consistent, the ledger says otherwise.
  change_certificate([](OrderedJson& c) {
    c["sigma"] = c["sigma"].get<double>() * 1.01;
    c["noise_std"] = c["sigma"].get<double>() * c["sensitivity"].get<double>();
    c["releases"][1]["sigma"] = c["sigma"];
  });
  expect_differs("changed", "ledger", "the ledger has 0");
  change_certificate([](OrderedJson& c) { c["releases"].erase(1); });
  expect_differs("changed", "ledger", "the ledger has 5");
  expect_differs("changed/release", "releases", "5 steps");
  change_certificate([](OrderedJson& c) { c["releases"].erase(0); });
  expect_differs("changed", "noise", "size_release");
  change_certificate([](OrderedJson& c) { c["noisy_values"] = OrderedJson::array(); });
  expect_differs("changed", "releases", "noisy size");
  change_certificate([](OrderedJson& c) { c["noisy_values"].push_back(c["noisy_values"][0]); });
  expect_differs("changed", "releases", "no release pays for it");
  change_certificate([](OrderedJson& c) { c["q"] = c["q"].get<double>() * 0.9; });
  expect_differs("changed", "sampling", "threshold");
  change_certificate([](OrderedJson& c) { c["delta"] = 2e-5; });
  expect_differs("changed", "settings", "delta");
  const auto replace = [](const char* what, const char* by) {
    return [=](std::string& text) {
      const std::size_t at = text.find(what);
      ASSERT_NE(at, std::string::npos) << text;
      text.replace(at, std::string(what).size(), by);
    };
  };
  change("release/config.toml", replace("batch = 40", "batch = 39"));
  expect_differs("changed", "sampling", "expected batch");
  change("release/config.toml", replace("clip = 0.5", "clip = 0.25"));
  expect_differs("changed", "settings", "clip");
  change("release/config.toml", replace("steps = 5", "steps = 6"));
  expect_differs("changed", "settings", "steps");
  change("release/config.toml", replace("\"flat\"", "\"automatic\""));
  expect_differs("changed", "settings", "clipping");
  change("release/config.toml", replace("method = \"dpsgd\"", "method = \"adp-sgd\""));
  expect_differs("changed", "settings", "method");
  // A tensor of as many numbers in another shape; one that is not the network's.
  change("release/model.safetensors", [](std::string& bytes) {
    TensorFile file = decode_safetensors(bytes, "model");
    for (ParameterTensor& t : file.tensors)
      if (t.shape.size() == 2) std::swap(t.shape[0], t.shape[1]);
    bytes = encode_safetensors(file);
  });
  expect_differs("changed", "model", "weight: expected [");
  change("release/model.safetensors", [](std::string& bytes) {
    TensorFile file = decode_safetensors(bytes, "model");
    file.tensors.push_back(file.tensors[0]);
    file.tensors.back().name = "more";
    file.tensors.back().offset = file.values.size();
    file.values.resize(file.values.size() + file.tensors.back().size);
    bytes = encode_safetensors(file);
  });
  expect_differs("changed", "model", "more: unexpected tensor");
  // The ledger of another run, whose noisy size was another.
  std::string other = content_of(folder_ / "run/private/ledger");
  for (int i = 0; other == content_of(folder_ / "run/private/ledger"); ++i) {
    ASSERT_LT(i, 20);
    train("other" + std::to_string(i), kSteps);
    other = content_of(folder_ / ("other" + std::to_string(i) + "/private/ledger"));
    const auto charges = [](const std::string& text) { return text.substr(0, text.find("\ntag")); };
    if (charges(other) == charges(content_of(folder_ / "run/private/ledger")))
      other = content_of(folder_ / "run/private/ledger");
  }
  change("private/ledger", [&](std::string& text) { text = other; });
  expect_differs("changed", "ledger", "poisson-gaussian");
}

/// The parts of a budget that was divided before the row count was made follow from the budget.
TEST_F(VerifyCli, ForgedPartsOfTheBudgetDoNot) {
  train("run", kSteps);
  for (const char* const pointer : {"/size_release/epsilon", "/size_release/delta",
                                    "/after_size_release/epsilon", "/after_size_release/delta"})
    for (const double factor : {0.5, 1.0 - 1e-12, 1.0 + 1e-12, 2.0}) {
      change_certificate([&](OrderedJson& c) {
        OrderedJson& part = c[OrderedJson::json_pointer(pointer)];
        part = part.get<double>() * factor;
      });
      expect_differs("changed", "epsilon", "expected");
      fs::remove_all(folder_ / "changed/private");
      expect_differs("changed", "epsilon", "expected");
    }
  // Less noise on the count than its part pays for, with everything else consistent.
  change_certificate([](OrderedJson& c) {
    const double noise = c["size_release"]["noise_std"].get<double>() * 0.99;
    c["size_release"]["noise_std"] = c["releases"][0]["sigma"] = noise;
    c["noisy_values"][0]["noise_std"] = noise;
  });
  fs::remove_all(folder_ / "changed/private");
  expect_differs("changed", "epsilon", "the count's delta");
  // Another split, whose parts add up.
  change_certificate([](OrderedJson& c) {
    c["size_release"]["epsilon"] = 0.5 * c["epsilon"].get<double>();
    c["after_size_release"]["epsilon"] = 0.5 * c["epsilon"].get<double>();
  });
  expect_differs("changed", "epsilon", "4 % of all");
  // Without its parts nothing is proved of a run that follows from a noisy count.
  change_certificate([](OrderedJson& c) {
    c["size_release"].erase("epsilon");
    c["size_release"].erase("delta");
    c.erase("after_size_release");
  });
  expect_differs("changed", "ledger", "parts of the budget");
  fs::remove_all(folder_ / "changed/private");
  expect_differs("changed", "epsilon", "order");
}

/// What no other check looks at is worked out again, or is in its range.
TEST_F(VerifyCli, StatementsThatOthersDoNotBearOutAreFound) {
  train("run", with(kSteps, {"--size-is-public", "--accountant", "rdp"}));
  expect_holds("run");
  // Delta less a negative part is more than delta.
  change_certificate([](OrderedJson& c) { c["delta_for_rounding"] = -0.01; });
  expect_differs("changed/release", "fields", "delta_for_rounding");
  // One step of the stated noise, and others of a hundred times as much.
  change_certificate([](OrderedJson& c) {
    OrderedJson more = c["releases"][0];
    c["releases"][0]["steps"] = 1;
    more["steps"] = 4;
    more["sigma"] = 100.0 * more["sigma"].get<double>();
    c["releases"].push_back(more);
  });
  expect_differs("changed/release", "releases", "the noise of the method's rule at step 1");
  change_certificate([](OrderedJson& c) { c["groups"][3]["epsilon"] = 1.0; });
  expect_differs("changed/release", "epsilon", "groups, 8 examples");
  change_certificate([](OrderedJson& c) { c["epsilon_lower"] = 2.0; });
  expect_differs("changed/release", "epsilon", "epsilon_lower");
  change_certificate([](OrderedJson& c) { c["hyperparameter_tuning"] = "counted in epsilon"; });
  expect_differs("changed/release", "fields", "hyperparameter_tuning");
  change_certificate([](OrderedJson& c) { c.erase("noise"); });
  expect_differs("changed/release", "fields", "noise: expected it, found none");
  // Files that nothing accounts for, and one that is missing.
  change("release/config.toml", [](std::string& text) { text += "# again\n"; });
  expect_differs("changed/release", "settings file", "# again");
  write_text(folder_ / "changed/release/config.toml",
             content_of(folder_ / "run/release/config.toml"));
  expect_holds("changed/release");
  for (const char* const file : {"holdout.json", "rows.csv"}) {
    write_text(folder_ / (std::string("changed/release/") + file), "{}\n");
    expect_differs("changed/release", "files", file);
    fs::remove(folder_ / (std::string("changed/release/") + file));
  }
  fs::remove(folder_ / "changed/release/metrics.jsonl");
  expect_differs("changed/release", "files", "metrics.jsonl: missing");
  const Finished f = verify("run/release", {"--json"});
  EXPECT_FALSE(OrderedJson::parse(f.out)["taken_on_trust"].empty()) << f.out;
}

TEST_F(VerifyCli, ChangedRunsOfOtherMethodsDoNot) {
  train("run", with(kSteps, {"--method", "dpsgd-quantile"}));
  change_certificate([](OrderedJson& c) { c["noisy_values"][1]["times"] = 4; });
  expect_differs("changed", "releases", "one a step");
  fs::remove_all(folder_ / "changed/private");
  expect_differs("changed", "releases", "one a step");
  change_certificate([](OrderedJson& c) {
    c["quantile"]["count_noise_std"] = c["quantile"]["count_noise_std"].get<double>() * 1.1;
  });
  expect_differs("changed", "noise", "sum and count");
  fs::remove_all(folder_ / "run");
  // What is proved of objective perturbation is worked out again from its noise.
  train("run", {"--method", "objpert"});
  change_certificate([](OrderedJson& c) { c["noise_std"] = c["noise_std"].get<double>() * 0.99; });
  expect_differs("changed", "epsilon", "delta");
  fs::remove_all(folder_ / "run");
  train("run", {"--method", "dp-agd", "--splits", "6"});
  change_certificate([](OrderedJson& c) { c["noisy_values"].erase(1); });
  expect_differs("changed", "releases", "noisy sums");
  change_certificate([](OrderedJson& c) { c["epsilon"] = 2.5; });
  expect_differs("changed", "epsilon", "budget");
}

TEST_F(VerifyCli, EpsilonOfARowIsWhatWasSpentByThen) {
  // Number of the row, and what its epsilon is multiplied by.
  const auto change_row = [&](std::size_t row, double factor) {
    change("release/metrics.jsonl", [&](std::string& text) {
      std::vector<OrderedJson> rows;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        rows.push_back(OrderedJson::parse(text.substr(at, end - at)));
        at = end + 1;
      }
      ASSERT_LT(row, rows.size()) << text;
      rows[row]["epsilon"] = rows[row]["epsilon"].get<double>() * factor;
      text.clear();
      for (const OrderedJson& r : rows) text += r.dump() + "\n";
    });
  };
  struct Case {
    const char* description;
    Arguments words;
    std::vector<std::size_t> rows;  ///< that say too little if it is less by a hundredth
  };
  const std::vector<Case> cases = {
      {"dpsgd", {"--batch", "40", "--epochs", "3"}, {0, 1, 2}},
      {"decay",
       {"--batch", "40", "--epochs", "3", "--method", "dpsgd-decay", "--size-is-public"},
       {0, 1, 2}},
      {"dpis", {"--method", "dpis", "--batch", "40", "--epochs", "2"}, {0, 1}},
      {"outpert", {"--method", "outpert"}, {0}},
      // An iteration that measures again spends more than a row is held to; this seed's do not.
      {"dp-agd", {"--method", "dp-agd", "--splits", "6", "--seed", "1"}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.description);
    fs::remove_all(folder_ / "run");
    train("run", c.words);
    for (const std::size_t row : c.rows) {
      change_row(row, 0.99);
      expect_differs("changed", "rows", "at least");
      fs::remove_all(folder_ / "changed/private");
      expect_differs("changed/release", "rows", "at least");
    }
    std::size_t last = 0;
    for (const char byte : content_of(folder_ / "run/release/metrics.jsonl")) last += byte == '\n';
    change_row(last - 1, 0.9);
    expect_differs("changed", "rows", "at least");
    change_row(last - 1, 2.0);
    expect_differs("changed", "rows", "at most");
  }
  fs::remove_all(folder_ / "run");
  train("run", {"--batch", "40", "--epochs", "2"});
  change("release/metrics.jsonl",
         [](std::string& text) { text.erase(text.rfind('\n', text.size() - 2) + 1); });
  expect_differs("changed", "rows", "last row's step");
  change("release/metrics.jsonl", [](std::string& text) { text += "{\n"; });
  EXPECT_EQ(verify("changed").exit, 2);
}

TEST_F(VerifyCli, SaysWhatIsNoRun) {
  const auto refused = [&](const std::string& run, const std::string& word) {
    const Finished f = verify(run);
    EXPECT_EQ(f.exit, 2) << f.out;
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    EXPECT_NE(f.err.find(word), std::string::npos) << f.err;
  };
  refused("nothing", "expected a run folder");
  fs::create_directory(folder_ / "empty");
  refused("empty", "expected a run folder");
  train("run", kSteps);
  change("release/privacy.json", [](std::string& text) { text.resize(text.size() / 2); });
  refused("changed", "privacy.json: certificate");
  change("release/privacy.json", [](std::string& text) { text = "[]"; });
  refused("changed", "privacy.json: certificate");
  change("release/model.safetensors", [](std::string& bytes) { bytes.resize(20); });
  refused("changed", "model.safetensors");
  change("private/ledger", [](std::string& text) { text[30] ^= 1; });
  refused("changed", "ledger");
  change("release/config.toml", [](std::string& text) { text = "no settings\n"; });
  refused("changed", "settings");
  // A plan is no promise of a finished run.
  change_certificate([](OrderedJson& c) { c["status"] = "not finished"; });
  const Finished f = verify("changed");
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.out.find("not finished"), std::string::npos) << f.out;
  EXPECT_EQ(verify("run", {"--data-dir", "data"}).exit, 2);  // which is the replay's
}

TEST_F(VerifyCli, AReplayIsTrainedAndChecked) {
  const std::vector<std::pair<const char*, Arguments>> cases = {
      {"dpsgd", kSteps},
      {"public", with(kSteps, {"--size-is-public", "--optimizer", "adam", "--ema", "0.9"})},
      {"quantile", with(kSteps, {"--method", "dpsgd-quantile"})},
      {"dpis", {"--method", "dpis", "--batch", "40", "--steps", "12"}},
      {"dp-agd", {"--method", "dp-agd", "--splits", "6"}},
      {"objpert", {"--method", "objpert"}},
  };
  for (const auto& [name, words] : cases) {
    SCOPED_TRACE(name);
    train(name, words);
    const std::string replay = folder_ / (std::string(name) + "-replay");
    const Finished f = verify(name, {"--json", "--replay", replay, "--data-dir", folder_.path(),
                                     "--schema", table_.schema, "--threads", "1", "--seed", "5"});
    ASSERT_EQ(f.exit, 0) << f.out << f.err;
    const OrderedJson found = OrderedJson::parse(f.out)["replay"];
    EXPECT_EQ(found["findings"], OrderedJson::array());
    EXPECT_EQ(found["differences"], OrderedJson::array());
    EXPECT_EQ(found["seed"], 5);
    if (std::string(name) != "public") {
      EXPECT_FALSE(found.contains("releases")) << "their number follows from that of the rows";
    } else {
      EXPECT_GT(found["releases"], 0);
      const std::size_t parameters = 4 + 1;  // two numbers and a category of two, and a bias
      EXPECT_EQ(found["numbers"], 5 * parameters);
      EXPECT_EQ(found["updates"], 5);
    }
    EXPECT_EQ(fs::status(replay).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(fs::exists(replay + "/run/release/privacy.json"));
    // Nothing of the transcript stays.
    for (const auto& entry : fs::recursive_directory_iterator(replay))
      if (entry.is_regular_file()) {
        EXPECT_EQ(content_of(entry.path()).find("{\"kind\":\""), std::string::npos) << entry.path();
      }
    // The replay is a run, and not for release.
    const OrderedJson certificate =
        OrderedJson::parse(content_of(replay + "/run/release/privacy.json"));
    EXPECT_EQ(certificate["for_release"], false);
    const Finished again = verify(name, {"--replay", replay});
    EXPECT_EQ(again.exit, 2);
    EXPECT_NE(again.err.find("expected a new folder"), std::string::npos) << again.err;
  }
}

// The seed of a replay is known, and so the noise on its number of rows: what follows from that
// number would tell the exact one.
TEST_F(VerifyCli, AReplayShowsNothingOfAPrivateNumberOfRows) {
  train("run", {"--batch", "8", "--epochs", "4"});
  const std::vector<std::string> lines = lines_of(content_of(table_.table));
  const auto shown = [&](const std::string& name, std::size_t rows) {
    std::string table;
    for (std::size_t i = 0; i <= rows; ++i) table += lines.at(i) + "\n";
    fs::create_directory(folder_ / name);
    write_text(folder_ / name + "/" + fs::path(table_.table).filename().string(), table);
    std::string all;
    for (const Arguments& form : {Arguments{}, Arguments{"--json"}}) {
      fs::remove_all(folder_ / "replay");
      const Finished f =
          verify("run", with(form, {"--replay", folder_ / "replay", "--data-dir", folder_ / name,
                                    "--schema", table_.schema, "--threads", "1", "--seed", "5"}));
      EXPECT_EQ(f.exit, 0) << f.out << f.err;
      for (const std::string& line : lines_of(f.err))
        all += line.substr(std::min<std::size_t>(9, line.size())) + "\n";  // without the time
      all += f.out;
    }
    EXPECT_NE(all.find("private/log.txt"), std::string::npos) << all;
    return all;
  };
  const std::size_t rows = lines.size() - 1;
  EXPECT_EQ(shown("all", rows), shown("fewer", rows - 100));
  (void)shown("few", 20);
  // Fewer rows than a batch has: the number is in the refused replay's folder alone.
  train("large", {"--batch", "120", "--epochs", "2"});
  fs::remove_all(folder_ / "replay");
  const Finished refused =
      verify("large", {"--replay", folder_ / "replay", "--data-dir", folder_ / "few", "--schema",
                       table_.schema, "--threads", "1", "--seed", "5"});
  EXPECT_EQ(refused.exit, 2) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("refused by its own noisy number"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("120"), std::string::npos) << refused.err;
}

TEST_F(VerifyCli, AReplayFindsDataWithoutAnEnding) {
  const std::string table = folder_ / "people";
  fs::copy_file(table_.table, table);
  table_.table = table;
  train("run", with(kSteps, {"--size-is-public"}));
  EXPECT_NE(content_of(folder_ / "run/release/config.toml").find("dataset = \"./people\""),
            std::string::npos);
  const Finished f = verify("run", {"--replay", folder_ / "replay", "--data-dir", folder_.path(),
                                    "--schema", table_.schema, "--threads", "1"});
  EXPECT_EQ(f.exit, 0) << f.out << f.err;
}

TEST_F(VerifyCli, AReplayReportsWhatTheRunStatesOtherwise) {
  train("run", with(kSteps, {"--size-is-public"}));
  change_certificate([](OrderedJson& c) { c["hyperparameter_tuning"] = "counted"; });
  const Finished f =
      verify("changed", {"--json", "--replay", folder_ / "replay", "--data-dir", folder_.path(),
                         "--schema", table_.schema, "--threads", "1"});
  EXPECT_EQ(f.exit, 1) << f.out << f.err;
  const OrderedJson replay = OrderedJson::parse(f.out)["replay"];
  EXPECT_EQ(replay["findings"], OrderedJson::array());
  ASSERT_EQ(replay["differences"].size(), 1u) << replay;
  EXPECT_NE(replay["differences"][0].get<std::string>().find("hyperparameter_tuning"),
            std::string::npos);
  // A replay that cannot be trained leaves no folder.
  const Finished none =
      verify("run", {"--replay", folder_ / "none", "--dataset", folder_ / "no.csv"});
  EXPECT_EQ(none.exit, 2) << none.out;
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST(CheckCertificate, Parses) {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const fs::path script = fs::path(golden_file("")) / "../../scripts/check_certificate.py";
  const std::string command =
      "python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' '" + script.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace cudp

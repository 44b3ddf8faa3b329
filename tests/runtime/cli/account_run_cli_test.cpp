// cudp account of a run: its certificate in sentences, and under other settings.
#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

class AccountRun : public testing::Test {
 protected:
  Arguments training(const std::string& out, const Arguments& more) const {
    return with({"train", "--dataset", table_.table, "--schema", table_.schema, "--model",
                 "logistic", "--delta", "1e-5", "--batch", "64", "--test-data", table_.test,
                 "--threads", "1", "--device", "cpu", "--out", folder_ / out},
                more);
  }
  Json certificate(const std::string& run) const {
    return Json::parse(content_of(folder_ / (run + "/release/privacy.json")));
  }
  Finished cudp(const Arguments& words) const { return run_cudp(folder_, words); }
  Json json(Arguments words) const {
    words.emplace_back("--json");
    const Finished f = cudp(words);
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.exit == 0 ? Json::parse(f.out) : Json();
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(AccountRun, IsExplainedInSentences) {
  int attempts = 0;
  do {  // until the noisy row count is not by chance the true one, which is not to be shown
    ASSERT_LT(attempts++, 10);
    fs::remove_all(folder_ / "run");
    ASSERT_EQ(cudp(training("run", {"--epsilon", "1", "--epochs", "2"})).exit, 0);
  } while (certificate("run")["size_release"]["noisy_size"] == 613);
  const Finished f = cudp({"account", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  std::string flat;  // sentences go over several lines
  for (const char c : f.out)
    if (c != '\n' && !(c == ' ' && flat.ends_with(' ')))
      flat += c;
    else if (!flat.ends_with(' '))
      flat += ' ';
  // (e + 1e-5) / (e + 1) = 73.11 %.
  for (const char* const part :
       {"The run is finished.", "at delta 1e-05, for one training row of \"small\" more or less",
        "right in at most 73.2 % of all cases", "2.72 times as likely", "A noisy row count, ",
        "Several rows of one person have a larger epsilon than one row", "stay in private/",
        "drawn with probability 0.", "Settings that were chosen by looking at other runs"})
    EXPECT_NE(flat.find(part), std::string::npos) << part << "\n" << flat;
  EXPECT_EQ(flat.find("NOT for release"), std::string::npos);
  // Digits of other numbers are random.
  EXPECT_FALSE(std::regex_search(f.out, std::regex("(^|[^0-9.])613([^0-9.]|[.][^0-9]|$)")))
      << "the true number of rows\n"
      << f.out;
  // The folder, its release and the file alone say the same.
  for (const char* const place : {"run/release", "run/release/privacy.json"})
    EXPECT_EQ(cudp({"account", folder_ / place}).out, f.out) << place;
  EXPECT_EQ(json({"account", folder_ / "run"})["epsilon"], certificate("run")["epsilon"]);
}

TEST_F(AccountRun, SaysWhatSpeaksAgainstARelease) {
  ASSERT_EQ(cudp(training("run", {"--epsilon", "1", "--epochs", "1", "--size-is-public", "--seed",
                                  "1", "--test-data-is-public", "--unsafe-diagnostics"}))
                .exit,
            0);
  const std::string text = cudp({"account", folder_ / "run"}).out;
  for (const char* const part :
       {"NOT for release", "A person with several rows", "seed: anyone who guesses it",
        "613: it counts as public", "in release/", "unsafe-diagnostics"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(AccountRun, AskedWhatIfSaysWhatThatTrainingsCertificateWould) {
  const Arguments all = {"--size-is-public", "--sigma", "2"};
  const auto run = [&](const std::string& name, Arguments more) {
    more.insert(more.end(), all.begin(), all.end());
    const Finished f = cudp(training(name, more));
    EXPECT_EQ(f.exit, 0) << f.err;
    return certificate(name);
  };
  const Json own = run("own", {"--epochs", "2"});
  const Json longer = run("longer", {"--epochs", "5"});
  const Json smaller = run("smaller", {"--epochs", "2", "--batch", "32"});
  const Json rows =
      json({"account", folder_ / "own", "--what-if", "epochs=5", "batch=32", "sigma=2", "epsilon=1",
            "epochs=5+sigma=4", "steps=20", "delta=1e-4"})["rows"];
  ASSERT_EQ(rows.size(), 8u);
  const auto epsilon = [&](int row) { return rows[row]["epsilon"].get<double>(); };
  EXPECT_EQ(rows[0]["epsilon"], own["epsilon"]);
  EXPECT_EQ(rows[0]["steps"], own["steps"]);
  EXPECT_DOUBLE_EQ(epsilon(1), longer["epsilon"].get<double>());
  EXPECT_EQ(rows[1]["steps"], longer["steps"]);
  EXPECT_DOUBLE_EQ(epsilon(2), smaller["epsilon"].get<double>());
  EXPECT_EQ(rows[2]["steps"], smaller["steps"]);
  EXPECT_DOUBLE_EQ(epsilon(3), own["epsilon"].get<double>());
  EXPECT_LE(epsilon(4), 1.0);
  EXPECT_GT(epsilon(4), 0.999);
  EXPECT_LT(epsilon(5), epsilon(1));
  EXPECT_DOUBLE_EQ(epsilon(6), epsilon(0));  // 2 epochs of 10 steps
  EXPECT_LT(epsilon(7), epsilon(0));
  EXPECT_EQ(rows[7]["delta"], 1e-4);
  const std::string table = cudp({"account", folder_ / "own", "--what-if", "epochs=5"}).out;
  EXPECT_EQ(std::ranges::count(table, '\n'), 3) << table;
}

/// Of a private row count the noisy one is taken, and its release stays in.
TEST_F(AccountRun, AskedWhatIfOfAPrivateRowCount) {
  ASSERT_EQ(cudp(training("run", {"--epsilon", "1", "--epochs", "2", "--seed", "5"})).exit, 0);
  const Json own = certificate("run");
  const Json rows =
      json({"account", folder_ / "run", "--what-if", "epochs=4", "epsilon=2"})["rows"];
  EXPECT_EQ(rows[0]["epsilon"], own["epsilon"]);
  EXPECT_GT(rows[1]["epsilon"], rows[0]["epsilon"]);
  EXPECT_LE(rows[2]["epsilon"], 2.0);
  EXPECT_LT(rows[2]["sigma"], rows[0]["sigma"]);
  ASSERT_EQ(cudp(training("other", {"--epsilon", "2", "--epochs", "2", "--seed", "5"})).exit, 0);
  // Another noisy count, and so another rate, by a few rows.
  EXPECT_NEAR(rows[2]["sigma"].get<double>(), certificate("other")["sigma"].get<double>(), 0.05);
}

TEST_F(AccountRun, RefusesWhatItCannotAnswer) {
  ASSERT_EQ(cudp(training("run", {"--epsilon", "1", "--epochs", "1"})).exit, 0);
  ASSERT_EQ(
      cudp(training("decay", {"--epsilon", "1", "--epochs", "2", "--method", "dpsgd-decay"})).exit,
      0);
  Arguments none = training("none", {"--epochs", "1", "--method", "sgd"});
  none.erase(std::ranges::find(none, "--delta"), std::ranges::find(none, "--delta") + 2);
  ASSERT_EQ(cudp(none).exit, 0);
  write_text(folder_ / "other.json", "{\"format\": \"something else\"}");
  write_text(folder_ / "damaged.json",
             "{\"format\": \"cudp privacy certificate 2\", \"status\": \"finished\"}");
  const std::string run = folder_ / "run";
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{folder_ / "nowhere"}, "expected a run's folder, its release folder or a privacy.json"},
      {{folder_ / "none"}, "expected a run with privacy, found NO-PRIVACY.txt"},
      {{folder_ / "other.json"}, "expected a certificate of cudp, found another file"},
      {{folder_ / "damaged.json"}, "expected a certificate of cudp, found a damaged one"},
      {{run, "--sigma", "1"}, "expected no flags but --what-if and --json with a run"},
      {{run, run}, "expected each run once, found it twice"},
      {{run, "--what-if", "lr=1"}, "expected epochs, steps, batch, sigma, epsilon and delta"},
      {{run, "--what-if", "epochs"}, "--what-if epochs: expected a whole number > 0"},
      {{run, "--what-if", "epochs=1.5"}, "--what-if epochs: expected a whole number > 0"},
      {{run, "--what-if", "sigma=-1"}, "--what-if sigma: expected a number > 0"},
      {{run, "--what-if", "sigma=nan"}, "--what-if sigma: expected a number > 0"},
      {{run, "--what-if", "delta=1"}, "--what-if delta: expected a number in (0, 1)"},
      {{run, "--what-if", "sigma=1+epsilon=1"}, "expected either sigma or epsilon, found both"},
      {{run, "--what-if", "batch=100000"}, "--what-if batch: expected at most the"},
      {{folder_ / "decay", "--what-if", "epochs=3"}, "expected a run of equal noisy steps"},
      {{"--what-if", "epochs=3"}, "--what-if: expected a run to change"}};
  for (const auto& [words, part] : cases) {
    Arguments all = {"account"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished f = cudp(all);
    EXPECT_EQ(f.exit, 2) << part;
    EXPECT_NE(f.err.find(part), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_EQ(f.out, "") << part;
  }
}

/// Whatever the method: what it states is said, and no noise that it does not have.
TEST_F(AccountRun, ExplainsEveryKindOfMethod) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--method", "dpsgd-decay", "--epochs", "2"}, "more of it in some steps than in others"},
      {{"--method", "dpis", "--epochs", "1", "--batch", "32"}, "importance-sampled Gaussian"},
      {{"--method", "outpert"}, "Gaussian noise on the minimum of a strongly"},
      {{"--method", "privgene", "--generations", "3"}, "exponential mechanism"}};
  for (const auto& [flags, part] : cases) {
    const std::string name = flags[1];
    Arguments words = training(name, with({"--epsilon", "3"}, flags));
    if (name == "outpert" || name == "privgene")
      words.erase(std::ranges::find(words, "--batch"), std::ranges::find(words, "--batch") + 2);
    const Finished trained = cudp(words);
    ASSERT_EQ(trained.exit, 0) << trained.err;
    const Finished f = cudp({"account", folder_ / name});
    EXPECT_EQ(f.exit, 0) << f.err;
    std::string flat = f.out;
    for (std::size_t at = 0; (at = flat.find('\n', at)) != std::string::npos;)
      flat.replace(at, flat.find_first_not_of(" \n", at) - at, " ");
    EXPECT_NE(flat.find(part), std::string::npos) << flat;
    EXPECT_EQ(flat.find("nan"), std::string::npos) << flat;
    EXPECT_EQ(cudp({"account", folder_ / name, "--what-if", "sigma=2"}).exit, 2) << name;
  }
}

/// account and calibrate count a training as train does.
TEST_F(AccountRun, ATrainingIsCountedByExamplesBatchAndEpochs) {
  const Finished f = cudp(training("run", {"--epsilon", "2", "--epochs", "3", "--size-is-public"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json own = certificate("run");
  const Arguments shape = {"--examples", "613", "--batch", "64", "--epochs", "3"};
  const auto with = [&](Arguments words) {
    words.insert(words.end(), shape.begin(), shape.end());
    return words;
  };
  const Json spent = json(with({"account", "--delta", "1e-5", "--sigma", own["sigma"].dump()}));
  EXPECT_EQ(spent["q"], own["q"]);
  EXPECT_EQ(spent["steps"], own["steps"]);
  EXPECT_NEAR(spent["epsilon"].get<double>(), own["epsilon"].get<double>(), 1e-6);
  const Json found = json(with({"calibrate", "--delta", "1e-5", "--epsilon", "2"}));
  EXPECT_NEAR(found["sigma"].get<double>(), own["sigma"].get<double>(), 1e-4);
  EXPECT_EQ(found["steps"], own["steps"]);
  const Json fixed =
      json(with({"account", "--delta", "1e-5", "--sigma", "2", "--sampling", "fixed"}));
  EXPECT_EQ(fixed["n"], 613);
  EXPECT_EQ(fixed["steps"], own["steps"]);
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--q", "0.1", "--examples", "10", "--batch", "1", "--steps", "1"},
       "--q: expected no value"},
      {{"--examples", "10", "--batch", "1", "--steps", "1", "--epochs", "1"},
       "--steps: expected no"},
      {{"--examples", "10", "--steps", "1"}, "--examples: expected --batch with it, found none"},
      {{"--batch", "10", "--steps", "1"}, "--batch: expected --examples with it, found none"},
      {{"--epochs", "3"}, "--epochs: expected --examples and --batch with it, found none"},
      {{"--q", "0.1", "--epochs", "3"}, "--q: expected no value with --epochs"},
      {{"--examples", "10", "--batch", "11", "--steps", "1"}, "--batch: expected 1 to the 10"},
      {{"--examples", "10", "--n", "9", "--batch", "1", "--steps", "1", "--sampling", "fixed"},
       "--n: expected no value with --examples"}};
  for (const auto& [words, part] : cases) {
    Arguments all = {"account", "--sigma", "1", "--delta", "1e-5"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished refused = cudp(all);
    EXPECT_EQ(refused.exit, 2) << part;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
  const Finished solve = cudp(with({"calibrate", "--solve", "q", "--sigma", "1", "--delta", "1e-5",
                                    "--epsilon", "1", "--steps", "10"}));
  EXPECT_NE(solve.err.find("--examples: expected no value with --solve q"), std::string::npos)
      << solve.err;
}

TEST_F(AccountRun, OfSeveralSaysWhatTheySpendTogether) {
  const auto run = [&](const std::string& name, const Arguments& more) {
    const Finished f = cudp(training(name, more));
    EXPECT_EQ(f.exit, 0) << f.err;
  };
  run("one", {"--size-is-public", "--sigma", "4", "--epochs", "1"});
  run("two", {"--size-is-public", "--sigma", "4", "--epochs", "1", "--method", "dpsgd-decay"});
  run("filtered", {"--epsilon", "1", "--epochs", "1"});
  const auto run_on_all = [&](const std::string& name, const Arguments& more) {
    Arguments words = training(name, more);
    words.erase(std::ranges::find(words, "--batch"), std::ranges::find(words, "64") + 1);
    const Finished f = cudp(words);
    EXPECT_EQ(f.exit, 0) << f.err;
  };
  run_on_all("descent", {"--epsilon", "1", "--method", "dp-agd", "--splits", "5"});
  run_on_all("objective", {"--epsilon", "1", "--delta", "1e-6", "--method", "objpert"});
  const Json both = json({"account", folder_ / "one", folder_ / "two"});
  EXPECT_EQ(both["epsilon"], both["as_chosen_on_the_way"]);
  EXPECT_LT(both["fixed_ahead"].get<double>(), both["as_chosen_on_the_way"].get<double>());
  for (const char* const name : {"one", "two"})
    EXPECT_GT(both["fixed_ahead"].get<double>(), certificate(name)["epsilon"].get<double>());
  const Json ahead = json({"account", folder_ / "one", folder_ / "two", "--fixed-ahead"});
  EXPECT_EQ(ahead["epsilon"], both["fixed_ahead"]);
  const Json all = json({"account", folder_ / "one", folder_ / "two", folder_ / "filtered",
                         folder_ / "descent", folder_ / "objective", "--delta", "1e-5"});
  EXPECT_GT(all["fixed_ahead"].get<double>(), 1.0);
  // A plan that follows from a noisy row count was not fixed ahead.
  EXPECT_EQ(all["fixed_ahead"].get<double>(), all["as_chosen_on_the_way"].get<double>());
  EXPECT_EQ(all["runs"][2]["counted_as"], "dpsgd, planned by its noisy row count");
  EXPECT_NE(all["runs"][3]["counted_as"].get<std::string>().find("whole budget"),
            std::string::npos);
  EXPECT_NE(all["runs"][4]["counted_as"].get<std::string>().find("epsilon and delta"),
            std::string::npos);
  const Finished table = cudp({"account", folder_ / "one", folder_ / "two"});
  EXPECT_NE(table.out.find("as chosen on the way"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("--fixed-ahead"), std::string::npos) << table.out;

  const auto refused = [&](const Arguments& words, const std::string& why) {
    const Finished f = cudp(words);
    EXPECT_EQ(f.exit, 2) << f.out;
    EXPECT_NE(f.err.find(why), std::string::npos) << f.err;
  };
  refused({"account", folder_ / "one", folder_ / "one/release"}, "expected each run once");
  refused({"account", folder_ / "one", folder_ / "objective"}, "expected --delta where runs state");
  refused({"account", folder_ / "one", folder_ / "two", "--sigma", "1"}, "with several runs");
  refused({"account", folder_ / "one", "--fixed-ahead"}, "with a run");
  refused({"account", "--fixed-ahead", "--sigma", "1"}, "--fixed-ahead: expected several runs");
}

/// Only what was fixed before a run's first release counts as fixed ahead: a lost key, a noisy row
/// count or a refusal leave nothing but what the run states of itself.
TEST_F(AccountRun, NamesOfRunsMayHaveCommas) {
  ASSERT_EQ(cudp(training("one", {"--epsilon", "1", "--steps", "2", "--size-is-public"})).exit, 0);
  const std::string certificate = content_of(folder_ / "one/release/privacy.json");
  // Had the name been divided, two other runs would be counted.
  const std::string both = folder_ / "x," + (folder_ / "y");
  for (const std::string& name : {folder_ / "x", folder_ / "y", both}) {
    std::filesystem::create_directories(name);
    write_text(name + "/privacy.json", certificate);
  }
  const Json found = json({"account", folder_ / "one", both});
  ASSERT_EQ(found["runs"].size(), 2u) << found;
  EXPECT_EQ(found["runs"][1]["certificate"], both + "/privacy.json");
}

/// Random allocation has no divergences. With a private row count such runs count by their promise,
/// which is a part of every sum.
TEST_F(AccountRun, OfRunsWithRandomAllocationAndAPrivateRowCount) {
  const Arguments allocation = {"--epsilon", "1", "--epochs", "1", "--sampling", "allocation"};
  const auto run = [&](const std::string& name, const Arguments& more) {
    const Finished f = cudp(training(name, more));
    ASSERT_EQ(f.exit, 0) << f.err;
  };
  run("a1", allocation);
  run("a2", allocation);
  run("planned", with(allocation, {"--size-is-public"}));
  run("counted", {"--epsilon", "1", "--epochs", "1"});
  const Json two = json({"account", folder_ / "a1", folder_ / "a2", "--delta", "1e-4"});
  EXPECT_EQ(two["runs"][0]["counted_as"], "dpsgd, its epsilon and delta");
  EXPECT_GT(two["as_chosen_on_the_way"].get<double>(), 1.0);
  EXPECT_LE(two["fixed_ahead"].get<double>(), two["as_chosen_on_the_way"].get<double>());
  EXPECT_GT(two["fixed_ahead"].get<double>(), 1.0);
  const Json ahead =
      json({"account", folder_ / "a1", folder_ / "a2", "--delta", "1e-4", "--fixed-ahead"});
  EXPECT_EQ(ahead["epsilon"], two["fixed_ahead"]);
  // An epoch planned with a public count, beside a run that has divergences only.
  const Json mixed = json({"account", folder_ / "planned", folder_ / "counted", "--delta", "1e-4"});
  EXPECT_EQ(mixed["fixed_ahead"], mixed["as_chosen_on_the_way"]);
  EXPECT_GT(mixed["fixed_ahead"].get<double>(), 1.0);
}

TEST_F(AccountRun, OfSeveralTakesForPlannedOnlyWhatWas) {
  ASSERT_EQ(cudp(training("one", {"--size-is-public", "--sigma", "4", "--epochs", "1"})).exit, 0);
  ASSERT_EQ(cudp(training("two", {"--size-is-public", "--sigma", "4", "--epochs", "1"})).exit, 0);
  Arguments genes = training("genes", {"--epsilon", "1", "--method", "privgene"});
  genes.erase(std::ranges::find(genes, "--batch"), std::ranges::find(genes, "--batch") + 2);
  ASSERT_EQ(cudp(genes).exit, 0);
  const auto counted = [&](const Arguments& more) {
    return json(with({"account", folder_ / "one", folder_ / "two", "--delta", "1e-4"}, more));
  };
  const Json planned = counted({});
  const Json own = certificate("two");
  const auto forge = [&](const Json& changes) {
    Json changed = own;
    changed.update(changes);
    write_text(folder_ / "two/release/privacy.json", changed.dump());
  };
  // A budget of 3, of which the releases that were made would spend less.
  for (const Json& lost :
       {Json{{"epsilon", 3.0}, {"keys_lost", 1}, {"releases_repeated", 2}},
        Json{{"epsilon", 3.0}, {"keys_lost", 1}}, Json{{"epsilon", 3.0}, {"releases_repeated", 2}},
        Json{{"epsilon", 3.0}}}) {
    forge(lost);
    for (const Arguments& flag : {Arguments{}, Arguments{"--fixed-ahead"}}) {
      const Json found = counted(flag);
      EXPECT_GT(found["fixed_ahead"].get<double>(), 3.0) << lost;
      EXPECT_GT(found["fixed_ahead"].get<double>(), planned["fixed_ahead"].get<double>()) << lost;
      EXPECT_EQ(found["runs"][1]["counted_as"], "dpsgd, its epsilon and delta");
    }
  }
  forge(Json::object());
  EXPECT_EQ(counted({}), planned);

  // Its generations follow from the noisy count, and so does how much each choice spends.
  const Json chosen = json({"account", folder_ / "one", folder_ / "genes", "--delta", "1e-4"});
  EXPECT_EQ(chosen["runs"][1]["counted_as"], "privgene, its epsilon and delta");
  EXPECT_GT(chosen["fixed_ahead"].get<double>(), 1.0);

  // What a run spent that its count refused was not known ahead.
  Arguments large = training("refused", {"--epsilon", "1", "--steps", "2"});
  *std::ranges::find(large, "64") = "2000";
  const Finished refused = cudp(large);
  ASSERT_EQ(refused.exit, 2) << refused.err;
  const Json with_it = json({"account", folder_ / "one", folder_ / "refused"});
  EXPECT_EQ(with_it["fixed_ahead"], with_it["as_chosen_on_the_way"]);
  const Finished f = cudp({"account", folder_ / "one", folder_ / "refused", "--fixed-ahead"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("--fixed-ahead: expected runs that were not refused"), std::string::npos)
      << f.err;
}

/// A run that was cut off may have drawn all of its plan's noise.
TEST_F(AccountRun, OfAKilledRunCountsItsPlan) {
  ASSERT_EQ(cudp(training("whole", {"--size-is-public", "--sigma", "4", "--epochs", "3"})).exit, 0);
  fs::create_directories(fs::path(folder_ / "cut") / "release");
  Json cut = certificate("whole");
  cut["status"] = "not finished";
  std::ofstream(folder_ / "cut/release/privacy.json") << cut;
  ASSERT_EQ(cudp(training("other", {"--size-is-public", "--sigma", "4", "--epochs", "1"})).exit, 0);
  const Json a = json({"account", folder_ / "whole", folder_ / "other"});
  const Json b = json({"account", folder_ / "cut", folder_ / "other"});
  EXPECT_EQ(a["epsilon"], b["epsilon"]);
  EXPECT_NE(b["runs"][0]["counted_as"].get<std::string>().find("its plan"), std::string::npos);
  Json without = cut;
  without.erase("releases");
  std::ofstream(folder_ / "cut/release/privacy.json") << without;
  const Finished refused = cudp({"account", folder_ / "cut", folder_ / "other"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("expected what the run released, found none"), std::string::npos);
  cut["neighbouring_relation"] = "replace one example";
  std::ofstream(folder_ / "cut/release/privacy.json") << cut;
  EXPECT_EQ(cudp({"account", folder_ / "cut", folder_ / "other"}).exit, 2);
}

}  // namespace
}  // namespace cudp

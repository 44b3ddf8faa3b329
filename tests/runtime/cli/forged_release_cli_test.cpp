// cudp verify: which rules a release is checked by follows from its method and settings. A forger
// who leaves out a field, relabels the format or empties a list is found.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using ReleaseJson = nlohmann::ordered_json;

class ForgedRelease : public testing::Test {
 protected:
  void train(const Arguments& more) const {
    const Arguments words = with({"train", "--epsilon", "3", "--delta", "1e-5", "--threads", "1",
                                  "--device", "cpu", "--quiet", "--out", folder_ / "run"},
                                 more);
    const Finished f = run_cudp(folder_, words);
    ASSERT_EQ(f.exit, 0) << f.err;
  }
  void train_table(const Arguments& more) const {
    ASSERT_NO_FATAL_FAILURE(
        train(with({"--dataset", table_.table, "--schema", table_.schema}, more)));
  }
  /// Trains on texts whose labels follow from a word.
  void train_texts(const Arguments& more) const {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += i % 3 == 0 ? "1\ta good film\n" : "0\ta bad film\n";
    write_text(folder_ / "films.tsv", rows);
    write_text(folder_ / "words.txt", "good\nbad\nfilm\n");
    write_text(folder_ / "films.toml", R"(name = "films"
header = false
delimiter = "\t"
quotes = false
columns = [
  {name = "good", kind = "label", values = ["0", "1"]},
  {name = "text", kind = "text"},
]
)");
    write_text(folder_ / "model.toml", R"(name = "mean-of-words"
layers = [
  { type = "embedding", name = "embedding", trainable = true, columns = 3 },
  { type = "mean" },
  { type = "dense", name = "fc", out = "outputs" },
]
)");
    ASSERT_NO_FATAL_FAILURE(train(
        with({"--dataset", folder_ / "films.tsv", "--schema", folder_ / "films.toml", "--model",
              folder_ / "model.toml", "--tokens", "4", "--batch", "40", "--steps", "3"},
             more)));
  }

  /// Changes the certificate of a copy of the release, which has no ledger.
  void forge(const std::function<void(ReleaseJson&)>& how) const {
    fs::remove_all(folder_ / "forged");
    fs::copy(folder_ / "run/release", folder_ / "forged", fs::copy_options::recursive);
    const fs::path file = folder_ / "forged/privacy.json";
    ReleaseJson certificate = ReleaseJson::parse(content_of(file));
    how(certificate);
    write_text(file, certificate.dump(2) + "\n");
  }
  /// States that the run is for release, as if nothing spoke against it.
  void forge_for_release(const std::string& removed = "") const {
    forge([&](ReleaseJson& c) {
      ASSERT_EQ(c["for_release"], false);
      c["for_release"] = true;
      c["unsafe_flags"] = ReleaseJson::array();
      c.erase("not_for_release");
      c.erase(removed);
    });
    fs::remove(folder_ / "forged/NOT-FOR-RELEASE.txt");
  }
  Finished verify(const std::string& run, const Arguments& more = {}) const {
    return run_cudp(folder_, with({"verify", folder_ / run}, more));
  }
  /// Returns the differences that one check of the forged release has.
  std::string differences(const std::string& check) const {
    const Finished f = verify("forged", {"--json"});
    EXPECT_EQ(f.exit, 1) << f.out << f.err;
    const ReleaseJson answer = ReleaseJson::parse(f.out, nullptr, false);
    std::string found;
    if (answer.is_object())
      for (const ReleaseJson& c : answer["checks"])
        if (c["check"] == check && c["result"] == "differs") found += c["differences"].dump();
    return found;
  }
  void expect_found(const std::string& check, const std::string& part) const {
    const std::string found = differences(check);
    EXPECT_NE(found.find(part), std::string::npos) << check << ": " << found;
  }
  void expect_run_holds() const {
    const Finished f = verify("run");
    EXPECT_EQ(f.exit, 0) << f.out << f.err;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_, 400);
};

const Arguments kFewSteps = {"--model", "logistic", "--size-is-public", "--batch", "40",
                             "--steps", "5"};

TEST_F(ForgedRelease, ACertificateOfTheOlderFormatIsRefused) {
  ASSERT_NO_FATAL_FAILURE(train_table(kFewSteps));
  expect_run_holds();
  forge([](ReleaseJson& c) { c["format"] = "cudp privacy certificate 1"; });
  const Finished f = verify("forged");
  EXPECT_EQ(f.exit, 2) << f.out;
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
  EXPECT_NE(f.err.find("only the version of cudp that made the run reads it"), std::string::npos)
      << f.err;
  forge([](ReleaseJson& c) { c["format"] = "cudp privacy certificate 3"; });
  EXPECT_EQ(verify("forged").exit, 2);
}

/// The fields that a run's steps are checked by are missing, and so are its releases.
TEST_F(ForgedRelease, StepsWithoutReleasesAreFound) {
  ASSERT_NO_FATAL_FAILURE(train_table(kFewSteps));
  forge([](ReleaseJson& c) {
    c["epsilon"] = 0.01;
    c["epsilon_lower"] = 0.0;
    c["releases"] = ReleaseJson::array();
    for (const char* const key : {"steps_planned", "groups", "loss_interval"}) c.erase(key);
  });
  expect_found("fields", "steps_planned: expected it, found none");
  expect_found("releases", "expected those of the steps, found none");
  expect_found("releases", "steps, steps_planned: expected at least one, found none");
  // The rules of steps stay in force.
  expect_found("settings", "steps: expected 5, found 0");
}

/// Texts of the program are finitely many: none can be continued by a claim.
TEST_F(ForgedRelease, NoTextOfTheProgramCanBeAClaim) {
  ASSERT_NO_FATAL_FAILURE(train_table({"--model", "logistic", "--batch", "40", "--steps", "5",
                                       "--epsilon", "25", "--allow-weak-privacy"}));
  expect_run_holds();
  forge([](ReleaseJson& c) {
    EXPECT_TRUE(c["groups"].is_string());
    c["groups"] = "not stated: every group has the epsilon of one row";
  });
  expect_found("fields", "groups: expected a list, or 'not stated: releases that depend");
  forge([](ReleaseJson& c) {
    ASSERT_EQ(c["warnings"].size(), 1u);
    c["warnings"][0] = "epsilon 25 is above the 0.1 that an audit measured";
  });
  expect_found("for release", "warnings: expected");
  for (const char* const name : {"version", "commit", "compiler", "backend", "program"}) {
    forge([&](ReleaseJson& c) { c["build"][name] = "cudp 1. An audit measured 0.1"; });
    expect_found("fields", std::string("build.") + name);
  }
  forge([](ReleaseJson& c) { c["accountant_version"] = "1. An audit measured 0.1"; });
  expect_found("fields", "accountant_version");
  forge([](ReleaseJson& c) {
    c["for_release"] = false;
    c["unsafe_flags"] = {"nothing: an audit found no leak"};
    c["not_for_release"] = c["unsafe_flags"];
  });
  write_text(folder_ / "forged/NOT-FOR-RELEASE.txt", "x");
  expect_found("for release", "unsafe_flags: expected flags of the program");
}

/// A name that the user chose stands in quotation marks, which it cannot end.
TEST_F(ForgedRelease, NoNameAddsASentenceToAPage) {
  ASSERT_NO_FATAL_FAILURE(train_table(kFewSteps));
  forge([](ReleaseJson& c) { c["dataset"] = "rows\" more or less. An audit\nmeasured 0.1: \""; });
  ASSERT_EQ(run_cudp(folder_, {"report", folder_ / "forged"}).exit, 0);
  std::string page;
  for (const char c : content_of(folder_ / "forged/PRIVACY.txt"))
    if (c != '\n' && c != ' ')
      page += c;
    else if (!page.ends_with(' '))
      page += ' ';
  EXPECT_NE(page.find("\"rows' more or less. An audit measured 0.1: '\""), std::string::npos)
      << page;
  EXPECT_EQ(page.find("rows\" more"), std::string::npos) << page;
}

TEST_F(ForgedRelease, AWeakGeneratorIsThatOfTheSettings) {
  ASSERT_NO_FATAL_FAILURE(train_table(with(kFewSteps, {"--rng", "philox"})));
  forge_for_release("rng");
  expect_found("for release", "for_release: expected false");
  expect_found("settings", "rng: expected philox, found none");
}

TEST_F(ForgedRelease, AProofForRealNumbersIsThatOfTheMethod) {
  const Arguments linear = {"--model", "logistic", "--size-is-public", "--method"};
  ASSERT_NO_FATAL_FAILURE(train_table(with(linear, {"objpert"})));
  forge_for_release("arithmetic");
  expect_found("for release", "unsafe_flags: expected one");
  fs::remove_all(folder_ / "run");
  ASSERT_NO_FATAL_FAILURE(
      train_table(with(linear, {"dp-agd", "--splits", "6", "--noisy-min", "laplace"})));
  forge_for_release("arithmetic");
  expect_found("for release", "unsafe_flags: expected one");
}

TEST_F(ForgedRelease, AVocabularyThatIsNotDeclaredPublicNeedsItsFlag) {
  ASSERT_NO_FATAL_FAILURE(train_texts({"--vocabulary", folder_ / "words.txt"}));
  expect_run_holds();
  forge_for_release();
  expect_found("files", "expected 'vocabulary not declared public'");
  fs::remove_all(folder_ / "run");
  ASSERT_NO_FATAL_FAILURE(train_texts({"--accept-private-bounds"}));
  expect_run_holds();
  forge_for_release();
  expect_found("files", "expected 'vocabulary counted from private text'");
  fs::remove_all(folder_ / "run");
  ASSERT_NO_FATAL_FAILURE(
      train_texts({"--vocabulary", folder_ / "words.txt", "--vocabulary-is-public"}));
  expect_run_holds();
}

TEST_F(ForgedRelease, PrivateBoundsOfArraysNeedTheirFlag) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 200; ++i) {
    y.push_back(i % 2);
    x.insert(x.end(), {static_cast<float>(i % 2), static_cast<float>(i % 7)});
  }
  write_text(folder_ / "x.npy", npy_floats(y.size(), x));
  write_text(folder_ / "y.npy", npy_labels(y));
  ASSERT_NO_FATAL_FAILURE(train(with({"--dataset", folder_ / "x.npy", "--labels", folder_ / "y.npy",
                                      "--classes", "2", "--accept-private-bounds"},
                                     kFewSteps)));
  expect_run_holds();
  forge_for_release();
  expect_found("files", "expected 'bounds, categories or classes were read from private rows'");
}

/// Whether rows completed a table's schema is not to be seen in it, so verify names the question.
TEST_F(ForgedRelease, PrivateBoundsOfTablesAreNamedAsTakenOnTrust) {
  ASSERT_NO_FATAL_FAILURE(train_table(with(kFewSteps, {"--accept-private-bounds"})));
  const Finished f = verify("run");
  EXPECT_EQ(f.exit, 0) << f.out << f.err;
  EXPECT_NE(f.out.find("taken on trust: that the schema was complete"), std::string::npos) << f.out;
  fs::remove_all(folder_ / "run");
  ASSERT_NO_FATAL_FAILURE(train_table(kFewSteps));
  EXPECT_EQ(verify("run").out.find("the schema was complete"), std::string::npos);
}

/// Returns `text` with the line of `key` replaced by `line`.
std::string with_line(const std::string& text, const std::string& key, const std::string& line) {
  std::string changed;
  for (const std::string& l : lines_of(text))
    changed += l.starts_with(key + " = ") ? line : l + "\n";
  EXPECT_NE(changed, text) << key;
  return changed;
}

/// How many rows a named data set has is published.
TEST_F(ForgedRelease, MoreRowsThanPublishedAreFound) {
  ASSERT_NO_FATAL_FAILURE(train({"--dataset", "glyphs", "--model", "logistic", "--batch", "64",
                                 "--steps", "2", "--method", "norm-bound"}));
  expect_run_holds();
  forge([](ReleaseJson& c) {
    ASSERT_EQ(c["training_examples"], 12'000);
    c["training_examples"] = 90'000;
  });
  expect_found("files", "training_examples: expected 12000, as published of glyphs, found 90000");
}

/// The number of a named table's rows, and their test rows, are public; those of a user's table
/// with its name are not.
TEST_F(ForgedRelease, ATableWithTheNameOfAPublishedOneIsFound) {
  ASSERT_NO_FATAL_FAILURE(train_table(kFewSteps));
  forge([](ReleaseJson&) {});
  std::string settings = content_of(folder_ / "run/release/config.toml");
  settings = with_line(settings, "dataset", "dataset = \"adult\"\n");
  settings = with_line(settings, "size-is-public", "size-is-public = false\n");
  write_text(folder_ / "forged/config.toml", settings);
  expect_found("files", "dataset: expected adult as the settings name, found");
  expect_found("files", "training_examples: expected 32561");
  expect_found("files", "schema: expected none with adult");
  expect_found("files", "schema: expected the published one of adult, found another");
  write_text(folder_ / "forged/config.toml",
             with_line(settings, "dataset", "dataset = \"mnist\"\n"));
  expect_found("files", "schema: expected none of mnist, found another");
}

/// Objective perturbation is proved for single rows.
TEST_F(ForgedRelease, UnitsOfObjectivePerturbationAreFound) {
  ASSERT_NO_FATAL_FAILURE(
      train_table({"--model", "logistic", "--size-is-public", "--method", "objpert"}));
  expect_run_holds();
  forge([](ReleaseJson& c) {
    c["unit"] = "who";
    c["max_rows"] = 2;
    c["neighbouring_relation"] =
        "add or remove one unit: all rows with one text in the column 'unit', of which the first "
        "max_rows are used";
  });
  expect_found("epsilon", "max_rows: expected 1, as objective perturbation is proved");
}

/// The bound of norm-bound follows from the model: with a smaller one gradients are cut.
TEST_F(ForgedRelease, TheBoundOfNormsIsThatOfTheModel) {
  ASSERT_NO_FATAL_FAILURE(train_table(with(kFewSteps, {"--method", "norm-bound"})));
  expect_run_holds();
  forge([](ReleaseJson& c) {
    c["sensitivity"] = 0.1 * c["sensitivity"].get<double>() / c["C"].get<double>();
    c["noise_std"] = c["sigma"].get<double>() * c["sensitivity"].get<double>();
    c["C"] = 0.1;
  });
  write_text(folder_ / "forged/config.toml",
             with_line(content_of(folder_ / "run/release/config.toml"), "clip", "clip = 0.1\n"));
  expect_found("model", "the longest gradient of this model, found 0.1");
}

/// The noise shrinks with the sensitivity, so that their ratio stays what was paid for.
TEST_F(ForgedRelease, SensitivitiesAreThoseOfTheMethod) {
  const auto scale = [&](const std::string& name, double factor) {
    forge([&](ReleaseJson& c) {
      std::size_t scaled = 0;
      for (ReleaseJson& value : c["noisy_values"]) {
        if (value["what"].get<std::string>().find(name) == std::string::npos) continue;
        for (const char* const key : {"sensitivity", "noise_std"})
          value[key] = value[key].get<double>() * factor;
        ++scaled;
      }
      EXPECT_GT(scaled, 0u) << name;
    });
  };
  const std::pair<const char*, Arguments> cases[] = {
      {"moments", with(kFewSteps, {"--features", "pca", "--feature-dimensions", "2"})},
      {"norms", with(kFewSteps, {"--method", "dpis"})},
      {"count of", with(kFewSteps, {"--method", "dpsgd-quantile"})},
  };
  for (const auto& [name, words] : cases) {
    fs::remove_all(folder_ / "run");
    ASSERT_NO_FATAL_FAILURE(train_table(words));
    expect_run_holds();
    scale(name, 0.5);
    expect_found("releases", "sensitivity, at least");
    scale(name, 2.0);
    expect_found("releases", "sensitivity, at most");
  }
  fs::remove_all(folder_ / "run");
  ASSERT_NO_FATAL_FAILURE(train_table({"--method", "outpert"}));
  expect_run_holds();
  scale("minimum", 8.0);
  const fs::path file = folder_ / "forged/privacy.json";
  ReleaseJson certificate = ReleaseJson::parse(content_of(file));
  for (const char* const key : {"sensitivity", "noise_std"})
    certificate[key] = certificate[key].get<double>() * 8.0;
  write_text(file, certificate.dump(2) + "\n");
  expect_found("releases", "sensitivity, at most");
}

/// On CUDA the norm of a layer with 490,000 weights may be too small by 0.18 %.
TEST_F(ForgedRelease, TheRoundingOfAWideModelIsAllowedAndNoMore) {
  write_text(folder_ / "wide.toml", R"(name = "wide"
activation = "tanh"
layers = [
  { type = "dense", name = "a", out = 700 },
  { type = "activation" },
  { type = "dense", name = "b", out = 700 },
  { type = "activation" },
  { type = "dense", name = "c", out = "outputs" },
]
)");
  ASSERT_NO_FATAL_FAILURE(train_table(
      {"--model", folder_ / "wide.toml", "--size-is-public", "--batch", "40", "--steps", "2"}));
  expect_run_holds();
  const auto state = [&](double rounding) {
    forge([&](ReleaseJson& c) {
      c["sensitivity"] = c["C"].get<double>() * (1.0 + rounding);
      c["noise_std"] = c["sigma"].get<double>() * c["sensitivity"].get<double>();
    });
  };
  state(0.002);
  for (const char* const check : {"noise", "releases", "model"}) EXPECT_EQ(differences(check), "");
  state(0.0025);
  expect_found("model", "sensitivity: expected at most");
}

}  // namespace
}  // namespace cudp

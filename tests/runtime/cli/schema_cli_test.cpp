// From a table to its schema to a training, and trainings on matrices of features.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class SchemaCli : public testing::Test {
 protected:
  SchemaCli() {
    std::mt19937 random(11);
    rows_ = "patient_id,age,town,admitted,\"blood pressure\",died\n";
    for (int i = 0; i < 400; ++i) {
      const auto age = 20 + random() % 70;
      rows_ += "P" + std::to_string(i) + "," + (i % 20 == 0 ? "" : std::to_string(age)) + "," +
               (i % 3 == 0 ? "\"Sk\xc3\xb6vde, V\xc3\xa4st\""
                           : "\xc5\x81\xc3\xb3"
                             "d\xc5\xba") +
               ",2019-0" + std::to_string(1 + i % 9) + "-1" + std::to_string(i % 10) + "," +
               (i % 25 == 0 ? "NA" : std::to_string(100 + random() % 60) + ".5") +
               (age > 70 ? ",yes\n" : ",no\n");
    }
    write_text(table(), rows_);
  }

  std::string table() const { return folder_ / "patients.csv"; }
  std::string schema() const { return folder_ / "patients.toml"; }
  Finished cudp(const Arguments& words) const { return run_cudp(folder_, words); }
  Finished train(const std::string& out, const Arguments& more) const {
    return cudp(
        with({"train",   "--epsilon", "2",       "--delta", "1e-5",   "--model",    "logistic",
              "--batch", "64",        "--steps", "8",       "--seed", "3",          "--threads",
              "1",       "--device",  "cpu",     "--quiet", "--out",  folder_ / out},
             more));
  }
  nlohmann::json certificate(const std::string& run) const {
    return nlohmann::json::parse(content_of(folder_.path() / run / "release/privacy.json"));
  }

  TemporaryFolder folder_;
  std::string rows_;
};

TEST_F(SchemaCli, ADraftFromPublicRowsTrains) {
  const Finished draft = cudp({"schema", table(), "--public", "--out", schema()});
  ASSERT_EQ(draft.exit, 0) << draft.err;
  EXPECT_EQ(draft.out, "");
  const Finished trained = train("run", {"--dataset", table(), "--schema", schema()});
  ASSERT_EQ(trained.exit, 0) << trained.err << content_of(schema());
  const nlohmann::json c = certificate("run");
  ASSERT_EQ(c.at("assumptions").size(), 2u);
  const auto begins = [&](std::size_t i, const char* words) {
    return c["assumptions"][i].get<std::string>().starts_with(words);
  };
  EXPECT_TRUE(begins(0, "a row is what the table's quotes and line breaks make one"));
  EXPECT_TRUE(begins(1, "every row of the table can be read"));
  const Finished eval = cudp({"eval", folder_ / "run"});
  EXPECT_EQ(eval.exit, 2);
  EXPECT_EQ(eval.err,
            "cudp: eval " + (folder_ / "run") +
                ": give --dataset, the rows to score; the model was trained on 'patients', "
                "and does not know where that is\n");
  // What is on stdout is the same draft.
  EXPECT_EQ(cudp({"schema", table(), "--public"}).out, content_of(schema()));
}

/// Of a table of persons a certificate is for rows, unless the schema says whose they are. With
/// epsilon 8 the row count of persons has noise of standard deviation 49, so that a count below the
/// batch of 64, which is refused, is 6.8 deviations away.
TEST_F(SchemaCli, WhosePrivacyItIsIsSaid) {
  ASSERT_EQ(cudp({"schema", table(), "--public", "--out", schema()}).exit, 0);
  const auto start = [&](const std::string& out) {
    const Finished f = cudp(
        {"train",   "--dataset", table(),   "--schema", schema(),  "--epsilon", "8",
         "--delta", "1e-5",      "--model", "logistic", "--batch", "64",        "--steps",
         "2",       "--threads", "1",       "--device", "cpu",     "--out",     folder_ / out});
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.err;
  };
  const std::string rows = start("rows");
  EXPECT_NE(rows.find("privacy is that of each row; if a person can have several rows, set unit = "
                      "\"patient_id\" and max_rows in the schema\n"),
            std::string::npos)
      << rows;
  const std::string account = cudp({"account", folder_ / "rows"}).out;
  EXPECT_NE(account.find("This run protects single rows. A person with several rows has a"),
            std::string::npos)
      << account;
  const std::string two = cudp({"account", folder_ / "rows", folder_ / "rows/release"}).err;
  EXPECT_NE(two.find("found it twice"), std::string::npos) << two;
  std::string text = content_of(schema());
  for (const char* line : {"# unit = ", "# max_rows = "}) text.erase(text.find(line), 2);
  const std::string id = "{name = \"patient_id\", kind = \"";
  text.replace(text.find(id) + id.size(), 2, "ignore");
  write_text(schema(), text);
  const std::string persons = start("persons");
  EXPECT_EQ(persons.find("privacy is that of each row"), std::string::npos) << persons;
  EXPECT_NE(persons.find("the unit of privacy is up to 4 rows"), std::string::npos) << persons;
  EXPECT_EQ(cudp({"account", folder_ / "persons"}).out.find("privacy of each row"),
            std::string::npos);
  EXPECT_NE(cudp({"account", "--q", "0.01", "--sigma", "2", "--steps", "10", "--delta", "1e-5"})
                .out.find("each row; if a person can have up to k rows: --group k"),
            std::string::npos);
}

TEST_F(SchemaCli, ADraftFromTheHeaderSaysWhatIsToBeStated) {
  const Finished draft = cudp({"schema", table(), "--out", schema()});
  ASSERT_EQ(draft.exit, 0) << draft.err;
  const Finished trained = train("run", {"--dataset", table(), "--schema", schema()});
  EXPECT_EQ(trained.exit, 2);
  EXPECT_EQ(std::count(trained.err.begin(), trained.err.end(), '\n'), 1) << trained.err;
  const std::size_t kinds = trained.err.find(
      "patients.toml: 4 columns need a kind: 'age', 'town', 'admitted', 'blood pressure'; 1 column "
      "needs public bounds, categories or classes: 'died'; state what is known in public");
  EXPECT_NE(kinds, std::string::npos) << trained.err;
  // The way around comes last, with what it costs.
  EXPECT_GT(trained.err.find("--accept-private-bounds"), kinds) << trained.err;
  EXPECT_NE(trained.err.find("the run is then not for release)\n"), std::string::npos)
      << trained.err;
  const Finished missing =
      train("run", {"--dataset", table(), "--schema", schema(), "--malformed", "missing"});
  EXPECT_EQ(missing.err, trained.err);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

/// Whether rows were malformed, and how many, shows nowhere.
TEST_F(SchemaCli, MalformedRowsThatAreMissingShowNowhere) {
  ASSERT_EQ(cudp({"schema", table(), "--public", "--out", schema()}).exit, 0);
  std::string text = content_of(schema());
  const auto fill = [&](const std::string& behind, const std::string& value) {
    const std::size_t at = text.find(behind);
    ASSERT_NE(at, std::string::npos) << text;
    text.insert(at + behind.size(), ", fill = " + value);
  };
  Arguments words = {"--dataset", table(), "--schema", schema(), "--malformed", "missing"};
  const Finished early = train("early", words);
  EXPECT_EQ(early.exit, 2);
  EXPECT_NE(early.err.find("column 'admitted': expected a 'fill' for --malformed missing"),
            std::string::npos)
      << early.err;
  fill("format = \"%Y-%m-%d\"", "\"2019-06-01\"");
  fill("values = [\"no\", \"yes\"]", "\"no\"");
  write_text(schema(), text);
  const Finished usual = train("usual", words);
  ASSERT_EQ(usual.exit, 0) << usual.err;
  std::string changed = rows_;
  for (int i = 0; i < 40; ++i) {
    const std::size_t at = changed.find("\nP" + std::to_string(i * 9) + ",") + 1;
    changed.replace(at, changed.find('\n', at) - at,
                    i % 2 == 0 ? "P,old,?" : "P,1e999,\xff,now,\"1\"2,maybe");
  }
  write_text(table(), changed);
  const Finished other = train("other", words);
  ASSERT_EQ(other.exit, 0) << other.err;
  EXPECT_EQ(certificate("usual").at("assumptions"), certificate("other").at("assumptions"));
  words.back() = "refuse";
  const Finished refused = train("refused", words);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("20 errors, and perhaps more after them"), std::string::npos)
      << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 21) << refused.err;
}

TEST_F(SchemaCli, ShippedSchemasHaveNames) {
  std::string rows;
  for (int i = 0; i < 300; ++i)
    rows +=
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
        "Male, 2174, 0, 40, United-States, " +
        std::string(i % 3 == 0 ? ">50K\n" : "<=50K\n");
  write_text(table(), rows);
  const Finished trained = train("run", {"--dataset", table(), "--schema", "adult"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  EXPECT_NE(content_of(folder_.path() / "run/release/config.toml").find("schema = \"adult\""),
            std::string::npos);
}

TEST_F(SchemaCli, MatricesTrainAndTheModelSaysHowTheyAreNormalised) {
  std::mt19937 random(5);
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 500; ++i) {
    y.push_back(static_cast<std::int64_t>(random() % 3));
    for (int k = 0; k < 6; ++k)
      x.push_back(static_cast<float>(random() % 100) / 50.0f - 1.0f +
                  (k == y.back() ? 3.0f : 0.0f));
  }
  write_text(folder_ / "xy.npz", zip({{"x.npy", npy_floats(500, x)}, {"y.npy", npy_labels(y)}}));
  write_text(folder_ / "x.npy", npy_floats(500, x));
  write_text(folder_ / "y.npy", npy_labels(y));
  const Arguments how = {"--classes", "3", "--normalise", "unit"};
  const Finished archive = train("archive", with({"--dataset", folder_ / "xy.npz"}, how));
  ASSERT_EQ(archive.exit, 0) << archive.err;
  const Finished files =
      train("files", with({"--dataset", folder_ / "x.npy", "--labels", folder_ / "y.npy"}, how));
  ASSERT_EQ(files.exit, 0) << files.err;
  EXPECT_EQ(certificate("archive").at("normalise").at("how"), "unit");
  const std::string model = content_of(folder_.path() / "archive/release/model.safetensors");
  EXPECT_NE(model.find("\"normalise\":\"unit\""), std::string::npos);
  const Finished verified = cudp({"verify", folder_ / "archive"});
  EXPECT_EQ(verified.exit, 0) << verified.out;
}

}  // namespace
}  // namespace cudp

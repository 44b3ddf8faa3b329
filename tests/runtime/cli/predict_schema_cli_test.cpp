// The schema of a released model, and one that is given for new rows: `cudp predict` and `cudp
// eval`.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/predict_fixture.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What differs between the schema that a model was trained with and one given for new rows.
struct Difference {
  const char* from;
  const char* to;
  std::vector<std::string> words;
};

TEST_F(Predict, RefusesASchemaThatIsNotTheModels) {
  train();
  const std::vector<Difference> all = {
      {R"(["nein", "ja"])",
       R"(["ja", "nein"])",
       {"column 'died'", "expected 'nein' as class 1", "found 'ja'"}},
      {R"(["nein", "ja"])", R"(["nein", "ja", "?"])", {"expected none as class 3", "found '?'"}},
      {"max = 95", "max = 100", {"column 'age'", "expected bounds 18 to 95", "bounds 18 to 100"}},
      {"fill = 50", "fill = 51", {"column 'age'", "fill 50", "fill 51"}},
      {"fill = 50", "fill = 50, edges = [30]", {"column 'age'", "edges []", "edges [30]"}},
      {"fill = 50", "fill = 50, transform = \"log\"", {"column 'age'", "transform linear"}},
      {R"("Süd", "Nord", "a, b")",
       R"("Nord", "Süd", "a, b")",
       {"column 'ward'", "expected 'Süd' as category 1", "found 'Nord'"}},
      {R"("Süd", "Nord", "a, b")", R"("Süd", "Nord")", {"expected 'a, b' as category 3"}},
      {R"({name = "age", kind = "numeric", min = 18, max = 95, fill = 50})",
       R"({name = "age", kind = "ignore"})",
       {"expected 'age'", "found 'ward'"}},
      {R"({name = "patient", kind = "id"})",
       R"({name = "patient", kind = "numeric", min = 0, max = 1})",
       {"feature column 1", "expected 'Ärztin'", "found 'patient'"}},
      {R"(name = "ward", kind = "categorical", values = ["Süd", "Nord", "a, b"])",
       R"(name = "ward", kind = "numeric", min = 0, max = 1)",
       {"column 'ward'", "expected kind categorical", "found numeric"}},
      {R"(name = "died")", R"(name = "dead")", {"expected a label 'died'", "found 'dead'"}},
  };
  for (const Difference& d : all) {
    std::string schema = kScoredPatientsSchema;
    ASSERT_NE(schema.find(d.from), std::string::npos) << d.from;
    schema.replace(schema.find(d.from), std::string(d.from).size(), d.to);
    write_text(folder_ / "other.toml", schema);
    for (const char* command : {"eval", "predict"}) {
      std::vector<std::string> a = {command,     folder_ / "run",
                                    "--dataset", folder_ / "new.csv",
                                    "--schema",  folder_ / "other.toml"};
      if (command == std::string("predict")) a.insert(a.end(), {"--out", folder_ / "none.csv"});
      SCOPED_TRACE(d.to);
      std::vector<std::string> words = d.words;
      words.push_back((folder_ / "run") + " was trained with");
      expect_refused(a, words);
    }
  }
}

/// The file may be written otherwise, and a schema may leave open what the model knows.
TEST_F(Predict, TakesASchemaOfAnotherFileOfTheSameColumns) {
  train();
  const std::vector<std::string> expected = predictions();
  std::string text = fresh_.csv;
  for (std::size_t at = 0; (at = text.find("\"a, b\"", at)) != std::string::npos; ++at)
    text.replace(at, 6, "a# b");
  std::ranges::replace(text, ',', ';');
  std::ranges::replace(text, '#', ',');
  write_text(folder_ / "new.csv", text);
  write_text(folder_ / "other.toml", R"(delimiter = ";"
columns = [
  {name = "patient", kind = "id"},
  {name = "Ärztin", kind = "categorical", unknown = "zeros"},
  {name = "age", kind = "numeric", fill = 50},
  {name = "ward", kind = "categorical"},
  {name = "died", kind = "label"},
]
)");
  EXPECT_EQ(predictions({"--schema", folder_ / "other.toml"}), expected);
}

/// Columns that give no feature are not needed, and others are dropped; a schema of another model
/// that lies beside the table is left alone. Each is told in one line.
TEST_F(Predict, NeedsTheColumnsOfItsFeaturesAlone) {
  train();
  const std::vector<std::string> expected = predictions();
  std::string few = "ward,Ärztin,weight,age,died,\n";
  const std::vector<std::string> lines = lines_of(fresh_.csv);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string& l = lines[i];  // doctor,age,ward,died,patient; a ward may have a comma
    const std::size_t doctor = l.find(','), age = l.find(',', doctor + 1);
    const std::size_t patient = l.rfind(','), died = l.rfind(',', patient - 1);
    few += l.substr(age + 1, died - age - 1) + "," + l.substr(0, doctor) + ",70," +
           l.substr(doctor + 1, age - doctor - 1) + "," + l.substr(died + 1, patient - died - 1) +
           ",\n";
  }
  write_text(folder_ / "new.csv", few);
  write_text(folder_ / "new.csv.schema.toml", R"(columns = [
  {name = "age", kind = "numeric", min = 0, max = 1},
  {name = "weight", kind = "label", values = ["a", "b"]},
])");
  const Finished f = predict({"--dataset", folder_ / "new.csv", "--out", folder_ / "out.csv"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("the schema next to the table is not used: " +
                       (folder_ / "new.csv.schema.toml") + ", "),
            std::string::npos)
      << f.err;
  EXPECT_NE(f.err.find("new.csv: 2 columns that the model was not trained with are not used: "
                       "'weight', ''\n"),
            std::string::npos)
      << f.err;
  const std::vector<std::string> found = lines_of(content_of(folder_ / "out.csv"));
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(found[0], "row,prediction,p_nein,p_ja");  // there are no ids
  for (std::size_t i = 1; i < found.size(); ++i)
    ASSERT_EQ(found[i].substr(found[i].find(',')), expected[i].substr(expected[i].find(',')));
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_NE(e.err.find("are not used: 'weight', ''"), std::string::npos) << e.err;
  // One that cannot be read is left alone, too; but not one that is given.
  write_text(folder_ / "new.csv.schema.toml", "columns = [");
  EXPECT_EQ(
      Json::parse(cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv", "--json"}).out),
      Json::parse(e.out));
  const Finished given = cudp({"eval", folder_ / "run", "--dataset", folder_ / "new.csv",
                               "--schema", folder_ / "new.csv.schema.toml"});
  EXPECT_EQ(given.exit, 2) << given.err;
}

TEST_F(Predict, ModelsAndReleasesKnowTheirInputs) {
  train("run", {"--seed", "3"});
  train("secret");
  const TensorFile model =
      decode_safetensors(content_of(folder_ / "run/release/model.safetensors"), "model");
  EXPECT_EQ(model.metadata.at("schema"), content_of(folder_ / "run/release/schema.toml"));
  EXPECT_EQ(Json::parse(model.metadata.at("feature-names")),
            (Json{"Ärztin=München", "Ärztin=Köln", "age", "ward=Süd", "ward=Nord", "ward=a, b"}));
  EXPECT_FALSE(model.metadata.contains("pixel-scale"));
  const std::string note = content_of(folder_ / "run/release/NOT-FOR-RELEASE.txt");
  EXPECT_NE(note.find("Not for release"), std::string::npos);
  EXPECT_NE(note.find("seed"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "secret/release/NOT-FOR-RELEASE.txt"));
}

/// What a schema left open was read from private rows: the release holds it, and says that it is
/// not for release. With it the model needs no schema either.
TEST_F(Predict, BoundsOfPrivateRowsAreReleasedOnlyAsAcceptedAndFlagged) {
  const SmallTable table = write_small_table(folder_);
  const Finished f = cudp({"train", "--dataset", table.table, "--accept-private-bounds", "--model",
                           "logistic", "--epsilon", "3", "--delta", "1e-5", "--batch", "64",
                           "--steps", "60", "--threads", "1", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(content_of(folder_ / "run/release/NOT-FOR-RELEASE.txt").find("read from private rows"),
            std::string::npos);
  EXPECT_NE(content_of(folder_ / "run/release/schema.toml").find("max = 99"), std::string::npos);
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", table.test, "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_GT(Json::parse(e.out)["test_accuracy"], 0.6);
}

/// The bounds that a run read from private rows are no more public in its schema.
TEST_F(Predict, ASchemaThatWasReadFromPrivateRowsIsAcceptedAndFlaggedAgain) {
  const SmallTable table = write_small_table(folder_);
  const auto train = [&](const Arguments& more) {
    return cudp(
        with({"train", "--dataset", table.table, "--model", "logistic", "--epsilon", "3", "--delta",
              "1e-5", "--batch", "64", "--steps", "3", "--threads", "1", "--quiet"},
             more));
  };
  ASSERT_EQ(train({"--accept-private-bounds", "--out", folder_ / "run"}).exit, 0);
  const std::string schema = folder_ / "run/release/schema.toml";
  fs::create_symlink(schema, folder_ / "link.toml");
  for (const std::string& file : {schema, folder_ / "link.toml"}) {
    const Finished refused = train({"--schema", file, "--out", folder_ / "second"});
    EXPECT_EQ(refused.exit, 2) << refused.err;
    EXPECT_NE(refused.err.find(file + ": expected public bounds, categories and classes, found "
                                      "those that a run read from private rows"),
              std::string::npos)
        << refused.err;
    EXPECT_FALSE(fs::exists(folder_ / "second"));
  }
  const Finished accepted =
      train({"--schema", schema, "--accept-private-bounds", "--out", folder_ / "second"});
  ASSERT_EQ(accepted.exit, 0) << accepted.err;
  const Json certificate = Json::parse(content_of(folder_ / "second/release/privacy.json"));
  EXPECT_EQ(certificate["for_release"], false);
  EXPECT_EQ(certificate["unsafe_flags"],
            Json({"bounds, categories or classes were read from private rows"}));
  // A schema that no run read from rows is as public as it was.
  ASSERT_EQ(train({"--schema", table.schema, "--out", folder_ / "third"}).exit, 0);
  const Finished again =
      train({"--schema", folder_ / "third/release/schema.toml", "--out", folder_ / "fourth"});
  EXPECT_EQ(again.exit, 0) << again.err;
}

}  // namespace
}  // namespace cudp

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

using Json = nlohmann::json;

/// Texts whose label is which of two words they have, vectors for these words, and a schema.
struct SmallTexts {
  explicit SmallTexts(const TemporaryFolder& folder)
      : table(folder / "texts.tsv"),
        test(folder / "test.tsv"),
        schema(folder / "schema.toml"),
        vectors(folder / "vectors.txt"),
        words(folder / "words.txt") {
    const auto rows = [](int count) {
      std::string text;
      for (int i = 0; i < count; ++i) {
        const bool good = i * 7 % 3 == 0;
        text += good ? "1\tit was a good film number " : "0\ta bad film it was number ";
        text += std::to_string(i % 50) + "\n";
      }
      return text;
    };
    write_text(table, rows(600));
    write_text(test, rows(200));
    write_text(schema, R"(name = "films"
header = false
delimiter = "\t"
quotes = false
columns = [
  {name = "good", kind = "label", values = ["0", "1"]},
  {name = "text", kind = "text"},
]
)");
    write_text(vectors, "good 1 0 0\nbad -1 0 0\nfilm 0 1 0\nit 0 0 1\nwas 0 0.5 0.5\n");
    write_text(words, "good\nbad\nfilm\n");
  }

  std::vector<std::string> train(const std::string& out,
                                 const std::vector<std::string>& more) const {
    return with({"train",       "--dataset", table,       "--schema", schema,
                 "--test-data", test,        "--out",     out,        "--epsilon",
                 "8",           "--delta",   "1e-5",      "--batch",  "128",
                 "--epochs",    "8",         "--lr",      "0.5",      "--seed",
                 "1",           "--json",    "--threads", "2",        "--test-data-is-public",
                 "--tokens",    "8"},
                more);
  }
  std::vector<std::string> eval(const std::string& run,
                                const std::vector<std::string>& more) const {
    return with({"eval", run, "--dataset", test, "--schema", schema, "--json"}, more);
  }

  std::string table, test, schema, vectors, words;
};

double accuracy_of(const Finished& done) {
  EXPECT_EQ(done.exit, 0) << done.err;
  return done.exit == 0 ? Json::parse(done.out)["test_accuracy"].get<double>() : -1.0;
}

TEST(TextCli, AModelIsUsedWithItsWordsAndVectors) {
  const TemporaryFolder folder;
  const SmallTexts texts(folder);
  const std::string run = folder / "run";
  const double trained = accuracy_of(
      run_cudp(folder, texts.train(run, {"--embedding", texts.vectors, "--model", "imdb-mean"})));
  EXPECT_GT(trained, 0.9);
  EXPECT_EQ(content_of(run + "/release/vocabulary.txt"), "good\nbad\nfilm\nit\nwas\n");
  const Json certificate = Json::parse(content_of(run + "/release/privacy.json"));
  EXPECT_TRUE(certificate["unsafe_flags"].empty());
  // The words of a file of one's own are in the model.
  EXPECT_EQ(certificate["assumptions"].back(),
            "the vectors of --embedding and their words are public: no private text decided them");
  const Finished verified = run_cudp(folder, {"verify", run});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
  // A certificate that leaves the sentence out is wrong.
  const std::string forged = folder / "forged";
  std::filesystem::copy(run + "/release", forged, std::filesystem::copy_options::recursive);
  auto stated = nlohmann::ordered_json::parse(content_of(forged + "/privacy.json"));
  stated["assumptions"].erase(stated["assumptions"].size() - 1);
  write_text(forged + "/privacy.json", stated.dump(2) + "\n");
  const Finished silent = run_cudp(folder, {"verify", forged});
  EXPECT_EQ(silent.exit, 1);
  EXPECT_NE(silent.out.find("assumptions: expected 'the vectors of --embedding and their"),
            std::string::npos)
      << silent.out;

  // The vectors are found by the file's name in the data folder, or where the flag says.
  EXPECT_EQ(accuracy_of(run_cudp(folder, texts.eval(run, {"--data-dir", folder.path().string()}))),
            trained);
  EXPECT_EQ(accuracy_of(run_cudp(folder, texts.eval(run, {"--embedding", texts.vectors}))),
            trained);
  // Others are told by their digest.
  const std::string other = folder / "other.txt";
  write_text(other, "good 1 0 0\nbad -1 0 1\nfilm 0 1 0\nit 0 0 1\nwas 0 0.5 0.5\n");
  const Finished wrong = run_cudp(folder, texts.eval(run, {"--embedding", other}));
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_NE(wrong.err.find("the vectors that the model was trained with, sha256"),
            std::string::npos);
  const Finished gone = run_cudp(folder, texts.eval(run, {"--data-dir", folder / "nowhere"}));
  EXPECT_EQ(gone.exit, 2);
  EXPECT_NE(gone.err.find("--embedding: expected a file"), std::string::npos);
  // Without its words the model is of no use.
  std::filesystem::remove(run + "/release/vocabulary.txt");
  const Finished wordless = run_cudp(folder, texts.eval(run, {"--embedding", texts.vectors}));
  EXPECT_EQ(wordless.exit, 2);
  EXPECT_NE(wordless.err.find("vocabulary.txt: expected the words of"), std::string::npos);
}

TEST(TextCli, StoredVectorsNeedNoFile) {
  const TemporaryFolder folder;
  const SmallTexts texts(folder);
  const std::string run = folder / "run";
  const double trained = accuracy_of(
      run_cudp(folder, texts.train(run, {"--embedding", texts.vectors, "--model", "imdb-mean",
                                         "--store-embedding", "--embedding-dims", "2"})));
  std::filesystem::remove(texts.vectors);
  EXPECT_EQ(accuracy_of(run_cudp(folder, texts.eval(run, {}))), trained);
}

/// Their tensor has a name that no parameter may have, too: nobody could read such a model.
TEST(TextCli, StoredVectorsShareNoNameWithParameters) {
  const TemporaryFolder folder;
  const SmallTexts texts(folder);
  const std::string model = folder / "model.toml";
  write_text(model, R"(name = "notes"
layers = [
  { type = "embedding", name = "embedding", trainable = true, columns = 3 },
  { type = "mean" },
  { type = "dense", name = "fc", out = "outputs" },
]
)");
  const std::string run = folder / "run";
  const Finished refused = run_cudp(
      folder,
      texts.train(run, {"--embedding", texts.vectors, "--model", model, "--store-embedding"}));
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(
      refused.err.find("--store-embedding: expected no trained tensor named embedding.weight"),
      std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(run));
}

TEST(TextCli, ACertificateNamesAVocabularyThatMayBePrivate) {
  const TemporaryFolder folder;
  const SmallTexts texts(folder);
  const auto unsafe_of = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--model", "sentences-lstm", "--epochs", "1"});
    const std::string run = folder / name;
    accuracy_of(run_cudp(folder, texts.train(run, more)));
    EXPECT_NE(content_of(run + "/release/vocabulary.txt"), "");
    EXPECT_GE(accuracy_of(run_cudp(folder, texts.eval(run, {}))), 0.0);
    return Json::parse(content_of(run + "/release/privacy.json"))["unsafe_flags"];
  };
  EXPECT_EQ(unsafe_of("listed", {"--vocabulary", texts.words}),
            Json::array({"vocabulary not declared public: it may be counted from private text"}));
  EXPECT_EQ(unsafe_of("public", {"--vocabulary", texts.words, "--vocabulary-is-public"}),
            Json::array());
  EXPECT_EQ(unsafe_of("counted", {"--accept-private-bounds"}),
            Json::array({"vocabulary counted from private text"}));
}

TEST(TextCli, ModelAndDataMustBothBeOfTexts) {
  const TemporaryFolder folder;
  const SmallTexts texts(folder);
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const Finished done = run_cudp(folder, arguments);
    EXPECT_EQ(done.exit, 2);
    EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  };
  const std::string run = folder / "run";
  refused(texts.train(run, {"--vocabulary", texts.words, "--model", "cnn"}),
          "expected an embedding as the first layer of a model for texts");
  refused(texts.train(run, {"--vocabulary", texts.words, "--model", "imdb-mean"}),
          "the data has no word vectors for a frozen embedding");
  refused(texts.train(run, {"--vocabulary", texts.words, "--features", "pca"}),
          "--features: expected none with texts");
  refused(texts.train(run, {"--tokens", "0"}), "--tokens: expected a whole number of 1 to 65535");
  refused({"train", "--dataset", "glyphs", "--model", "imdb-rnn", "--epsilon", "1", "--delta",
           "1e-5", "--out", run, "--quiet"},
          "expected texts for an embedding");
  refused({"train", "--dataset", "glyphs", "--tokens", "7", "--epsilon", "1", "--delta", "1e-5",
           "--out", run, "--quiet"},
          "expected with texts only");
  refused({"train", "--dataset", "sentences", "--vocabulary", texts.words, "--epsilon", "1",
           "--delta", "1e-5", "--out", run, "--quiet"},
          "expected none with sentences");
}

/// The built-in sentences need no files. What they say is in the order of their words.
TEST(TextCli, SentencesAreLearntAndScored) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Finished done = run_cudp(folder, {"train", "--preset", "sentences-lstm", "--seed", "1",
                                          "--out", run, "--json", "--threads", "2"});
  const double trained = accuracy_of(done);
  EXPECT_GT(trained, 0.85);
  EXPECT_EQ(accuracy_of(run_cudp(folder, {"eval", run, "--json"})), trained);
}

}  // namespace
}  // namespace cudp

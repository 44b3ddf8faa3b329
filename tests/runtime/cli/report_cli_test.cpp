// The pages that a run leaves, and cudp report.
#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "tests/support/cudp_process.hpp"
#include "tests/support/small_data.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using PageJson = nlohmann::ordered_json;

/// Returns the text with single spaces in place of spaces and line breaks.
std::string in_one_line(const std::string& text) {
  std::istringstream in(text);
  std::string all;
  for (std::string word; in >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

class ReportCli : public testing::Test {
 protected:
  void train(const std::string& out, const Arguments& more) const {
    const Finished f =
        run_cudp(folder_, with({"train", "--dataset", table_.table, "--schema", table_.schema,
                                "--model", "logistic", "--batch", "40", "--threads", "1",
                                "--device", "cpu", "--quiet", "--out", folder_ / out},
                               more));
    ASSERT_EQ(f.exit, 0) << f.err;
  }
  void train_private(const std::string& out, const Arguments& more = {}) const {
    train(out, with({"--epsilon", "3", "--delta", "1e-5", "--epochs", "3"}, more));
  }
  Finished cudp(const Arguments& words) const { return run_cudp(folder_, words); }
  std::string release(const std::string& run, const std::string& name) const {
    return content_of(folder_ / (run + "/release/" + name));
  }
  /// Returns what verify finds of the pages and its exit code: "ok, exit 0".
  std::string verified(const std::string& run) const {
    const Finished f = cudp({"verify", folder_ / run, "--json"});
    const PageJson answer = PageJson::parse(f.out);
    for (const PageJson& check : answer["checks"])
      if (check["check"] == "pages")
        return check["result"].get<std::string>() + ", exit " + std::to_string(f.exit);
    return "none, exit " + std::to_string(f.exit);
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_, 400);
};

constexpr const char* kPageNames[] = {"report.html", "PRIVACY.txt", "README.md"};

TEST_F(ReportCli, EveryRunLeavesPagesThatVerifyMakesAgain) {
  train_private("run");
  for (const char* const name : kPageNames) {
    const std::string page = release("run", name);
    EXPECT_NE(page.find("What is not covered?"), std::string::npos) << name;
    EXPECT_EQ(page.find(folder_.path().string()), std::string::npos) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run/private/report.html"));
  EXPECT_EQ(verified("run"), "ok, exit 0");
  const Finished again = cudp({"report", folder_ / "run"});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(verified("run"), "ok, exit 0");
}

TEST_F(ReportCli, ThePagesHaveTheSentencesOfAccount) {
  train_private("run");
  const std::string page = in_one_line(release("run", "PRIVACY.txt"));
  const PageJson account = PageJson::parse(cudp({"account", folder_ / "run", "--json"}).out);
  for (const char* const heading : {"promise", "meaning", "how", "released", "not covered"})
    for (const PageJson& sentence : account[heading])
      EXPECT_NE(page.find(in_one_line(sentence.get<std::string>())), std::string::npos)
          << heading << ": " << sentence << "\n"
          << page;
}

/// What readers stumbled over is said: groups, two numbers of one fact, rounding, commands, files.
TEST_F(ReportCli, ThePagesExplainWhatReadersStumbledOver) {
  train("run", {"--epsilon", "1.99999", "--delta", "1e-5", "--epochs", "3"});
  const std::string page = in_one_line(release("run", "PRIVACY.txt"));
  for (const char* const words :
       {"Epsilon 2 at delta 1e-05", "everything in release/ epsilon: 1.99999 delta: 1e-05",
        "their epsilon is larger, and how large is not proved",
        "Several rows of one person have a larger epsilon than one row, and no number for it is "
        "proved",
        "against anybody who has the published files",
        "both rounded up, are one fact: who is right 7.39 times for each time wrong is right in "
        "7.39 of 8.39 cases",
        "Smaller is stronger: epsilon bounds how much more anybody can learn because one row was "
        "in the data, and delta is the probability with which that bound may fail, one in 100,000.",
        "For someone who suspected it before, the odds grow by a factor of at most 7.39",
        "Never publish the run's folder private/. Before you do, make sure of what the program "
        "cannot "
        "know: - Other runs and publications",
        "That is proved for one row, but not for several rows together.",
        "the true epsilon of the releases after the noisy row count lies between",
        "sentences round epsilon up to three digits",
        "metrics.jsonl: One line for each time the run was measured: steps and the spent budget.",
        "the command \"cudp account RUN RUN", "Is this epsilon customary?",
        "Who is responsible, and under which law"})
    EXPECT_NE(page.find(words), std::string::npos) << words << "\n" << page;
  for (const auto& entry : fs::directory_iterator(folder_ / "run/release"))
    EXPECT_NE(page.find(entry.path().filename().string()), std::string::npos) << entry.path();
  for (const char* const absent : {"NOT-FOR-RELEASE.txt", "holdout.json", "vocabulary.txt"})
    EXPECT_EQ(page.find(absent), std::string::npos) << absent;
}

/// Returns the sentences of a section or an answer without its bullets: from `begin` up to `end`.
std::string page_part(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t from = page.find(begin);
  if (from == std::string::npos) return "no " + begin;
  const std::size_t after = from + begin.size();
  std::string words = in_one_line(page.substr(after, page.find(end, after) - after));
  for (std::size_t at = 0; (at = words.find("- ", at)) != std::string::npos;) words.erase(at, 2);
  return words;
}

TEST_F(ReportCli, WhatIsNotCoveredIsOneList) {
  std::string table = "who,age,died\n";
  for (int i = 0; i < 1200; ++i)
    table += fmt::format("p{},{},{}\n", i / 2, i % 90, i % 3 == 0 ? "NO" : "YES");
  write_text(folder_ / "stays.csv", table);
  write_text(folder_ / "stays.csv.schema.toml",
             "name = \"stays\"\nunit = \"who\"\nmax_rows = 2\ncolumns = [\n"
             "  {name = \"who\", kind = \"ignore\"},\n"
             "  {name = \"age\", kind = \"numeric\", min = 0, max = 90},\n"
             "  {name = \"died\", kind = \"label\", values = [\"NO\", \"YES\"]},\n]\n");
  const Finished f = cudp({"train",
                           "--dataset",
                           folder_ / "stays.csv",
                           "--model",
                           "logistic",
                           "--epsilon",
                           "3",
                           "--delta",
                           "1e-6",
                           "--batch",
                           "100",
                           "--epochs",
                           "2",
                           "--holdout",
                           "0.25",
                           "--holdout-epsilon",
                           "3",
                           "--holdout-delta",
                           "1e-6",
                           "--quiet",
                           "--out",
                           folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string text = release("run", "PRIVACY.txt"), page = in_one_line(text);
  const std::string in_short = page_part(text, "What is not covered?", "May I publish it?");
  EXPECT_EQ(in_short, page_part(text, "What is not covered\n-------------------", "Budget and"));
  for (const char* const words :
       {"Other runs and other publications", "Settings that were chosen by looking at other runs",
        "Several values of the column \"who\" together",
        "A person under two texts of the column \"who\"",
        "What somebody saw who watched the training", "Rows that are predicted",
        "Files that somebody added to release/"})
    EXPECT_NE(in_short.find(words), std::string::npos) << words << "\n" << in_short;
  for (const char* const words :
       {"A model (logistic) was trained on rows of the data set \"stays\" to predict \"died\". The "
        "files of release/ are the result.",
        "That of each value of the column \"who\", trained on or held out: all rows of the data "
        "set "
        "\"stays\" with the same text in that column, together. This page calls such rows a unit.",
        "may fail, one in a million.", "recall of class 1 (YES)",
        "Each unit is in one part only, trained on or held out, so the larger epsilon and delta of "
        "both parts, not their sums",
        "That is proved for one unit with its rows, up to 2, but not for several units together.",
        "times the sensitivity to one row"})
    EXPECT_NE(page.find(words), std::string::npos) << words << "\n" << page;
  EXPECT_EQ(verified("run"), "ok, exit 0");
}

TEST_F(ReportCli, ThePagesSayWhatAnAttackerCanAndCannotDo) {
  train_private("run");
  const std::string page = in_one_line(release("run", "PRIVACY.txt"));
  for (const char* const words :
       {"What an attacker can do", "Learn what is true of people in general",
        "What an attacker cannot do", "Guess better than that whether a certain row was used"})
    EXPECT_NE(page.find(words), std::string::npos) << words << "\n" << page;
  const std::string broken = "The reasons at the top weaken this, or break it.";
  EXPECT_EQ(page.find(broken), std::string::npos) << page;
  train_private("seeded", {"--seed", "1"});
  const std::string seeded = in_one_line(release("seeded", "PRIVACY.txt"));
  const std::size_t cannot = seeded.find("What an attacker cannot do");
  ASSERT_NE(cannot, std::string::npos);
  EXPECT_NE(seeded.find(broken, cannot), std::string::npos) << seeded;
}

/// A named data set has public parts without flags, so "size-is-public: false" would contradict
/// the page.
TEST_F(ReportCli, SettingsThatMakeDataPublicAreShownIfTheyAreSet) {
  train_private("without");
  train_private("with", {"--size-is-public"});
  EXPECT_EQ(release("without", "PRIVACY.txt").find("is-public"), std::string::npos);
  const std::string page = release("with", "PRIVACY.txt");
  EXPECT_NE(page.find("  size-is-public: true\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("test-data-is-public"), std::string::npos);
}

TEST_F(ReportCli, TheCardSaysWhatTheNetworkTakesAfterFeatures) {
  train_private("row");
  const std::string row = release("row", "README.md");
  EXPECT_NE(row.find("The network takes one number for each name"), std::string::npos) << row;
  EXPECT_NE(row.find("log(1 + x - min) / log(1 + max - min)"), std::string::npos) << row;
  EXPECT_NE(row.find("(net(x)"), std::string::npos) << row;
  train_private("pca", {"--features", "pca", "--feature-dimensions", "2"});
  const std::string card = release("pca", "README.md");
  EXPECT_NE(card.find("A row becomes one number for each name"), std::string::npos) << card;
  EXPECT_NE(card.find("The network takes features of kind pca, as float32 of shape \\[N, "),
            std::string::npos)
      << card;
  EXPECT_NE(card.find("(net(features)"), std::string::npos) << card;
}

TEST_F(ReportCli, ForgedAndMissingPagesAreFound) {
  train_private("run");
  for (const char* const name : kPageNames) {
    const std::string before = release("run", name);
    std::string forged = before;
    const std::size_t at = forged.find("Epsilon 3 at");
    ASSERT_NE(at, std::string::npos) << name;
    forged[at + 8] = '1';
    write_text(folder_ / ("run/release/" + std::string(name)), forged);
    EXPECT_EQ(verified("run"), "differs, exit 1") << name;
    fs::remove(folder_ / ("run/release/" + std::string(name)));
    const Finished f = cudp({"verify", folder_ / "run"});
    EXPECT_EQ(f.exit, 1) << name;
    EXPECT_NE(f.out.find(std::string(name) + ": missing"), std::string::npos) << f.out;
    write_text(folder_ / ("run/release/" + std::string(name)), before);
  }
  EXPECT_EQ(verified("run"), "ok, exit 0");
}

TEST_F(ReportCli, TheFrontMatterIsTheUsers) {
  train_private("run", {"--license", "cc-by-4.0"});
  const std::string card = release("run", "README.md");
  EXPECT_TRUE(card.starts_with("---\nlicense: \"cc-by-4.0\"\n")) << card;
  const std::string mine = "---\nlicense: mit\n---\n\n" + card.substr(card.find("# "));
  write_text(folder_ / "run/release/README.md", mine);
  EXPECT_EQ(verified("run"), "ok, exit 0");
  EXPECT_EQ(cudp({"report", folder_ / "run"}).exit, 0);
  EXPECT_EQ(release("run", "README.md"), mine);
}

TEST_F(ReportCli, RunsOfEarlierVersionsStandWithoutPages) {
  train_private("run");
  PageJson certificate = PageJson::parse(release("run", "privacy.json"));
  certificate.erase("pages");
  write_text(folder_ / "run/release/privacy.json", certificate.dump(2) + "\n");
  for (const char* const name : kPageNames)
    fs::remove(folder_ / ("run/release/" + std::string(name)));
  EXPECT_EQ(verified("run"), "not checked, exit 0");
  EXPECT_EQ(cudp({"report", folder_ / "run"}).exit, 0);
  EXPECT_EQ(verified("run"), "ok, exit 0");
  write_text(folder_ / "run/release/PRIVACY.txt", "Epsilon 0.1\n");
  EXPECT_EQ(verified("run"), "differs, exit 1");
}

TEST_F(ReportCli, PagesOfAnUnknownFormatAreRefusedInWords) {
  train_private("run");
  PageJson certificate = PageJson::parse(release("run", "privacy.json"));
  certificate["pages"] = 1;
  write_text(folder_ / "run/release/privacy.json", certificate.dump(2) + "\n");
  const Finished f = cudp({"verify", folder_ / "run"});
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.out.find("expected format 5"), std::string::npos) << f.out;
}

TEST_F(ReportCli, FiguresThatWereNotPaidForAreInPrivateAlone) {
  write_text(folder_ / "test.csv", content_of(table_.table));
  train_private("run", {"--test-data", folder_ / "test.csv"});
  EXPECT_EQ(release("run", "report.html").find("balanced accuracy"), std::string::npos);
  const std::string page = content_of(folder_ / "run/private/report.html");
  EXPECT_NE(page.find("NOT FOR RELEASE"), std::string::npos);
  EXPECT_NE(page.find("balanced accuracy"), std::string::npos);
  EXPECT_EQ(fs::status(folder_ / "run/private/report.html").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(verified("run"), "ok, exit 0");
}

TEST_F(ReportCli, ARunWithoutPrivacyHasAPrivatePage) {
  train("run", {"--method", "sgd", "--epochs", "2"});
  EXPECT_FALSE(fs::exists(folder_ / "run/release/report.html"));
  EXPECT_NE(content_of(folder_ / "run/private/report.html")
                .find("NOT FOR RELEASE: trained without privacy"),
            std::string::npos);
}

TEST_F(ReportCli, SeveralRunsAreComparedInOut) {
  write_text(folder_ / "test.csv", content_of(table_.table));
  train_private("one", {"--test-data", folder_ / "test.csv"});
  train_private("two", {"--test-data", folder_ / "test.csv"});
  train("free", {"--method", "sgd", "--epochs", "2", "--test-data", folder_ / "test.csv"});
  const Finished none = cudp({"report", folder_ / "one", folder_ / "free"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("--out DIR"), std::string::npos);
  const Finished f =
      cudp({"report", folder_ / "one", folder_ / "two", folder_ / "free", "--out", folder_ / "o"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string page = content_of(folder_ / "o/report.html");
  for (const char* const words :
       {"NOT FOR RELEASE", "without privacy (free)", "What the private runs spend together"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find(folder_.path().string()), std::string::npos);
}

TEST_F(ReportCli, HostileNamesAreShownAndDoNothing) {
  const std::string name = "<script>alert(1)</script>";
  std::string table = name + ",class\n";
  for (int i = 0; i < 200; ++i) table += std::to_string(i % 7) + (i % 2 ? ",<b>\n" : ",![x](y)\n");
  write_text(folder_ / "hostile.csv", table);
  write_text(folder_ / "hostile.csv.schema.toml",
             "name = \"</title>`--- \\u202E\"\ncolumns = [\n  {name = \"" + name +
                 "\", kind = \"numeric\", min = 0, max = 6},\n"
                 "  {name = \"class\", kind = \"label\", values = [\"<b>\", \"![x](y)\"]},\n]\n");
  const Finished f = cudp({"train", "--dataset", folder_ / "hostile.csv", "--model", "logistic",
                           "--epsilon", "3", "--delta", "1e-5", "--batch", "20", "--epochs", "1",
                           "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const std::string page = release("run", "report.html");
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos);
  EXPECT_NE(page.find("&lt;/title&gt;`--- \\u{202e}"), std::string::npos);
  EXPECT_EQ(release("run", "README.md").find("</title>"), std::string::npos);
  EXPECT_EQ(verified("run"), "ok, exit 0");
}

TEST_F(ReportCli, RefusesWhatIsNoFinishedRun) {
  const Finished f = cudp({"report", folder_ / "nowhere"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("expected a run's folder or its release folder, found none"),
            std::string::npos)
      << f.err;
}

}  // namespace
}  // namespace cudp

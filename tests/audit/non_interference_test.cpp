// Nothing else leaves. The program runs on data D, and what passes the witness is written down;
// then it runs on other data D', and every value that leaves is replaced by D's. Whatever then
// differs in what others may see is a function of the private rows that nobody paid for: release/,
// the list of files, stdout, stderr, the exit code, and the public arguments of every release.
// (Private: what is in private/. Not seen by this: a wrong sensitivity, which the audits are for,
// and time.)
//
// Neighbours differ in one row; D' here may differ in more, since with the values replayed no
// difference may show at all.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/data/holdout.hpp"
#include "tests/audit/neighbours.hpp"
#include "tests/audit/non_interference_cases.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/words.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using namespace neighbours;

/// How a training is made and ended: processes one after the other, the first begins it.
struct Way {
  const char* name;
  std::vector<Ending> endings;  ///< of each process
};

const Way kWays[] = {
    {"to_the_end", {{}}},
    {"interrupted_and_resumed", {{SIGINT, 2}, {}}},
    {"killed_twice_and_resumed", {{SIGKILL, 5}, {SIGKILL, 3}, {}}},
};

/// What others may see of a training.
struct Seen {
  std::vector<int> exits;
  std::string out;
  std::string err;
  std::map<std::string, std::string> files;  ///< of release/; names alone of the others
};

/// Without what the clock says: times, speeds, and the lines of progress, which come by the clock.
std::string without_clock(const std::string& text) {
  static const std::regex kTime(R"(\d\d:\d\d:\d\d )");
  static const std::regex kSpeed(R"(\n?time  .*)");
  static const std::regex kProgress(R"(.*epoch .*\[[=> ]*\].*\n)");
  return std::regex_replace(std::regex_replace(std::regex_replace(text, kProgress, ""), kSpeed, ""),
                            kTime, "");
}

const std::vector<std::string> kResume = {"train", "--resume", "run"};

class Training {
 public:
  Training(const Case& c, const Way& way) : case_(c), way_(way) {}

  /// The folder that a training runs in, with data.
  fs::path work() const { return folder_.path() / "work"; }

  void write_data(const Rows& rows, const Images& all) const {
    const fs::path work = this->work();
    fs::create_directories(work);
    write_text(work / "people.csv.schema.toml", kSchema);
    const bool texts = case_.kind == Kind::texts;
    write_text(work / "people.csv", text_of(texts ? table() : rows));
    write_text(work / "people.npz", matrix_of(texts ? table() : rows));
    write_text(work / "visits.csv.schema.toml", kUnitSchema);
    write_text(work / "visits.csv", visits_of(texts ? table() : rows));
    write_text(work / "notes.csv.schema.toml", kTextSchema);
    write_text(work / "notes.csv", text_of(texts ? rows : notes()));
    std::string words;
    for (const char* word : kWords) words += std::string(word) + "\n";
    write_text(work / "words.txt", words);
    write_text(work / "vectors.txt", vectors());
    write_text(work / "tanh.toml", kNormAfterTanh);
    write_text(work / "test.csv", text_of(test_rows));
    write_images(work / "images", "train", all);
    Images few = images();
    few.pixels.resize(20);
    few.labels.resize(20);
    write_images(work / "images", "t10k", few);
  }

  Seen on(const Rows& rows, const Images& all, bool replays) {
    const fs::path work = this->work();
    fs::remove_all(work);
    write_data(rows, all);
    Seen seen;
    for (std::size_t i = 0; i < way_.endings.size(); ++i) {
      const Ended ended = run_witnessed(work, i == 0 ? first() : kResume, [&]() -> Witness* {
        if (!replays) return new RecordingWitness(folder_ / "values", way_.endings[i]);
        return new ReplayingWitness(folder_ / "values", folder_ / "position",
                                    folder_ / "differences", way_.endings[i]);
      });
      seen.exits.push_back(ended.exit);
      seen.out += without_clock(ended.out);
      seen.err += without_clock(ended.err);
    }
    for (const auto& entry : fs::recursive_directory_iterator(work)) {
      const std::string name = fs::relative(entry.path(), work).string();
      if (!entry.is_regular_file() || !name.starts_with("run/")) continue;
      seen.files[name] = name.starts_with("run/release/") ? content_of(entry.path()) : "";
    }
    return seen;
  }

  Rows test_rows = first_rows(50);

  static Rows first_rows(std::size_t count) {
    Rows rows = table();
    rows.resize(count);
    return rows;
  }

  std::string position() const { return folder_ / "position"; }
  std::string differences() const { return content_of(folder_ / "differences"); }
  bool all_replayed() const {
    return content_of(folder_ / "position") == std::to_string(fs::file_size(folder_ / "values"));
  }

 private:
  static std::string text_of(const Rows& rows) {
    std::string text = is_notes(rows) ? "note,ill\n" : "age,hours,kind,ill\n";
    for (const std::string& row : rows) text += row + "\n";
    return text;
  }

  std::vector<std::string> first() const {
    return with({"train", "--dataset", kDataOf[static_cast<int>(case_.kind)], "--epsilon", "3",
                 "--delta", "1e-5", "--seed", "7", "--threads", "1", "--out", "run",
                 "--checkpoint-every", "2", "--feature-cache", "none"},
                case_.flags);
  }

  TemporaryFolder folder_;
  const Case& case_;
  const Way& way_;
};

/// Every case is run in every way on every change by scripts/check.sh (CUDP_ALL_NEIGHBOURS); else
/// each on so many of them that every pair of a case and a change, and of a case and a way, occurs
/// over the cases.
bool is_chosen(const Case& of, std::size_t c, std::size_t way, std::size_t change) {
  if (std::getenv("CUDP_ALL_NEIGHBOURS") != nullptr) return true;
  if (of.overflows && kChanges[change].name == std::string("overflowing_row")) return true;
  if (kChanges[change].malformed) return of.malformed;
  const auto is_usual = [&](const Change& one) {
    return !one.malformed && (one.keeps_size || !of.size_public);
  };
  const auto usual = static_cast<std::size_t>(std::ranges::count_if(kChanges, is_usual));
  const auto at = static_cast<std::size_t>(
      std::count_if(kChanges, kChanges + change, is_usual));  // its place among them
  return (c + way) % usual == at || (c + way + 3) % usual == at;
}

class NonInterference : public testing::TestWithParam<std::size_t> {};

TEST_P(NonInterference, OtherRowsShowInNothingThatLeaves) {
  const Case& c = cases()[GetParam()];
  for (std::size_t w = 0; w < std::size(kWays); ++w) {
    if (w > 0 && (c.one_step || c.exit != 0)) continue;
    const Way& way = kWays[w];
    Training training(c, way);
    const Seen expected = training.on(data_of(c), images(), false);
    ASSERT_EQ(expected.exits.back(), c.exit) << c.name << ": " << expected.err;
    for (std::size_t i = 0; i < std::size(kChanges); ++i) {
      if (c.size_public && !kChanges[i].keeps_size) continue;
      if (kChanges[i].malformed && !c.malformed) continue;
      if (!is_chosen(c, GetParam(), w, i)) continue;
      SCOPED_TRACE(std::string(c.name) + ", " + way.name + ", " + kChanges[i].name);
      Rows rows = data_of(c);
      Images pictures = images();
      kChanges[i].rows(rows);
      kChanges[i].pictures(pictures);
      fs::remove(training.position());
      const Seen seen = training.on(rows, pictures, true);
      EXPECT_EQ(training.differences(), "");
      EXPECT_TRUE(training.all_replayed());
      EXPECT_EQ(seen.exits, expected.exits);
      EXPECT_EQ(seen.out, expected.out);
      EXPECT_EQ(seen.err, expected.err);
      EXPECT_EQ((seen.out + seen.err).find(kUnitText), std::string::npos);
      for (const auto& [name, content] : expected.files) {
        EXPECT_EQ(content.find(kUnitText), std::string::npos) << name;
        ASSERT_TRUE(seen.files.contains(name)) << name;
        EXPECT_TRUE(seen.files.at(name) == content) << name << " differs";
      }
      EXPECT_EQ(seen.files.size(), expected.files.size());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, NonInterference, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& info) { return std::string(cases()[info.param].name); });

/// What is measured on private test rows, and drawn of it, shows in private/ alone. Of some rows
/// numbers are not defined, and pictures would be empty; that shows in nothing either.
TEST(PrivateTestRows, ShowInNothingThatOthersSee) {
  const auto one_class = [](const char* label) {
    Rows rows = Training::first_rows(50);
    std::erase_if(rows, [&](const std::string& row) { return !row.ends_with(label); });
    return rows;
  };
  Rows flipped = Training::first_rows(50);
  for (std::string& row : flipped) row = relabelled(row);
  const std::vector<Rows> others = {flipped, one_class("yes"), one_class("no"),
                                    Training::first_rows(1), Rows{"1e300,-1e300,strange,yes"}};
  for (const Case& c : cases()) {
    if (c.name != std::string("private_test_rows")) continue;
    for (const Way& way : kWays) {
      Training training(c, way);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << expected.err;
      EXPECT_TRUE(expected.files.contains("run/private/evaluation.json"));
      for (const Rows& rows : others) {
        SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(rows.size()) + " rows, first " +
                     rows.front());
        training.test_rows = rows;
        fs::remove(training.position());
        const Seen seen = training.on(data_of(c), images(), true);
        EXPECT_EQ(training.differences(), "");
        EXPECT_EQ(seen.exits, expected.exits);
        EXPECT_EQ(seen.out, expected.out);
        EXPECT_EQ(seen.err, expected.err);
        EXPECT_EQ(seen.files, expected.files);
      }
    }
  }
}

/// Coins may hold out all rows, or none: an empty part shows in nothing. The coin of the one row
/// that is left is the same in all runs, and its value between the two shares.
TEST(HoldOutsOfOneRow, ShowInNothingThatLeaves) {
  const std::vector<std::string> figures = {"--holdout-epsilon", "1", "--holdout-delta", "1e-6"};
  for (const Case& of : cases()) {
    static const std::set<std::string> kThese = {
        "dpsgd",    "quantile", "adp",     "adaclip",        "dpis_adaptive",
        "dp_agd",   "outpert",  "objpert", "privgene",       "dp_agd_mini_batch",
        "pca_dpis", "matrix",   "texts",   "units_quantile", "units_dp_agd"};
    if (!kThese.contains(of.name)) continue;
    for (const char* const share : {"0.35", "0.45"}) {
      Case c = of;
      c.flags = with(with(of.flags, figures), {"--holdout", share, "--eval-every", "1"});
      if (of.kind != Kind::matrix && share == std::string("0.45"))
        c.flags.insert(c.flags.end(), {"--holdout-threshold", "0.4", "--metric", "auc"});
      Training training(c, kWays[0]);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << c.name << ": " << expected.err;
      Rows one = data_of(c);
      one.resize(1);
      Rows all_of_one_class = data_of(c);
      std::erase_if(all_of_one_class, [](const std::string& row) { return row.ends_with("yes"); });
      for (const Rows& rows : {one, all_of_one_class}) {
        SCOPED_TRACE(std::string(c.name) + ", share " + share + ", " + std::to_string(rows.size()) +
                     " rows");
        fs::remove(training.position());
        const Seen seen = training.on(rows, images(), true);
        EXPECT_EQ(training.differences(), "");
        EXPECT_TRUE(training.all_replayed());
        EXPECT_EQ(seen.exits, expected.exits);
        EXPECT_EQ(seen.out, expected.out);
        EXPECT_EQ(seen.err, expected.err);
        EXPECT_EQ(seen.files, expected.files);
      }
    }
  }
  // Below one share and not below the other: each part was empty once.
  const double coin =
      random_words({Generator::chacha20, coins_of_seed(7), Stream::sampling, 0}, 1)[0] * 0x1p-32;
  EXPECT_GT(coin, 0.35);
  EXPECT_LT(coin, 0.45);
}

/// The same noise on other data would tell the difference of two sums.
TEST(Resume, RefusesEveryOtherTrainingSet) {
  const Way interrupted{"interrupted", {{SIGINT, 2}}};
  for (const Case& c : cases()) {
    if (c.name != std::string("dpsgd") && c.name != std::string("texts") &&
        c.name != std::string("cnn"))
      continue;
    Training training(c, interrupted);
    ASSERT_EQ(training.on(data_of(c), images(), false).exits.back(), static_cast<int>(Exit::again));
    const auto resume = [&] {
      return run_witnessed(training.work(), kResume, [] { return nullptr; });
    };
    for (const Change& change : kChanges) {
      if (change.malformed) continue;
      Rows rows = data_of(c);
      Images pictures = images();
      change.rows(rows);
      change.pictures(pictures);
      training.write_data(rows, pictures);
      const Ended refused = resume();
      EXPECT_EQ(refused.exit, 2) << c.name << ", " << change.name;
      EXPECT_NE(refused.err.find("expected the training data that the run began with, found other"),
                std::string::npos)
          << c.name << ", " << change.name << ": " << refused.err;
    }
    training.write_data(data_of(c), images());
    EXPECT_EQ(resume().exit, 0) << c.name;
  }
}

}  // namespace
}  // namespace cudp

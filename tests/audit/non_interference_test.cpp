// Nothing else leaves. The program runs on data D, and what passes the release observer is written
// down; then it runs on other data D', and every value that leaves is replaced by D's. Whatever
// then differs in what others may see is a function of the private rows that nobody paid for:
// release/, the list of files, stdout, stderr, the exit code, and the public arguments of every
// release. (Private: what is in private/. Not seen by this: a wrong sensitivity, which the audits
// are for, and time.)
//
// Neighbours differ in one row; D' here may differ in more, since with the values replayed no
// difference may show at all.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/data/holdout.hpp"
#include "tests/audit/neighbours.hpp"
#include "tests/audit/non_interference_cases.hpp"
#include "tests/audit/seen_training.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/replayed_run.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using namespace neighbours;

const Way kWays[] = {
    {"to_the_end", {{}}},
    {"interrupted_and_resumed", {{SIGINT, 2}, {}}},
    {"killed_twice_and_resumed", {{SIGKILL, 5}, {SIGKILL, 3}, {}}},
};

/// Every case is run in every way on every change by scripts/check.sh (CUDP_ALL_NEIGHBOURS); else
/// each on so many of them that every pair of a case and a change, and of a case and a way, occurs
/// over the cases.
bool is_chosen(const Case& of, std::size_t c, std::size_t way, std::size_t change) {
  if (std::getenv("CUDP_ALL_NEIGHBOURS") != nullptr) return true;
  if (of.overflows && kChanges[change].name == std::string("overflowing_row")) return true;
  if (kChanges[change].malformed) return of.malformed;
  if (kChanges[change].leaves_none)
    return way == (of.one_step || of.exit != 0 ? 0 : c % std::size(kWays));
  const auto is_usual = [&](const Change& one) {
    return !one.malformed && !one.leaves_none && (one.keeps_size || !of.size_public);
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
    SeenTraining training(c, way);
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
    Rows rows = SeenTraining::first_rows(50);
    std::erase_if(rows, [&](const std::string& row) { return !row.ends_with(label); });
    return rows;
  };
  Rows flipped = SeenTraining::first_rows(50);
  for (std::string& row : flipped) row = relabelled(row);
  const std::vector<Rows> others = {flipped,
                                    one_class("yes"),
                                    one_class("no"),
                                    SeenTraining::first_rows(1),
                                    Rows{"1e300,-1e300,strange,yes"},
                                    Rows{}};
  for (const Case& c : cases()) {
    if (c.name != std::string("private_test_rows")) continue;
    for (const Way& way : kWays) {
      SeenTraining training(c, way);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << expected.err;
      EXPECT_TRUE(expected.files.contains("run/private/evaluation.json"));
      for (const Rows& rows : others) {
        SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(rows.size()) + " rows, first " +
                     (rows.empty() ? "" : rows.front()));
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

/// The only readable row of the only unit is there or not: rows that cannot be read are used for
/// nobody, and a training on no used row is like every other.
TEST(UnusedRows, ShowInNothingThatLeaves) {
  const std::string header = "who,age,hours,kind,ill\n";
  const std::string readable = std::string(kUnitText) + ",40,20,a,yes\n";
  const std::string unreadable = "oops\n,40,20,a,yes\n?,30,10,b,no\n1,2,3,4,5,6\n";
  for (const Case& of : cases()) {
    if (of.name != std::string("units_malformed_rows")) continue;
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
             {},
             {"--holdout", "0.45", "--holdout-epsilon", "1", "--holdout-delta", "1e-6"},
             {"--features", "pca", "--feature-dimensions", "2"},
             {"--method", "dpis", "--batch", "20", "--epsilon", "20"},
             {"--method", "dp-agd", "--splits", "6"},
             {"--test-data", "test.csv"}}) {
      Case c = of;
      const bool dp_agd = std::ranges::find(more, "dp-agd") != more.end();
      c.flags =
          with(dp_agd ? std::vector<std::string>{"--model", "logistic", "--malformed", "missing"}
                      : of.flags,
               more);
      SeenTraining training(c, kWays[0]);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << expected.err;
      for (const std::string& rows : {readable + unreadable, unreadable, readable, std::string()}) {
        SCOPED_TRACE(header + rows + (more.empty() ? "" : more[0] + " " + more[1]));
        training.visits = header + rows;
        fs::remove(training.position());
        const Seen seen = training.on(data_of(c), images(), true);
        EXPECT_EQ(training.differences(), "");
        EXPECT_TRUE(training.all_replayed());
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
      SeenTraining training(c, kWays[0]);
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
      random_words({Generator::chacha20, split_key_of_seed(7), Stream::sampling, 0}, 1)[0] *
      0x1p-32;
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
    SeenTraining training(c, interrupted);
    ASSERT_EQ(training.on(data_of(c), images(), false).exits.back(), static_cast<int>(Exit::again));
    const auto resume = [&] {
      return run_observed(training.work(), kResume, [] { return nullptr; });
    };
    std::string refusal;
    for (const Change& change : kChanges) {
      if (change.malformed) continue;
      Rows rows = data_of(c);
      Images pictures = images();
      change.rows(rows);
      change.pictures(pictures);
      training.write_data(rows, pictures);
      const Ended refused = resume();
      EXPECT_EQ(refused.exit, 2) << c.name << ", " << change.name;
      if (refusal.empty()) refusal = refused.err;
      EXPECT_EQ(refused.err, refusal) << "whatever the other rows are";
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

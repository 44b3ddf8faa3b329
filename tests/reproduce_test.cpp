#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "runtime/reproduce/folds.hpp"
#include "runtime/reproduce/reproduction.hpp"
#include "tests/cudp_process.hpp"
#include "tests/shared_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

Dataset numbered(int n) {
  Dataset data;
  data.shape = {1, 1, 1};
  data.classes = 2;
  for (int i = 0; i < n; ++i) {
    data.floats.push_back(static_cast<float>(i));
    data.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return data;
}

TEST(CrossValidation, TestsOnEveryExampleOnce) {
  const Dataset all = numbered(23);
  std::multiset<float> tested;
  for (const DataSplit& split : cross_validation(all, 5, 1)) {
    EXPECT_EQ(split.train.size() + split.test.size(), 23u);
    std::set<float> seen(split.train.floats.begin(), split.train.floats.end());
    for (std::size_t i = 0; i < split.test.size(); ++i) {
      EXPECT_FALSE(seen.contains(split.test.floats[i]));
      EXPECT_EQ(split.test.labels[i], static_cast<int>(split.test.floats[i]) % 2);
      tested.insert(split.test.floats[i]);
    }
  }
  EXPECT_EQ(tested, std::multiset<float>(all.floats.begin(), all.floats.end()));
  EXPECT_NE(cross_validation(all, 5, 1)[0].test.floats, cross_validation(all, 5, 2)[0].test.floats);
}

TEST(ReproducedTable, SaysItAll) {
  EXPECT_EQ(mean_and_deviation({1.0, 2.0, 3.0}).mean, 2.0);
  EXPECT_EQ(mean_and_deviation({1.0, 2.0, 3.0}).deviation, 1.0);
  const ReproducedTable table{
      "t",
      "x",
      {1.0, 2.0},
      "y",
      {{"g", {{"ours", {5.0, 6.0}, {0.5, 0.25}, 4}}, {{"it's", {4.0, 7.0}, {}, 0}}}},
      {"n"}};
  EXPECT_EQ(table_text(table),
            "t, y\n\ng\n  x     1             2\n  ours  5.00 +-0.50   6.00 +-0.25\n"
            "  it's  4.00          7.00\n\nn\n");
  const auto j = table_json(table);
  EXPECT_EQ(j["groups"][0]["measured"][0]["runs"], 4);
  const TemporaryFolder folder;
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  EXPECT_TRUE(draw_table(table, folder / "t.png"));
  EXPECT_GT(fs::file_size(folder / "t.png"), 1000u);
}

TEST(CliReproduce, RefusesWhatItDoesNotKnow) {
  const TemporaryFolder folder;
  const Finished f = run_cudp(folder, {"reproduce", "dp-agd-fig4"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("dp-agd-fig"), std::string::npos);
}

}  // namespace
}  // namespace cudp

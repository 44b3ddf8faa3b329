#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "bench/reproduce/folds.hpp"
#include "bench/reproduce/linear_sgd.hpp"
#include "bench/reproduce/reproduction.hpp"
#include "privacy/accountant.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/test_files.hpp"

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
            "t, y\n\ng\n  x     1            2\n  ours  5.00 +-0.50  6.00 +-0.25\n"
            "  it's  4.00         7.00\n\nn\n");
  ReproducedTable once = table;
  once.groups[0].measured[0] = {"ours", {5.0, 6.0}, {0.0, 0.0}, 1};
  EXPECT_EQ(table_text(once).find("+-"), std::string::npos) << table_text(once);
  const auto j = table_json(table);
  EXPECT_EQ(j["groups"][0]["measured"][0]["runs"], 4);
  ReproducedTable own = table;
  own.log_values = true;
  own.groups[0].columns = {3.0, 4.0};
  own.groups[0].measured[0].values[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(table_text(own),
            "t, y\n\ng\n  x     3            4\n  ours  5.00 +-0.50  -\n"
            "  it's  4.00         7.00\n\nn\n");
  EXPECT_EQ(table_json(own)["groups"][0]["x"][1], 4.0);
  EXPECT_NE(table_json(own).dump().find("[5.0,null]"), std::string::npos);
  EXPECT_EQ(table_json(table_from_json(table_json(own))).dump(), table_json(own).dump());
  const TemporaryFolder folder;
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  EXPECT_TRUE(draw_table(table, folder / "t.png"));
  EXPECT_GT(fs::file_size(folder / "t.png"), 1000u);
  EXPECT_TRUE(draw_table(own, folder / "own.png"));
}

/// Returns the script by which a table is drawn.
std::string script_of(const ReproducedTable& table) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "bin");
  write_text(folder / "bin/gnuplot", "#!/bin/sh\ncat\n");
  fs::permissions(folder / "bin/gnuplot", fs::perms::owner_all);
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", ((folder / "bin") + ":" + before).c_str(), 1);
  EXPECT_TRUE(draw_table(table, folder / "t.png"));
  ::setenv("PATH", before.c_str(), 1);
  return content_of(folder / "t.png");
}

TEST(ReproducedTable, IsDrawnInOneColourAMethod) {
  ReproducedTable table{
      "t",
      "x",
      {1.0, 2.0},
      "y",
      {{"g",
        {{"first", {5.0, 6.0}, {0.5, 0.25}, 4}, {"second", {1.0, 2.0}, {3.0, 0.5}, 4}},
        {published_row("second, paper", "second", {4.0, 7.0})}}},
      {}};
  std::string script = script_of(table);
  EXPECT_NE(script.find("using 1:2:3:4 with yerrorlines lt 2"), std::string::npos) << script;
  EXPECT_NE(script.find("using 1:2 with linespoints lt 2 dt 2"), std::string::npos) << script;
  EXPECT_NE(script.find("NaN with linespoints lt 2 dt 2 lw 1.5 title 'second, paper'"),
            std::string::npos);
  // The error bar of 1 +-3 ends at 0; where the axis is logarithmic, it has no lower half.
  EXPECT_NE(script.find(" 1 0 4\n"), std::string::npos) << script;
  table.log_values = true;
  EXPECT_NE(script_of(table).find(" 1 1 4\n"), std::string::npos);
  // Three groups leave a cell, which the legend takes.
  table.groups.push_back(table.groups[0]);
  table.groups.push_back(table.groups[0]);
  EXPECT_NE(script_of(table).find("width = 1120\n"), std::string::npos);
  // A single column is no curve.
  ReproducedTable single = table;
  single.columns = {1.0};
  for (TableGroup& g : single.groups)
    for (auto* rows : {&g.measured, &g.published})
      for (ResultRow& row : *rows) {
        row.values.resize(1);
        row.deviations.resize(row.deviations.empty() ? 0 : 1);
      }
  script = script_of(single);
  EXPECT_NE(script.find("set ytics ('first' 0, 'second' 1)"), std::string::npos) << script;
  EXPECT_NE(script.find("with xerrorbars lt 2 pt 7"), std::string::npos);
  EXPECT_EQ(script.find("set xtics"), std::string::npos);
  // Values and error bars are from 0 to 5.5, which has labels at 0, 2 and 4.
  single.log_values = false;
  script = script_of(single);
  EXPECT_NE(script.find("set xtics 2\n"), std::string::npos) << script;
}

TEST(CliReproduce, DrawsAKeptTableAgain) {
  const TemporaryFolder folder;
  const Arguments redraw = {"reproduce", "group-fig1", "--redraw", "--out", folder.path()};
  EXPECT_EQ(run_cudp(folder, redraw).exit, 1) << "no table";
  write_text(folder / "group-fig1.json", "[]");
  EXPECT_EQ(run_cudp(folder, redraw).exit, 2);
  const ReproducedTable table{"t", "x", {1.0, 2.0}, "y", {{"g", {{"ours", {5.0, 6.0}, {}, 0}}, {}}},
                              {}};
  write_text(folder / "group-fig1.json", table_json(table).dump());
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  EXPECT_EQ(run_cudp(folder, redraw).exit, 0);
  EXPECT_TRUE(fs::exists(folder / "group-fig1.png"));
}

// Values of Google's dp_accounting, and what must hold between the rows.
TEST(GroupFigures, AreWhatAnotherLibrarySays) {
  Reporter quiet(true);
  for (const char* name : {"group-fig1", "group-fig2"}) {
    const auto found = std::ranges::find_if(reproductions(),
                                            [&](const Reproduction& r) { return r.name == name; });
    ASSERT_NE(found, reproductions().end());
    const ReproducedTable table = found->run({.data_dir = "", .quick = true}, quiet);
    ASSERT_EQ(table.groups.size(), 1u);
    int compared = 0;
    for (const TableGroup& g : table.groups) {
      const std::vector<double>& tight = g.measured[0].values;
      for (std::size_t i = 0; i < g.columns.size(); ++i) {
        EXPECT_EQ(tight[i], std::max(g.measured[1].values[i], g.measured[2].values[i]));
        EXPECT_FALSE(g.measured[3].values[i] < tight[i] * (1.0 - 1e-3)) << "Vadhan's lemma";
        if (g.published.empty() || std::isnan(g.published[0].values[i])) continue;
        EXPECT_FALSE(!(std::abs(tight[i] - g.published[0].values[i]) <= 2e-3));
        ++compared;
      }
    }
    EXPECT_GE(compared, 3);
    EXPECT_TRUE(std::isnan(table.groups[0].measured[3].values[5])) << "the lemma at k = 9";
  }
}

TEST(LinearSgd, AccountsForItsNoise) {
  constexpr double kQ = 0.01;
  const double moments = sgd_sigma(SgdAccounting::moments, 1.0, 1e-8, kQ, 1000);
  const std::span<const double> orders = privacy::default_orders();
  const auto epsilon = [&](double sigma) {
    return privacy::Accountant(
               {.releases = {{privacy::PoissonGaussian{kQ, sigma}, 1000}}},
               {.kind = privacy::AccountantKind::rdp, .orders = {orders.begin(), orders.end()}})
        .epsilon(1e-8)
        .epsilon;
  };
  EXPECT_LE(epsilon(moments), 1.0);
  EXPECT_GT(epsilon(moments * (1.0 - 1e-8)), 1.0);
  const double advanced = sgd_sigma(SgdAccounting::advanced, 1.0, 1e-8, kQ, 1000);
  EXPECT_GT(advanced, moments);
  // Step by step, as the theorems have it.
  const double e = std::sqrt(2.0 * std::log(1.25 / (0.5e-8 / (kQ * 1000)))) / advanced;
  const double step = std::log(1.0 + kQ * (std::exp(e) - 1.0));
  EXPECT_NEAR(std::sqrt(2000.0 * std::log(2e8)) * step + 1000.0 * step * (std::exp(step) - 1.0),
              1.0, 1e-6);
}

TEST(LinearSgd, Learns) {
  Dataset data = numbered(4000);
  for (std::size_t i = 0; i < data.size(); ++i)
    data.floats[i] = data.labels[i] ? 0.5f + static_cast<float>(i) / 8000 : 0.0f;
  const auto engine = make_cpu_linear_engine(data, Loss::logistic, 1e6, 1);
  const auto fit = run_linear_sgd({}, SgdAccounting::moments, 8.0, 1e-5, *engine, {});
  EXPECT_GT(engine->correct(fit, data), 3'600u);
}

TEST(CliReproduce, RefusesWhatItDoesNotKnow) {
  const TemporaryFolder folder;
  const Finished f = run_cudp(folder, {"reproduce", "dp-agd-fig4"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("dp-agd-fig"), std::string::npos);
}

TEST(CliReproduce, SaysWhereItsProgramIsExpected) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(cudp_binary(), folder / "cudp");
  const std::string command =
      "'" + (folder / "cudp") + "' reproduce group-fig1 2> '" + (folder / "err") + "'";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(content_of(folder / "err"),
            "cudp: reproduce: expected the program " + (folder / "cudp-reproduce") +
                ", found No such file or directory; `cmake --build BUILD --target cudp-reproduce` "
                "builds it from cudp's sources\n");
}

}  // namespace
}  // namespace cudp

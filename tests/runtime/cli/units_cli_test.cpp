// Units of privacy from the command line: what a certificate says of them, what they cost, every
// method with them, what is refused, and that no unit's text leaves.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/accountant.hpp"
#include "runtime/base/rounded_text.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kSecret = "S3CRET";  // begins every unit's text

class UnitsCli : public testing::Test {
 protected:
  UnitsCli() {
    write_table("visits.csv", 600);
    write_schema(3);
    write_text(folder_ / "test.csv", "age,hours,ill\n30,20,no\n80,30,yes\n");
  }

  void write_table(const std::string& name, int rows) const {
    std::mt19937_64 random(5);
    std::string text = "who,age,hours,ill\n";
    for (int i = 0; i < rows; ++i) {
      const auto age = 17 + random() % 74, hours = random() % 41;
      text += fmt::format("{}{},{},{},{}\n", kSecret, random() % 150, age, hours,
                          age + hours > 80 ? "yes" : "no");
    }
    write_text(folder_ / name, text);
  }
  static std::string schema(const std::string& unit) {
    return "name = \"visits\"\n" + unit + R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)";
  }
  void write_schema(int max_rows, const char* column = "who") const {
    write_text(folder_ / "visits.csv.schema.toml",
               schema(fmt::format("unit = \"{}\"\nmax_rows = {}\n", column, max_rows)));
  }
  Finished train(const std::string& out, const Arguments& more) const {
    return run_cudp(folder_,
                    with({"train", "--dataset", folder_ / "visits.csv", "--delta", "1e-5", "--seed",
                          "1", "--threads", "1", "--device", "cpu", "--out", folder_ / out},
                         more));
  }
  Json certificate(const std::string& out) const {
    return Json::parse(content_of(folder_ / (out + "/release/privacy.json")));
  }
  /// In release/, on stdout and stderr.
  void expect_no_text_of_a_unit(const std::string& out, const Finished& f) const {
    EXPECT_EQ(f.out.find(kSecret), std::string::npos) << f.out;
    EXPECT_EQ(f.err.find(kSecret), std::string::npos) << f.err;
    if (!fs::exists(folder_ / (out + "/release"))) return;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / (out + "/release"))) {
      EXPECT_EQ(entry.path().string().find(kSecret), std::string::npos);
      if (entry.is_regular_file()) {
        EXPECT_EQ(content_of(entry.path()).find(kSecret), std::string::npos) << entry.path();
      }
    }
  }

  TemporaryFolder folder_;
};

const Arguments kDpSgd = {"--model", "logistic", "--batch", "60", "--steps", "5", "--epsilon", "3"};

TEST_F(UnitsCli, StandInTheCertificateWhichIsForThem) {
  const Finished f = train("run", with(kDpSgd, {"--size-is-public"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = certificate("run");
  EXPECT_EQ(c["unit"], "who");
  EXPECT_EQ(c["max_rows"], 3);
  EXPECT_NE(c["neighbouring_relation"].get<std::string>().find("one unit"), std::string::npos);
  const privacy::Release step{
      privacy::PoissonGaussian{c["q"].get<double>(), c["sigma"].get<double>()}, 5};
  const double delta = c["delta"].get<double>() - c.value("delta_for_rounding", 0.0);
  const auto epsilon = [&](std::uint64_t group) {
    return privacy::Accountant({.releases = {step}, .group = group}).epsilon(delta).epsilon;
  };
  EXPECT_NEAR(c["epsilon"].get<double>(), epsilon(3), 1e-6);
  ASSERT_EQ(c["groups"].size(), 5u);
  for (const Json& row : c["groups"])
    EXPECT_NEAR(row["epsilon"].get<double>(), epsilon(3 * row["units"].get<std::uint64_t>()),
                2e-3 * row["epsilon"].get<double>());
  EXPECT_EQ(c["groups"][4]["units"], 16);
  // What the unit costs: epsilon of the same noise for single rows beside it.
  const std::string cost = fmt::format(
      "the unit of privacy is up to 3 rows, all with one text in 'who': that costs "
      "epsilon {}; with the same noise single rows (max_rows = 1) would cost {}",
      rounded_up(c["epsilon"].get<double>(), 4), rounded_up(epsilon(1), 4));
  EXPECT_NE(f.err.find(cost), std::string::npos) << f.err << "\n" << cost;
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
  expect_no_text_of_a_unit("run", f);
}

/// Where the accountant does not reach 16 units, the table says why; the training is none the
/// worse.
TEST_F(UnitsCli, OfManyRowsHaveAsMuchOfTheTableAsTheAccountantReaches) {
  write_table("visits.csv", 3'000);
  write_schema(70);
  const Finished f = train("run", {"--model", "logistic", "--batch", "30", "--steps", "2",
                                   "--epsilon", "8", "--size-is-public", "--accountant", "rdp"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = certificate("run");
  ASSERT_EQ(c["groups"].size(), 5u);
  EXPECT_TRUE(c["groups"][4]["epsilon"].is_null());
  EXPECT_NE(c["groups"][4].dump().find("expected 1 to 1000 examples, found 1120"),
            std::string::npos)
      << c["groups"];
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
}

/// Every method either trains, and its run holds, or refuses in one line.
TEST_F(UnitsCli, AreKeptByEveryMethodOrRefused) {
  const struct {
    Arguments flags;
    bool trains;
  } kAll[] = {
      {kDpSgd, true},
      {with(kDpSgd, {"--method", "dpsgd-ts", "--model", "mlp"}), true},
      {with(kDpSgd, {"--method", "dpsgd-decay", "--size-is-public"}), true},
      {with(kDpSgd, {"--method", "dpsgd-decay", "--fresh-noise-allowed"}), true},
      {with(kDpSgd, {"--method", "dpsgd-quantile", "--size-is-public"}), true},
      {with(kDpSgd, {"--method", "adp-sgd"}), true},
      {with(kDpSgd, {"--method", "adaclip"}), true},
      {with(kDpSgd, {"--method", "dpis", "--batch", "20"}), true},
      {with(kDpSgd, {"--method", "norm-bound"}), true},
      {with(kDpSgd, {"--method", "sgd-ma", "--size-is-public"}), true},
      {with(kDpSgd, {"--method", "sgd-adv", "--size-is-public"}), false},
      {with(kDpSgd, {"--accountant", "advanced", "--size-is-public"}), false},
      {{"--method", "dp-agd", "--epsilon", "3", "--splits", "6"}, true},
      {{"--method", "outpert", "--epsilon", "3"}, true},
      {{"--method", "objpert", "--epsilon", "3"}, false},
      {{"--method", "privgene", "--epsilon", "3", "--generations", "8", "--candidates", "20"},
       true}};
  for (const auto& [flags, trains] : kAll) {
    std::string what;
    for (const std::string& word : flags) what += word + " ";
    SCOPED_TRACE(what);
    fs::remove_all(folder_ / "run");
    const Finished f = train("run", with(flags, {"--quiet"}));
    expect_no_text_of_a_unit("run", f);
    if (!trains) {
      EXPECT_EQ(f.exit, 2);
      EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
      EXPECT_NE(f.err.find("proved for single rows only"), std::string::npos) << f.err;
      EXPECT_FALSE(fs::exists(folder_ / "run"));
      continue;
    }
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(certificate("run")["max_rows"], 3);
    EXPECT_LE(certificate("run")["epsilon"].get<double>(), 3.0);
    const Finished v = run_cudp(folder_, {"verify", folder_ / "run"});
    EXPECT_EQ(v.exit, 0) << v.out;
  }
}

TEST_F(UnitsCli, ThatTheCertificateAndTheModelStateDifferentlyDoNotHold) {
  ASSERT_EQ(train("run", with(kDpSgd, {"--size-is-public"})).exit, 0);
  const std::string file = folder_ / "run/release/privacy.json";
  const std::string honest = content_of(file);
  const auto verified = [&](const std::string& from, const std::string& to) {
    std::string changed = honest;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    write_text(file, changed);
    return run_cudp(folder_, {"verify", folder_ / "run", "--json"});
  };
  Finished f = verified("\"max_rows\": 3", "\"max_rows\": 2");
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.out.find("schema's unit: expected 2 rows by 'who' of the certificate, found 3 rows "
                       "by 'who'"),
            std::string::npos)
      << f.out;
  f = verified("\"max_rows\": 3", "\"max_rows\": 6");
  EXPECT_EQ(f.exit, 1);
  EXPECT_NE(f.out.find("epsilon"), std::string::npos);
  EXPECT_EQ(verified("\"unit\": \"who\"", "\"unit\": \"ward\"").exit, 1);
  EXPECT_EQ(verified("\"max_rows\": 3,", "").exit, 2);
  EXPECT_EQ(verified("\"max_rows\": 3", "\"max_rows\": 1001").exit, 2);
}

TEST_F(UnitsCli, AreToldByAccountAndMustAgreeAmongRuns) {
  for (const char* const out : {"a", "b"})
    ASSERT_EQ(train(out, with(kDpSgd, {"--size-is-public", "--quiet"})).exit, 0);
  write_schema(2);
  ASSERT_EQ(train("two", with(kDpSgd, {"--size-is-public", "--quiet"})).exit, 0);
  write_text(folder_ / "visits.csv.schema.toml", schema(""));
  ASSERT_EQ(train("rows", with(kDpSgd, {"--size-is-public", "--quiet"})).exit, 0);
  const Finished told = run_cudp(folder_, {"account", folder_ / "a"});
  ASSERT_EQ(told.exit, 0) << told.err;
  EXPECT_NE(told.out.find("one value of the column \"who\" of"), std::string::npos) << told.out;
  const auto together = [&](const char* first, const char* second) {
    return run_cudp(folder_, {"account", folder_ / first, folder_ / second, "--json"});
  };
  const Finished both = together("a", "b");
  ASSERT_EQ(both.exit, 0) << both.err;
  const Json j = Json::parse(both.out);
  EXPECT_EQ(j["max_rows"], 3);
  EXPECT_GT(j["epsilon"].get<double>(), 3.0);
  EXPECT_LT(j["epsilon"].get<double>(), 12.0);
  for (const char* const other : {"two", "rows"}) {
    const Finished f = together("a", other);
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_NE(f.err.find(other == std::string("two") ? "max_rows: expected" : "unit: expected"),
              std::string::npos)
        << f.err;
  }
  // What another unit would do to a finished run is asked of a training, not of a certificate.
  const Finished what_if =
      run_cudp(folder_, {"account", folder_ / "a", "--what-if", "steps=10", "--json"});
  ASSERT_EQ(what_if.exit, 0) << what_if.err;
  EXPECT_GT(Json::parse(what_if.out)["rows"][1]["epsilon"].get<double>(), 3.1);
}

TEST_F(UnitsCli, OfARunCannotBeChangedOnTheWay) {
  CudpProcess process(folder_, {"train",
                                "--dataset",
                                folder_ / "visits.csv",
                                "--delta",
                                "1e-5",
                                "--epsilon",
                                "8",
                                "--model",
                                "logistic",
                                "--batch",
                                "60",
                                "--steps",
                                "2000000",
                                "--checkpoint-every",
                                "5",
                                "--threads",
                                "1",
                                "--device",
                                "cpu",
                                "--accountant",
                                "rdp",
                                "--quiet",
                                "--out",
                                folder_ / "run"});
  wait_until([&] { return !newest_checkpoint_file(folder_ / "run").empty(); });
  process.signal(SIGKILL);
  process.wait();
  ASSERT_FALSE(newest_checkpoint_file(folder_ / "run").empty());
  for (const int max_rows : {2, 4}) {
    write_schema(max_rows);
    for (const Arguments& more : std::vector<Arguments>{{}, {"--fresh-noise"}}) {
      const Finished f = run_cudp(folder_, with({"train", "--resume", folder_ / "run"}, more));
      EXPECT_EQ(f.exit, 2) << f.err;
      EXPECT_NE(f.err.find("cudp: "), std::string::npos);
    }
  }
}

TEST_F(UnitsCli, ThatASchemaStatesWronglyAreRefusedWithTheirPlace) {
  const struct {
    const char* unit;
    const char* sentence;
  } kWrong[] = {
      {"unit = \"who\"\n",
       "expected 'max_rows' with 'unit', how many rows of a unit are used, a "
       "whole number of 1 to 1000, found none"},
      {"max_rows = 4\n", "expected a 'unit' with 'max_rows', a column's name, found none"},
      {"unit = \"nobody\"\nmax_rows = 4\n",
       "expected the name of one of the columns for 'unit', found 'nobody'"},
      {"unit = \"age\"\nmax_rows = 4\n",
       "expected kind ignore for 'age', the column of 'unit', whose texts no model sees and no "
       "prediction repeats, found another kind"},
      {"unit = \"who\"\nmax_rows = 0\n",
       "expected a whole number of 1 to 1000 for 'max_rows', found 0"},
      {"unit = \"who\"\nmax_rows = 1001\n",
       "expected a whole number of 1 to 1000 for 'max_rows', found 1001"},
      {"unit = \"who\"\nmax_rows = 2.5\n",
       "expected a whole number of 1 to 1000 for 'max_rows', found 2.5"},
      {"unit = 7\nmax_rows = 2\n", "'unit'"},
      {"units = \"who\"\nmax_rows = 2\n", "'units'"}};
  for (const auto& [unit, sentence] : kWrong) {
    write_text(folder_ / "visits.csv.schema.toml", schema(unit));
    const Finished f = train("run", kDpSgd);
    EXPECT_EQ(f.exit, 2) << unit;
    EXPECT_NE(f.err.find("visits.csv.schema.toml, line 1: "), std::string::npos) << f.err;
    EXPECT_NE(f.err.find(sentence), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

TEST_F(UnitsCli, AreNamedByNoMessageAboutARow) {
  const std::string head = "who,age,hours,ill\n", good = std::string(kSecret) + "1,30,20,no\n";
  for (const char* const row : {",30,20,no\n", ",old,20,no\n", ",30,20\n", ",30,20,no,more\n",
                                ",30,20,perhaps\n", "\"x,30,20,no\n"}) {
    std::string table = head + good;
    table.append(kSecret).append(row).append(good).append(good);
    write_text(folder_ / "visits.csv", table);
    const Finished f = train("run", kDpSgd);
    EXPECT_FALSE(f.exit == 0 && row != std::string(",30,20,no\n")) << row;
    expect_no_text_of_a_unit("run", f);
    fs::remove_all(folder_ / "run");
  }
  write_text(folder_ / "visits.csv", head + good + ",30,20,no\n");
  const Finished f = train("run", kDpSgd);
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("line 3, column 'who': expected the text of a unit, found a missing value"),
            std::string::npos)
      << f.err;
}

/// A model is for rows: what is asked of it needs no column of units, and repeats none.
TEST_F(UnitsCli, AreNotAskedForByAModel) {
  ASSERT_EQ(train("run", with(kDpSgd, {"--test-data", folder_ / "test.csv"})).exit, 0);
  for (const char* const table : {"visits.csv", "test.csv"}) {
    const Finished p = run_cudp(folder_, {"predict", folder_ / "run", "--dataset", folder_ / table,
                                          "--out", folder_ / "p.csv"});
    ASSERT_EQ(p.exit, 0) << p.err;
    EXPECT_EQ(content_of(folder_ / "p.csv").find(kSecret), std::string::npos);
    fs::remove(folder_ / "p.csv");
    const Finished e =
        run_cudp(folder_, {"eval", folder_ / "run", "--dataset", folder_ / table, "--json"});
    ASSERT_EQ(e.exit, 0) << e.err;
    EXPECT_EQ((e.out + e.err).find(kSecret), std::string::npos);
  }
  const Finished grouped = run_cudp(
      folder_, {"eval", folder_ / "run", "--dataset", folder_ / "visits.csv", "--group-by", "who"});
  EXPECT_EQ(grouped.exit, 2);
  EXPECT_EQ((grouped.out + grouped.err).find(kSecret), std::string::npos);
}

TEST_F(UnitsCli, AreAudited) {
  const Finished f = run_cudp(folder_, {"audit",
                                        "--dataset",
                                        folder_ / "visits.csv",
                                        "--model",
                                        "mlp",
                                        "--epsilon",
                                        "8",
                                        "--delta",
                                        "1e-5",
                                        "--batch",
                                        "4000",
                                        "--steps",
                                        "2",
                                        "--size-is-public",
                                        "--seed",
                                        "3",
                                        "--canaries",
                                        "2000",
                                        "--quiet",
                                        "--threads",
                                        "1",
                                        "--device",
                                        "cpu",
                                        "--json"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json j = Json::parse(f.out);
  EXPECT_EQ(j["certificate"]["max_rows"], 3);
  EXPECT_LT(j["epsilon_lower_gaussian"], j["epsilon"]);
  EXPECT_GT(j["epsilon_lower_gaussian"], 0.5);
  EXPECT_EQ(j["refuted"], false);
}

}  // namespace
}  // namespace cudp

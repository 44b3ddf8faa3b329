// The unit of privacy of a table: which rows are used, and what is never said of them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/first_rows.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/data/table_reader.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

constexpr const char* kColumns = R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "x", kind = "numeric", min = 0, max = 100, fill = 0},
  {name = "y", kind = "label", values = ["no", "yes"], fill = "no"},
]
)";

std::string schema_text(const std::string& unit) { return unit + kColumns; }

class UnitsOfATable : public ::testing::Test {
 protected:
  /// The x of the training rows of a table of these (unit, x).
  std::vector<int> used(const std::vector<std::pair<std::string, int>>& rows, int max_rows,
                        Malformed malformed = Malformed::refuse) {
    std::string text = "who,x,y\n";
    for (const auto& [unit, x] : rows) text += unit + "," + std::to_string(x) + ",no\n";
    const DataSplit split = load(text, max_rows, malformed);
    std::vector<int> found;
    EXPECT_EQ(split.unit_rows, static_cast<std::uint64_t>(max_rows));
    for (std::size_t i = 0; i < split.train.size(); ++i) {
      float value = 0.0f;
      std::memcpy(
          &value,
          split.train.coded.data() + i * static_cast<std::size_t>(split.train.layout->row_bytes()),
          sizeof value);
      found.push_back(static_cast<int>(std::lround(100.0f * value)));
    }
    return found;
  }

  /// Of a table as text: the examples that a training has, without files.
  static Dataset used_examples(const std::string& table, std::uint64_t max_rows) {
    const TableSchema schema = parse_schema(
        schema_text("unit = \"who\"\nmax_rows = " + std::to_string(max_rows) + "\n"), "s");
    const auto bytes =
        memory_bytes("t", {reinterpret_cast<const std::uint8_t*>(table.data()), table.size()});
    return read_table(*bytes, schema,
                      {.malformed = Malformed::missing, .units = true, .ahead = false}, 4);
  }

  DataSplit load(const std::string& table, int max_rows, Malformed malformed = Malformed::refuse) {
    write("t.csv", table);
    write("t.toml", schema_text("unit = \"who\"\nmax_rows = " + std::to_string(max_rows) + "\n"));
    return load_data({.dataset = path("t.csv"), .schema = path("t.toml"), .malformed = malformed});
  }

  std::string message(const std::string& table, int max_rows = 2) {
    try {
      load(table, max_rows);
    } catch (const InputError& e) {
      return e.what();
    }
    return "nothing was refused";
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }

  TemporaryFolder dir_;
};

TEST_F(UnitsOfATable, TheFirstRowsOfEachAreUsedInTheFilesOrder) {
  const std::vector<std::pair<std::string, int>> rows = {{"a", 1}, {"b", 2}, {"a", 3}, {"a", 4},
                                                         {"c", 5}, {"b", 6}, {"b", 7}, {"A", 8}};
  EXPECT_EQ(used(rows, 1), (std::vector{1, 2, 5, 8}));
  EXPECT_EQ(used(rows, 2), (std::vector{1, 2, 3, 5, 6, 8}));
  EXPECT_EQ(used(rows, 1000), (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
}

/// Of rows with these units, the numbers of those that are used.
std::vector<int> used_of(const std::vector<std::string>& units, std::uint64_t max_rows) {
  const TableSchema schema = parse_schema(
      schema_text("unit = \"who\"\nmax_rows = " + std::to_string(max_rows) + "\n"), "s");
  FirstRows rows(schema, Malformed::refuse);
  TableFaults faults("t");
  std::vector<int> found;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::vector<std::string_view> cells = {units[i], "1", "no"};
    if (rows.uses({.line = i + 2, .text = {}, .cells = cells}, faults))
      found.push_back(static_cast<int>(i));
  }
  EXPECT_FALSE(faults.any());
  return found;
}

/// What `units` loses when one of them goes: numbers of rows, of which no other unit's may be one.
void expect_neighbours(const std::vector<std::string>& units, std::uint64_t max_rows) {
  const std::vector<int> all = used_of(units, max_rows);
  for (const std::string& out : std::set<std::string>(units.begin(), units.end())) {
    std::vector<std::string> others;
    std::vector<int> number;  // of each of the others in `units`
    for (std::size_t i = 0; i < units.size(); ++i)
      if (units[i] != out) {
        others.push_back(units[i]);
        number.push_back(static_cast<int>(i));
      }
    std::vector<int> left = used_of(others, max_rows);
    for (int& i : left) i = number[static_cast<std::size_t>(i)];
    std::vector<int> expected = all;
    const std::size_t taken =
        std::erase_if(expected, [&](int i) { return units[static_cast<std::size_t>(i)] == out; });
    EXPECT_LE(taken, max_rows);
    EXPECT_EQ(left, expected);
  }
}

/// All tables of up to six rows of three units: taking one unit out takes its used rows out, of
/// which there are max_rows at most, and changes no other.
TEST(FirstRowsOfUnits, TakingOneOutChangesNoOtherUnitsRows) {
  int tables = 1;
  for (int rows = 1; rows <= 6; ++rows) {
    tables *= 3;
    for (int table = 0; table < tables; ++table) {
      std::vector<std::string> units;
      for (int i = 0, rest = table; i < rows; ++i, rest /= 3)
        units.emplace_back(1, static_cast<char>('a' + rest % 3));
      for (const std::uint64_t max_rows : {1u, 2u, 3u}) expect_neighbours(units, max_rows);
    }
  }
}

/// The same of large random tables with many texts, some of which begin alike or hold odd bytes.
TEST(FirstRowsOfUnits, InfluenceNoOthersInRandomTables) {
  std::mt19937_64 random(3);
  for (int table = 0; table < 60; ++table) {
    std::vector<std::string> units(1 + random() % 80);
    for (std::string& unit : units) {
      unit = std::string(1 + random() % 3, static_cast<char>("aA0\xc3"[random() % 4]));
      if (random() % 5 == 0) unit += std::to_string(random() % 3);
    }
    expect_neighbours(units, 1 + random() % 9);
  }
}

/// What a release of a table is: the sum of the used rows' numbers that are drawn, each with
/// probability q, and noise. By going through all draws.
struct UnitLaw {
  std::vector<std::pair<double, double>> sums;  ///< of the draws, with their probabilities

  UnitLaw(const std::vector<std::string>& units, const std::vector<double>& numbers,
          std::uint64_t max_rows, double q) {
    const std::vector<int> used = used_of(units, max_rows);
    for (std::size_t drawn = 0; drawn < std::size_t{1} << used.size(); ++drawn) {
      double sum = 0.0, p = 1.0;
      for (std::size_t i = 0; i < used.size(); ++i) {
        const bool in = (drawn >> i & 1) != 0;
        p *= in ? q : 1.0 - q;
        if (in) sum += numbers[static_cast<std::size_t>(used[i])];
      }
      sums.emplace_back(sum, p);
    }
  }
  double density(double x, double sigma) const {
    double all = 0.0;
    for (const auto& [sum, p] : sums) all += p * std::exp(-0.5 * std::pow((x - sum) / sigma, 2));
    return all / (sigma * std::sqrt(2.0 * M_PI));
  }
};

/// Every table of four rows of two units whose numbers are the largest that clipping leaves, or
/// smaller ones the other way: with a unit and without it, both ways round, no more than is stated.
TEST(UnitLaws, OfAllSmallTablesAreWithinTheBoundBothWaysRound) {
  const double q = 0.5, sigma = 1.5, epsilon = 0.75;
  double closest = 1.0;
  for (const std::uint64_t max_rows : {1u, 2u, 3u}) {
    const double bound =
        privacy::Accountant(
            {.releases = {{privacy::sampled_gaussian_mechanism(q, sigma), 1}}, .group = max_rows})
            .delta(epsilon)
            .delta;
    for (int table = 0; table < 256; ++table) {
      std::vector<std::string> units, others;
      std::vector<double> numbers, left;
      for (int i = 0; i < 4; ++i) {
        units.emplace_back((table >> i & 1) != 0 ? "a" : "b");
        numbers.push_back((table >> (4 + i) & 1) != 0 ? 1.0 : -0.4);
        if (units.back() == "b") continue;
        others.push_back("a");
        left.push_back(numbers.back());
      }
      if (others.empty() || others.size() == 4) continue;
      const UnitLaw with(units, numbers, max_rows, q), without(others, left, max_rows, q);
      double there = 0.0, gone = 0.0;
      constexpr double kStep = 0.02;
      for (double x = -12.0; x < 14.0; x += kStep) {
        const double p = with.density(x, sigma), r = without.density(x, sigma);
        there += kStep * std::fmax(0.0, p - std::exp(epsilon) * r);
        gone += kStep * std::fmax(0.0, r - std::exp(epsilon) * p);
      }
      EXPECT_LE(there, bound * (1.0 + 1e-6)) << table;
      EXPECT_LE(gone, bound * (1.0 + 1e-6)) << table;
      closest = std::fmin(closest, 1.0 - std::fmax(there, gone) / bound);
    }
  }
  EXPECT_LT(closest, 0.5);
}

TEST_F(UnitsOfATable, ARowWithoutOneIsRefusedOrNotUsed) {
  EXPECT_NE(
      message("who,x,y\na,1,no\n,2,no\n").find("line 3, column 'who': expected the text of a unit"),
      std::string::npos);
  EXPECT_EQ(used({{"a", 1}, {"NA", 2}, {"", 3}, {"b", 4}}, 3, Malformed::missing),
            (std::vector{1, 4}));
}

/// A row whose unit cannot be read belongs to nobody that is known, so it is used for nobody, and
/// uses up no place of anybody: all tables of up to four lines, each readable or at fault in one of
/// the ways that a line can be. The used rows are those of the table without the lines at fault.
TEST_F(UnitsOfATable, RowsThatCannotBeReadAreUsedForNoUnit) {
  // Those without a unit first, then cells that are only missing: their rows are used.
  const std::vector<std::string> lines = {"a,1,no",     "b,2,yes", ",3,no",       "NA,4,no", "5,no",
                                          "a,6,no,yes", "oops",    "\"a\"7,7,no", "a,x,no"};
  const auto is_readable = [&](std::size_t line) { return line < 2 || line == lines.size() - 1; };
  for (int length = 1; length <= 4; ++length) {
    std::size_t tables = 1;
    for (int i = 0; i < length; ++i) tables *= lines.size();
    for (std::size_t table = 0; table < tables; table += length == 4 ? 7 : 1) {
      std::string all = "who,x,y\n", readable = all;
      std::size_t rest = table;
      for (int i = 0; i < length; ++i, rest /= lines.size()) {
        const std::size_t line = rest % lines.size();
        all += lines[line] + "\n";
        if (is_readable(line)) readable += lines[line] + "\n";
      }
      for (const std::uint64_t max_rows : {1u, 2u}) {
        const Dataset found = used_examples(all, max_rows),
                      want = used_examples(readable, max_rows);
        ASSERT_EQ(found.coded, want.coded) << max_rows << " rows of each unit of\n" << all;
        ASSERT_EQ(found.labels, want.labels) << all;
        ASSERT_EQ(found.first_rows, want.first_rows) << all;
        ASSERT_LE(found.size(), 2 * max_rows) << all;
      }
    }
  }
}

/// Blanks at the ends of a unit's text count for nothing, in quotes or not.
TEST_F(UnitsOfATable, BlanksAroundATextMakeNoOtherUnit) {
  EXPECT_EQ(used({{"\"Smith, John\"", 1},
                  {"\"Smith, John \"", 2},
                  {"\"\tSmith, John\"", 3},
                  {" \" Smith, John\" ", 4},
                  {"\"Smith,  John\"", 5},
                  {"a", 6},
                  {"\"a \"", 7}},
                 1),
            (std::vector{1, 5, 6}));
  EXPECT_EQ(used({{"a", 1}, {"\" \"", 2}, {"\" NA \"", 3}}, 1, Malformed::missing),
            (std::vector{1}))
      << "blanks alone are no unit";
}

/// What no message may quote.
TEST_F(UnitsOfATable, NoMessageHasTheTextOfAUnit) {
  // A table without its header: a unit's row is in its place.
  for (const char* const rows :
       {"whoSECRET,x,y\na,1,no\n", "who,x,y,SECRET\n", "SECRET,1,no\n", "who1,SECRET;1,no\n",
        "\"SECRET\"SECRET,1,no\n", "SECRET\xe9,1,no\n", "SECRET\n", "SECRET;1;no\n"}) {
    const std::string text = message(rows);
    EXPECT_NE(text.find("line 1: expected"), std::string::npos) << text;
    EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
    EXPECT_EQ(text.find("nearest"), std::string::npos) << text;
  }
  for (const char* const rows :
       {"SECRET,oops,no\n", "SECRET,1\n", "\"SECRET\"SECRET,1,no\n", "SECRET,1,no,more\n",
        "SECRET,1,perhaps\n", "\"SECRET,1,no\n", "a,1,no\n\"b\"SECRET,1,no\n",
        "SECRET,1,no\nSECRET,1,no\nSECRET,oops,no\n"}) {
    const std::string text = message(std::string("who,x,y\n") + rows);
    EXPECT_NE(text.find("expected"), std::string::npos) << text;
    EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
  }
}

TEST_F(UnitsOfATable, ATestFileNeedsNoColumnOfUnitsAndIsUsedWhole) {
  write("test.csv", "x,y\n1,no\n2,yes\n3,no\n");
  write("t.csv", "who,x,y\na,1,no\na,2,yes\n");
  write("t.toml", schema_text("unit = \"who\"\nmax_rows = 1\n"));
  const DataSplit split = load_data(
      {.dataset = path("t.csv"), .schema = path("t.toml"), .test_path = path("test.csv")});
  EXPECT_EQ(split.train.size(), 1u);
  EXPECT_EQ(split.test.size(), 3u);
  write("t.csv", "x,y\n1,no\n");
  EXPECT_THROW(load_data({.dataset = path("t.csv"), .schema = path("t.toml")}), InputError);
}

TEST(UnitSchema, IsWrittenAsItIsReadAndBothKeysAreNeeded) {
  const auto read = [](const std::string& unit) { return parse_schema(schema_text(unit), "s"); };
  const TableSchema schema = read("unit = \"who\"\nmax_rows = 4\n");
  EXPECT_EQ(schema.unit->column, "who");
  EXPECT_EQ(schema.unit->max_rows, 4u);
  EXPECT_EQ(parse_schema(schema_toml(schema), "s"), schema);
  EXPECT_FALSE(read("").unit.has_value());
  for (const char* const wrong :
       {"unit = \"who\"\n", "max_rows = 4\n", "unit = \"nobody\"\nmax_rows = 4\n",
        "unit = \"x\"\nmax_rows = 4\n", "unit = \"who\"\nmax_rows = 0\n",
        "unit = \"who\"\nmax_rows = 1001\n", "unit = \"who\"\nmax_rows = 1.5\n"})
    EXPECT_THROW(read(wrong), InputError) << wrong;
}

}  // namespace
}  // namespace cudp

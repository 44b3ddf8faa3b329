// The unit of privacy of a table: which rows are used, and what is never said of them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
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
    const CodedRows coded = split.train.coded_rows();
    (void)coded;
    EXPECT_EQ(split.unit_rows, static_cast<std::uint64_t>(max_rows));
    for (std::size_t i = 0; i < split.train.size(); ++i) {
      float value = 0.0f;
      std::memcpy(&value, split.train.coded.data() + i * static_cast<std::size_t>(split.train.layout->row_bytes()),
                  sizeof value);
      found.push_back(static_cast<int>(std::lround(100.0f * value)));
    }
    return found;
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

/// All tables of up to five rows of three units: taking one unit out takes its used rows out, of
/// which there are max_rows at most, and changes no other.
TEST_F(UnitsOfATable, TakingOneOutChangesNoOtherUnitsRows) {
  for (int table = 0; table < 243; table += 2)
    for (const int max_rows : {1, 2}) {
      std::vector<std::pair<std::string, int>> rows;
      int rest = table;
      for (int i = 0; i < 5; ++i, rest /= 3) rows.emplace_back(std::string(1, static_cast<char>('a' + rest % 3)), i);
      const std::vector<int> all = used(rows, max_rows);
      for (const std::string out : {"a", "b", "c"}) {
        std::vector<std::pair<std::string, int>> others = rows;
        std::erase_if(others, [&](const auto& row) { return row.first == out; });
        if (others.empty()) continue;
        std::vector<int> expected = all;
        const std::size_t taken = std::erase_if(
            expected, [&](int x) { return rows[static_cast<std::size_t>(x)].first == out; });
        EXPECT_LE(taken, static_cast<std::size_t>(max_rows));
        EXPECT_EQ(used(others, max_rows), expected) << table;
      }
    }
}

TEST_F(UnitsOfATable, ARowWithoutOneIsRefusedOrNotUsed) {
  EXPECT_NE(message("who,x,y\na,1,no\n,2,no\n").find("line 3, column 'who': expected the text of a unit"),
            std::string::npos);
  EXPECT_EQ(used({{"a", 1}, {"NA", 2}, {"", 3}, {"b", 4}}, 3, Malformed::missing),
            (std::vector{1, 4}));
}

/// What no message may quote.
TEST_F(UnitsOfATable, NoMessageHasTheTextOfAUnit) {
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

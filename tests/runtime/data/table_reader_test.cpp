#include "runtime/data/table_reader.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include "runtime/data/examples.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/row_encoder.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

constexpr const char* kSchema = R"(
columns = [
  {name = "age", kind = "numeric", min = 0, max = 100, fill = 50},
  {name = "job", kind = "categorical", values = ["nurse", "smith"], missing = "column"},
  {name = "key", kind = "id"},
  {name = "town", kind = "ignore"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
])";
constexpr const char* kHeader = "age,job,key,town,ill\n";

std::span<const std::uint8_t> as_bytes(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

struct Read {
  Dataset set;  ///< dense
  std::vector<std::string> ids;
  std::vector<std::string> groups;
  std::vector<std::size_t> blocks;  ///< rows of each
};

Read read(const std::string& text, const TableOptions& options,
          const std::string& schema_text = kSchema) {
  const TableSchema schema = parse_schema(schema_text, "s.toml");
  const auto bytes = memory_bytes("t.csv", as_bytes(text));
  TableReader reader(*bytes, schema, options);
  Read out;
  out.set = reader.empty();
  TableBlock block;
  std::size_t rows = 0;
  while (reader.next(block)) {
    EXPECT_EQ(block.first_row, rows);
    rows += block.examples.size();
    out.blocks.push_back(block.examples.size());
    append_examples(block.examples, out.set);
    for (std::size_t i = 0; i < block.ids.size(); ++i) out.ids.emplace_back(block.ids[i]);
    for (std::size_t i = 0; i < block.groups.size(); ++i) out.groups.emplace_back(block.groups[i]);
  }
  EXPECT_FALSE(reader.next(block));
  out.set = dense(std::move(out.set));
  return out;
}

std::string refusal(const std::string& text, const TableOptions& options = {},
                    const std::string& schema = kSchema) {
  return refusal_of([&] { read(text, options, schema); });
}

TEST(TableReader, BlocksHaveRowsInOrderWithTheirTexts) {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i)
    text += std::to_string(i % 100) + (i % 3 ? ",nurse" : ",smith") + ",k" + std::to_string(i) +
            ",\"Sk\xc3\xb6vde, " + std::to_string(i % 7) + "\"" + (i % 2 ? ",yes\n" : ",no\n");
  for (const bool ahead : {false, true}) {
    const Read r = read(text, {.ids = true, .group_by = "town", .max_rows = 300, .ahead = ahead});
    EXPECT_EQ(r.blocks, (std::vector<std::size_t>{300, 300, 300, 100}));
    ASSERT_EQ(r.set.size(), 1000u);
    ASSERT_EQ(r.ids.size(), 1000u);
    ASSERT_EQ(r.groups.size(), 1000u);
    for (std::size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(r.ids[i], "k" + std::to_string(i));
      ASSERT_EQ(r.groups[i], "Sk\xc3\xb6vde, " + std::to_string(i % 7));
      ASSERT_EQ(r.set.labels[i], i % 2);
      ASSERT_FLOAT_EQ(r.set.floats[4 * i], static_cast<float>(i % 100) / 100.0f);
      ASSERT_EQ(r.set.floats[4 * i + 1], i % 3 ? 1.0f : 0.0f);
    }
  }
  EXPECT_EQ(refusal(text, {.group_by = "city"}),
            "t.csv: expected a column 'city', found none in its schema");
}

TEST(TableReader, LabelsMayBeAbsent) {
  const TableOptions none{.labels = false, .ids = true};
  const Read without = read("job,age,town,key\nnurse,10,x,a\nsmith,20,y,b\n", none);
  EXPECT_EQ(without.ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(without.set.labels, (std::vector<std::uint8_t>{0, 0}));
  // Where they are there, nobody looks at them.
  const Read with = read(std::string(kHeader) + "10,nurse,a,x,perhaps\n20,smith,b,y,\n", none);
  EXPECT_EQ(with.set.floats, without.set.floats);
  EXPECT_EQ(with.set.labels, without.set.labels);
  EXPECT_EQ(refusal("job,age,town,key\nnurse,10,x,a\n"),
            "t.csv, line 1: expected a column 'ill', found none of that name in the header row");
}

/// A model that is asked about rows needs its features' columns alone.
TEST(TableReader, OfScoredRowsOnlyFeaturesMustBeThere) {
  const TableOptions scoring{.labels = false, .scoring = true, .ids = true};
  const Read all = read("age,job,key,town\n10,nurse,a,x\n20,smith,b,y\n", scoring);
  const Read few = read("job,age\nnurse,10\nsmith,20\n", scoring);
  EXPECT_EQ(few.set.floats, all.set.floats);
  EXPECT_TRUE(few.ids.empty());
  EXPECT_EQ(all.ids, (std::vector<std::string>{"a", "b"}));
  // Further columns, one of which has the name of none and one a name twice, wherever they stand.
  const std::string wide =
      "extra,age,,extra,job,key,more\n1,10,2,\"x,\ny\",nurse,a,3\n,20,,,smith,b,\n";
  EXPECT_EQ(read(wide, scoring).set.floats, all.set.floats);
  EXPECT_EQ(read(wide, scoring).ids, all.ids);
  const TableSchema schema = parse_schema(kSchema, "s.toml");
  const auto bytes = memory_bytes("t.csv", as_bytes(wide));
  const TableReader reader(*bytes, schema, scoring);
  EXPECT_EQ(reader.dropped(), (std::vector<std::string>{"extra", "", "extra", "more"}));
  EXPECT_TRUE(reader.has_ids());
  // Rows have as many cells as the header, and each column of the schema is there once at most.
  EXPECT_EQ(refusal("job,age,extra\nnurse,10\n", scoring),
            "t.csv, line 2: expected 3 cells, found 2");
  EXPECT_EQ(refusal("job,age,age\nnurse,10,11\n", scoring),
            "t.csv, line 1: expected each column once, found 'age' twice");
  EXPECT_EQ(refusal("job,key,town\nnurse,a,x\n", scoring),
            "t.csv, line 1: expected a column 'age', found none of that name in the header row");
  EXPECT_EQ(refusal("job,age\nnurse,10\n", {.labels = false, .scoring = true, .group_by = "town"}),
            "t.csv: expected a column 'town', found none of that name in the header row");
  EXPECT_EQ(refusal("job,age\nnurse,10\n", {.scoring = true}),
            "t.csv, line 1: expected a column 'ill', found none of that name in the header row");
  EXPECT_EQ(refusal("job,age\nthief,10\n", scoring),
            "t.csv, line 2, column 'job': expected one of the schema's 2 values, found 'thief', "
            "which the model does not know; --malformed missing treats it as a missing value");
  const TableOptions missing{.malformed = Malformed::missing, .labels = false, .scoring = true};
  EXPECT_EQ(read("job,age\nthief,10\n", missing).set.floats,
            (std::vector<float>{0.1f, 0.0f, 0.0f, 1.0f}));
  // A training's file is as its schema says.
  EXPECT_EQ(refusal("age,job,key,ill\n1,nurse,a,no\n"),
            "t.csv, line 1: expected a column 'town', found none of that name in the header row");
}

TEST(TableReader, LabelsMayBeAbsentWithoutAHeader) {
  const std::string schema = R"(header = false
columns = [{name = "y", kind = "label", values = ["0", "1"]},
           {name = "a", kind = "numeric", min = 0, max = 4}, {name = "k", kind = "id"}])";
  const TableOptions none{.labels = false, .ids = true};
  const Read without = read("1,first\n2,second\n", none, schema);
  EXPECT_EQ(without.set.floats, (std::vector<float>{0.25f, 0.5f}));
  EXPECT_EQ(without.ids, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(read("1,1,first\n0,2,second\n", none, schema).set.floats, without.set.floats);
  EXPECT_EQ(refusal("1,first\n1,2,second\n", none, schema),
            "t.csv, line 2: expected 2 cells, found 3");
}

TEST(TableReader, QuotedCellsReachOverLines) {
  const Read r = read(std::string(kHeader) +
                          "1,nurse,\"a\nb\"\"c\r\n\n#d\",\"x, \ny\",no\r\n"
                          "2,smith,\"e\",f \"g\" \",yes\n"
                          "3,nurse,h,i\" j,no\n",
                      {.ids = true, .group_by = "town"});
  EXPECT_EQ(r.ids, (std::vector<std::string>{"a\nb\"c\r\n\n#d", "e", "h"}));
  EXPECT_EQ(r.groups, (std::vector<std::string>{"x, \ny", "f \"g\" \"", "i\" j"}));
}

TEST(TableReader, UsualMissingValuesUnlessTheyAreValues) {
  const std::string schema = R"(columns = [
  {name = "a", kind = "numeric", min = 0, max = 4, fill = 2},
  {name = "b", kind = "categorical", values = ["NA", "?"], missing = "column"},
  {name = "y", kind = "label", values = ["0", "1"], fill = "1"}])";
  const auto floats = [&](const std::string& rows, const std::string& before = "") {
    return read("a,b,y\n" + rows, {}, before + schema).set.floats;
  };
  for (const char* gap : {"", "NA", "NaN", "null", "?", "\"\"", " "})
    EXPECT_EQ(floats(std::string(gap) + ",NA,0"), (std::vector<float>{0.5f, 1, 0, 0})) << gap;
  EXPECT_EQ(floats("1,?,0"), (std::vector<float>{0.25f, 0, 1, 0}));
  EXPECT_EQ(floats("1,null,0"), (std::vector<float>{0.25f, 0, 0, 1}));
  EXPECT_EQ(read("a,b,y\n1,NA,null\n", {}, schema).set.labels, (std::vector<std::uint8_t>{1}));
  // A stated list takes the place of the usual one, and may have a number.
  EXPECT_EQ(floats("-9,x,0", "missing = ['-9', 'x']\n"), (std::vector<float>{0.5f, 0, 0, 1}));
  EXPECT_EQ(refusal("a,b,y\n?,NA,0", {}, "missing = []\n" + schema),
            "t.csv, line 2, column 'a': expected a finite number, found '?'");
  EXPECT_EQ(
      refusal("a,b,y\nnull,NA,0", {},
              "columns = [{name = 'a', kind = 'numeric', min = 0, max = 4},"
              "{name = 'b', kind = 'ignore'}, {name = 'y', kind = 'label', values = ['0', '1']}]"),
      "t.csv, line 2, column 'a': expected a finite number, found 'null', which is missing; "
      "'fill' in the schema gives it a value");
}

TEST(TableReader, DecimalCommasAndDates) {
  const std::string schema = R"(
delimiter = ";"
decimal = ","
columns = [
  {name = "a", kind = "numeric", min = 0, max = 4},
  {name = "d", kind = "date", format = "%d.%m.%Y", min = "01.01.2000", max = "31.12.2000", edges = ["01.07.2000"]},
  {name = "y", kind = "label", values = ["0", "1"]}])";
  const Read r = read("a;d;y\n1,5;01.01.2000;0\n-1e0;2.1.2000;1\n4;01.07.2000;1\n", {}, schema);
  EXPECT_EQ(r.set.floats, (std::vector<float>{0.375f, 0, 1, 0,                           //
                                              0, static_cast<float>(1.0 / 365.0), 1, 0,  //
                                              1, static_cast<float>(182.0 / 365.0), 0, 1}));
  EXPECT_EQ(refusal("a;d;y\n1.5;01.01.2000;0\n", {}, schema),
            "t.csv, line 2, column 'a': expected a finite number, found '1.5'");
  EXPECT_EQ(
      refusal("a;d;y\n1,5;30.02.2000;0\n", {}, schema),
      "t.csv, line 2, column 'd': expected a date of the form '%d.%m.%Y', found '30.02.2000'");
}

TEST(TableReader, UpToTwentyFaultsAreToldAtOnce) {
  std::string text =
      std::string(kHeader) + "1,nurse,a,b,no\nold,thief,a,b,no\n1,nurse\n2,\"x\"y,a,b,no\n";
  EXPECT_EQ(refusal(text),
            "t.csv: 4 errors\n"
            "  line 3, column 'age': expected a finite number, found 'old'\n"
            "  line 3, column 'job': expected one of the schema's 2 values, found 'thief'\n"
            "  line 4: expected 5 cells, found 2\n"
            "  line 5: expected a delimiter after a closing double quote, found 'y,a,b,no'");
  for (int i = 0; i < 10'000; ++i) text += "old,nurse,a,b,no\n";
  const std::string many = refusal(text, {.max_rows = 100});
  EXPECT_EQ(many.substr(0, many.find('\n')), "t.csv: 20 errors, and perhaps more after them");
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 20);
}

/// A row that cannot be read counts as one with nothing in it, whatever is wrong with it, and no
/// other row changes.
TEST(TableReader, MalformedRowsCanBeMissingOnes) {
  const std::string before = "1,nurse,a,b,yes\n", after = "2,smith,c,d,yes\n";
  const std::vector<float> empty = {0.5f, 0, 0, 1};
  const TableOptions options{.malformed = Malformed::missing};
  for (const std::string row :
       {",,,,", "old,thief,,,perhaps", "1,nurse", "1,nurse,a,b,yes,more", "\"x\"y,nurse,a,b,yes",
        "nan,\xe9,\"\"\"\",,\x01", "1e999,Nurse,,,YES"}) {
    const Read r = read(fmt::format("{}{}{}\n{}", kHeader, before, row, after), options);
    ASSERT_EQ(r.set.size(), 3u) << row;
    EXPECT_EQ(r.set.floats, (std::vector<float>{0.01f, 1, 0, 0, 0.5f, 0, 0, 1, 0.02f, 0, 1, 0}))
        << row;
    EXPECT_EQ(r.set.labels, (std::vector<std::uint8_t>{1, 0, 1})) << row;
  }
  // A quote without an end is a row's too, the last.
  EXPECT_EQ(read(kHeader + before + "\"1,nurse,a,b,yes\n", options).set.labels,
            (std::vector<std::uint8_t>{1, 0}));
  // So is a line that is too long to be read.
  const std::string long_row = std::string((16 << 20) + 5, 'x');
  const Read r = read(kHeader + before + long_row + "\n" + after, options);
  EXPECT_EQ(r.set.labels, (std::vector<std::uint8_t>{1, 0, 1}));
}

/// Labels of the rows, and their number as count_rows() finds it.
std::string labels_of(const std::string& text, const std::string& head = "",
                      Malformed malformed = Malformed::missing) {
  const TableSchema schema = parse_schema(head + kSchema, "s.toml");
  std::string labels;
  for (const std::uint8_t y : read(text, {.malformed = malformed}, head + kSchema).set.labels)
    labels += y == 1 ? 'y' : 'n';
  return labels + " " + std::to_string(count_rows(*memory_bytes("t.csv", as_bytes(text)), schema));
}

constexpr std::size_t kLongestRow = std::size_t{16} << 20;

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// A row that is too long to be read is one row to its end, whatever its quoted cell holds: line
/// breaks, lines that look like rows, doubled quotes where the row is cut.
TEST(TableReader, ARowThatIsCutIsOneRow) {
  const std::string yes = "1,nurse,a,b,yes\n", before = kHeader + yes;
  const std::string rows = repeated(yes, 1000);
  const std::string lines = repeated(std::string(63, 'f') + "\n", kLongestRow / 64 + 1);
  EXPECT_EQ(labels_of(before + "\"" + lines + rows + "\",nurse,a,b,no\n" + yes), "yny 3");
  EXPECT_EQ(labels_of(before + "\"" + lines + rows + rows), "yn 2") << "open to the file's end";
  const std::string line(kLongestRow, 'x');
  EXPECT_EQ(labels_of(before + "\"" + line + "\n" + rows + "\"\r\n" + yes), "yny 3");
  EXPECT_EQ(labels_of(before + line + "x\n" + yes), "yny 3");
  EXPECT_EQ(labels_of(before + line + "x,\"\"\"\n" + rows + "\"\n" + yes), "yny 3");
  EXPECT_EQ(labels_of(before + line + "x,\"\"\n" + yes), "yny 3") << "the cell is closed";
  for (std::size_t at = kLongestRow - 3; at <= kLongestRow + 3; ++at)
    EXPECT_EQ(labels_of(fmt::format("{}\"{}{}\n{}\"\n{}", before, line.substr(0, at - 1),
                                    std::string(7 - (at & 1), '"'), rows, yes)),
              at % 2 == 0 ? "yn" + std::string(1000, 'y') + "n 1003" : "yny 3")
        << at;
  EXPECT_EQ(labels_of(before + "\"" + line + "\n" + yes + yes, "quotes = false\n"), "ynyy 4")
      << "without quotes a row is a line";
}

/// Whether a row is cut depends on its own length only: a long row before it makes the buffer
/// larger.
TEST(TableReader, WhetherARowIsCutDependsOnItAlone) {
  const auto row = [](std::size_t length, const char* label) {
    const std::string begin = "1,nurse,", end = std::string(",b,") + label;
    return begin + std::string(length - begin.size() - end.size(), 'x') + end + "\n";
  };
  const std::string fits = row(kLongestRow, "yes"), longer = row(kLongestRow + 1, "yes");
  EXPECT_EQ(labels_of(kHeader + fits), "y 1");
  EXPECT_EQ(labels_of(kHeader + longer), "n 1");
  EXPECT_EQ(labels_of(kHeader + fits + longer), "yn 2");
  EXPECT_EQ(labels_of(kHeader + longer + longer + fits + longer), "nnyn 4");
  EXPECT_EQ(labels_of(kHeader + fits + longer.substr(0, longer.size() - 1)), "yn 2");
}

/// A row that is skipped is skipped with all lines of its quoted cell.
TEST(TableReader, ARowThatIsSkippedIsSkippedToItsEnd) {
  const std::string yes = "1,nurse,a,b,yes\n", skip = "skip_prefix = '#'\n";
  const std::string rows = repeated(yes, 1000);
  const std::string row = "#,nurse,a,\"c\n" + rows + "\",no\n";
  const auto expect_skipped = [&](Malformed malformed) {
    EXPECT_EQ(labels_of(kHeader + yes + row + yes, skip, malformed), "yy 2");
    EXPECT_EQ(labels_of(row + kHeader + yes, skip, malformed), "y 1");
    EXPECT_EQ(labels_of(kHeader + yes + "# 5\" long, it's\n" + yes, skip, malformed), "yy 2");
    EXPECT_EQ(labels_of(kHeader + yes + "#,\"open\n" + yes, skip + "quotes = false\n", malformed),
              "yy 2");
  };
  expect_skipped(Malformed::refuse);
  expect_skipped(Malformed::missing);
  const std::string lines = repeated(std::string(63, 'f') + "\n", kLongestRow / 64 + 1);
  EXPECT_EQ(labels_of(kHeader + yes + "#,\"" + lines + rows + "\"\n" + yes, skip), "yy 2");
}

/// A byte-order mark belongs to no cell wherever its row is, so that a row put before it does not
/// change it.
TEST(TableReader, AByteOrderMarkChangesWithNoOtherRow) {
  const std::string head = "header = false\n", other = "5,smith,a,b,yes\n";
  const std::string marked = "\xef\xbb\xbf\"1\",nurse,a,b,yes\n";
  const TableOptions options{.malformed = Malformed::missing};
  const std::vector<float> first = read(marked, options, head + kSchema).set.floats;
  const std::vector<float> both = read(other + marked, options, head + kSchema).set.floats;
  ASSERT_EQ(both.size(), 2 * first.size());
  EXPECT_EQ(std::vector(both.begin() + static_cast<std::ptrdiff_t>(first.size()), both.end()),
            first);
  EXPECT_EQ(first, (std::vector<float>{0.01f, 1, 0, 0}));
}

/// A first row that begins like a compressed file is a row: where there is no header the name
/// decides. A header is public, so its table is found to be compressed by its content.
TEST(TableReader, NoRowIsTakenForACompressedFile) {
  const TempFolder dir;
  const std::string schema = dir.write("s.toml", std::string("header = false\n") + kSchema);
  const std::string yes = "1,nurse,a,b,yes\n";
  const std::string rest = std::string(1, '\0') + "oo,nurse,a,b,no\n" + yes + yes;
  for (const std::string magic : {"\x1f\x8b",
                                  "\xfd"
                                  "7zXZ"}) {
    const std::string table = dir.write("t.csv", magic + rest);
    const DataRequest missing{.dataset = table, .schema = schema, .malformed = Malformed::missing};
    EXPECT_EQ(load_data(missing).train.labels, (std::vector<std::uint8_t>{0, 1, 1}));
    EXPECT_EQ(refusal_of([&] { load_data({.dataset = table, .schema = schema}); }, dir.path()),
              "DIR/t.csv: expected a table of text, found " +
                  std::string(magic.size() == 2 ? "gzip data; let its name end in .gz"
                                                : "xz data; let its name end in .xz"));
  }
  const std::string packed = gzipped(yes + yes);
  const std::string named = dir.write("t.csv.gz", packed);
  EXPECT_EQ(load_data({.dataset = named, .schema = schema}).train.size(), 2u);
  EXPECT_EQ(
      refusal_of([&] { load_data({.dataset = dir.write("u.csv.gz", yes), .schema = schema}); },
                 dir.path()),
      "DIR/u.csv.gz, byte 0 of the compressed file: expected gzip data, as the file's name "
      "states, found something else");
}

/// A row that fits the schema is read wherever it stands, even if the file then begins like another
/// kind of file, or has a zero in its first bytes.
TEST(TableReader, ARowThatFitsIsReadAsTheFirstOneToo) {
  const std::string schema =
      "name = 't'\ncolumns = [{name = 'who', kind = 'ignore'},"
      "{name = 'x', kind = 'numeric', min = 0, max = 1},"
      "{name = 'y', kind = 'label', values = ['no', 'yes']}]\n";
  const std::string row = "p,0.5,no\n", zero(1, '\0');
  for (const std::string& name : {std::string("BZhang"), std::string("PAR1"), "a" + zero + "b"}) {
    const std::string odd = name + ",1,yes\n";
    for (const std::string& head : {std::string("header = false\n"), std::string()}) {
      const std::string first = head.empty() ? "who,x,y\n" : "";
      EXPECT_EQ(read(fmt::format("{}{}{}{}", first, odd, row, row), {}, head + schema).set.labels,
                (std::vector<std::uint8_t>{1, 0, 0}));
      EXPECT_EQ(read(fmt::format("{}{}{}{}", first, row, row, odd), {}, head + schema).set.labels,
                (std::vector<std::uint8_t>{0, 0, 1}));
    }
  }
}

TEST(TableReader, WhatNeedsACodeForMissingIsKnownFromTheSchema) {
  const auto refused = [](const std::string& columns) {
    return refusal_of([&] {
      require_missing_codes(parse_schema("columns = [" + columns + "]", "s.toml"), "s.toml");
    });
  };
  const std::string label = "{name = 'y', kind = 'label', values = ['0', '1'], fill = '0'}";
  const std::string number = "{name = 'a', kind = 'numeric', min = 0, max = 1, fill = 0}, ";
  EXPECT_EQ(refused(number + label), "");
  EXPECT_EQ(refused("{name = 'a', kind = 'numeric', min = 0, max = 1}, " + label),
            "s.toml, column 'a': expected a 'fill' for --malformed missing: what a cell that "
            "cannot be read stands for, found none");
  EXPECT_EQ(refused(number + "{name = 'y', kind = 'label', values = ['0', '1']}").substr(0, 18),
            "s.toml, column 'y'");
}

TEST(TableReader, ForeignFilesAreNamed) {
  EXPECT_EQ(refusal("\x93NUMPY\x01"),
            "t.csv: expected a table of text, found a NumPy array; let its name end in .npy");
  EXPECT_EQ(refusal("PK\x03\x04"),
            "t.csv: expected a table of text, found a zip archive; let its name end in .npz "
            "if NumPy made it, save it as CSV if it is a workbook");
  const std::string utf16 =
      "t.csv: expected a table of text, found UTF-16 text; iconv -f UTF-16 -t UTF-8 FILE > NEW "
      "makes it UTF-8";
  std::string wide;
  for (const char c : std::string(kHeader)) (wide += c) += '\0';
  EXPECT_EQ(refusal(wide), utf16);
  EXPECT_EQ(refusal("\xff\xfe" + wide), utf16);
  EXPECT_EQ(refusal(std::string(kHeader) + std::string(3, '\0')),
            "t.csv: expected a table of text, found a binary file");
  EXPECT_EQ(refusal("age;job;key;town;ill\n1;nurse;a;b;no\n"),
            "t.csv, line 1: expected 5 names in the header row, found one; the line has 4 ';': "
            "perhaps delimiter = \";\" in its schema, or cudp schema --delimiter \";\"");
  EXPECT_EQ(refusal("age,job,key,town,ill\n1\tnurse\ta\tb\tno\n"),
            "t.csv, line 2: expected 5 cells, found 1; the line has 4 '\\t': perhaps delimiter = "
            "\"\\t\" in its schema, or cudp schema --delimiter \"\\t\"");
  EXPECT_EQ(refusal("\xe2ge,job,key,town,ill\n"),
            "t.csv, line 1: expected UTF-8 text, found '?ge', which is not UTF-8 but perhaps "
            "Latin-1; iconv -f LATIN1 -t UTF-8 FILE > NEW makes it UTF-8");
  EXPECT_EQ(refusal(std::string(kHeader) + "1,caf\xe9,a,b,no\n"),
            "t.csv, line 2, column 'job': expected one of the schema's 2 values, found 'caf?', "
            "which is not UTF-8 but perhaps Latin-1; iconv -f LATIN1 -t UTF-8 FILE > NEW makes it "
            "UTF-8");
}

/// Where malformed rows are missing ones, no row may decide whether a table is refused.
TEST(TableReader, NoRowIsTakenForAForeignFile) {
  const TableOptions options{.malformed = Malformed::missing};
  const std::string zeros(40, '\0');
  EXPECT_EQ(read(kHeader + zeros + "\n1,nurse,a,b,yes\n", options).set.labels,
            (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(read(zeros + "\n1,nurse,a,b,yes\n", options, std::string("header = false\n") + kSchema)
                .set.labels,
            (std::vector<std::uint8_t>{0, 1}));
}

TEST(TableReader, StopsWhereItsUserDoes) {
  std::string text = kHeader;
  for (int i = 0; i < 20'000; ++i) text += "1,nurse,a,b,no\n";
  const TableSchema schema = parse_schema(kSchema, "s.toml");
  const auto bytes = memory_bytes("t.csv", as_bytes(text));
  TableReader reader(*bytes, schema, {.max_rows = 10});
  TableBlock block;
  ASSERT_TRUE(reader.next(block));
}

/// A row of Adult as the schema's comments say it is encoded, written apart from the encoder.
std::vector<float> adult_features(const std::vector<std::string>& cells,
                                  const TableSchema& schema) {
  std::vector<float> out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (const auto* n = std::get_if<Numeric>(&schema.columns[i].kind)) {
      const double value = std::stod(cells[i]);
      const double x = std::min(std::max(value, *n->min), *n->max);
      out.push_back(static_cast<float>(n->log
                                           ? std::log1p(x - *n->min) / std::log1p(*n->max - *n->min)
                                           : (x - *n->min) / (*n->max - *n->min)));
      for (std::size_t k = 0; k <= n->edges.size() && !n->edges.empty(); ++k)
        out.push_back((k == 0 || value >= n->edges[k - 1]) &&
                              (k == n->edges.size() || value < n->edges[k])
                          ? 1.0f
                          : 0.0f);
    } else if (const auto* c = std::get_if<Categorical>(&schema.columns[i].kind)) {
      for (const std::string& v : c->values) out.push_back(cells[i] == v ? 1.0f : 0.0f);
    }
  }
  return out;
}

/// Schemas that were written before there was a usual list of gaps read what they read then.
TEST(TableReader, ShippedSchemasGiveTheFeaturesTheyGave) {
  const TableSchema adult = parse_schema(shipped_schema("adult"), "adult");
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t k = 0; k < adult.columns.size(); ++k) {
      const auto& kind = adult.columns[k].kind;
      const auto pick = static_cast<std::size_t>(i) * 31 + k * 7;
      if (const auto* c = std::get_if<Categorical>(&kind))
        cells.push_back(pick % 11 == 0 ? "?" : c->values[pick % c->values.size()]);
      else if (const auto* l = std::get_if<Label>(&kind))
        cells.push_back(l->values[pick % 2] + (pick % 3 == 0 ? "." : ""));
      else
        cells.push_back(std::to_string(pick * 7919 % 120'000 / (pick % 4 == 0 ? 1 : 997)));
    }
  }
  std::string text = "|1x3 Cross validator\n";
  std::vector<float> expected;
  for (const auto& cells : rows) {
    for (std::size_t k = 0; k < cells.size(); ++k) text += (k == 0 ? "" : ", ") + cells[k];
    text += '\n';
    const std::vector<float> features = adult_features(cells, adult);
    expected.insert(expected.end(), features.begin(), features.end());
  }
  const Read r = read(text, {}, std::string(shipped_schema("adult")));
  EXPECT_EQ(r.set.floats, expected);  // bit for bit
  // What no shipped schema allowed is still refused, usual gap or not.
  std::string row = text.substr(text.rfind('\n', text.size() - 2) + 1);
  for (const char* gap : {"", "NA", "NaN", "null"})
    EXPECT_NE(refusal(gap + row.substr(row.find(',')), {}, std::string(shipped_schema("adult"))),
              "");
  std::string bank;
  for (int k = 0; k < 33; ++k) bank += k == 4 ? "NA " : "1 ";
  EXPECT_NE(refusal(bank + "\n", {}, std::string(shipped_schema("bank"))), "");
  // A review is a text, whatever it says.
  const TextOptions options{.tokens = 3};
  const TextCoder coder{options, Vocabulary({"na", "null", "nan"}, Marks::none_but_zero), nullptr,
                        ""};
  const Read reviews =
      read("1\tNA\n0\tnull\n1\tNaN\n0\t\n", {.coder = &coder}, std::string(shipped_schema("imdb")));
  EXPECT_EQ(reviews.set.lengths, (std::vector<std::uint16_t>{1, 1, 1, 0}));
}

}  // namespace
}  // namespace cudp

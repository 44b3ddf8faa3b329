#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "runtime/base/busy.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/infer_schema.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/table_reader.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

constexpr const char* kSchema = R"(
missing = "?"
skip_prefix = "#"
columns = [
  {name = "age", kind = "numeric", min = 10, max = 20, edges = [12, 15]},
  {name = "pay", kind = "numeric", min = 0, max = 99, transform = "log", fill = 0},
  {name = "job", kind = "categorical", values = ["nurse", "smith"], missing = "column"},
  {name = "pet", kind = "categorical", values = ["cat", "dog"], unknown = "zeros"},
  {name = "id", kind = "ignore"},
  {name = "ill", kind = "label", values = ["no", "yes"], strip_suffix = "."},
])";
constexpr const char* kHeader = "age,pay,job,pet,id,ill\n";

std::span<const std::uint8_t> as_bytes(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

/// The rows, dense.
Dataset read(const std::string& text, const std::string& schema_text = kSchema) {
  const TableSchema schema = parse_schema(schema_text, "s.toml");
  return dense(read_table(*memory_bytes("t.csv", as_bytes(text)), schema, {}, 0));
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { read(text); });
}

std::string row_refusal(const std::string& row) { return refusal(kHeader + row + "\n"); }

TEST(Table, EncodesEveryKindOfColumn) {
  const Dataset set = read(std::string(kHeader) +
                           "15,9,smith,cat,x,yes\n"
                           "11.5,?,?,cow,,no.\n"
                           "-3,1e3,nurse,?,?,yes.\n");
  EXPECT_EQ(set.shape, (Shape{10, 1, 1}));
  EXPECT_EQ(set.classes, 2);
  EXPECT_EQ(set.labels, (std::vector<std::uint8_t>{1, 0, 1}));
  const std::vector<float> expected = {
      0.5f,  0, 0, 1, 0.5f, 0, 1, 0, 1, 0,  //
      0.15f, 1, 0, 0, 0.0f, 0, 0, 1, 0, 0,  //
      0.0f,  1, 0, 0, 1.0f, 1, 0, 0, 0, 0,
  };
  ASSERT_EQ(set.floats.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(std::fabs(set.floats[i] - expected[i]) <= 1e-7f) << i << ": " << set.floats[i];
}

TEST(Table, LayoutOfTheText) {
  const std::string row = "15,9,smith,cat,x,yes";
  const Dataset plain = read(kHeader + row);
  const auto same = [&](const std::string& text) {
    const Dataset set = read(text);
    EXPECT_EQ(set.floats, plain.floats) << text;
    EXPECT_EQ(set.labels, plain.labels) << text;
  };
  same(kHeader + row + "\n");
  same("\xef\xbb\xbf" + std::string(kHeader) + "\r\n# words\n\n  \n" + row + "\r\n\n");
  same("# first\n" + std::string(kHeader) + " 15 ,\t9, smith,cat , x,yes ");
  same("ill,id,pet,job,pay,age\nyes,x,cat,smith,9,15\n");
  same(kHeader + std::string("\"15\",9,\"smith\" ,cat,\"a, \"\"b\"\"\",\"yes\""));
  same(kHeader + std::string("+15,9.0e0,smith,cat,x,yes"));
}

TEST(Table, BlanksAsDelimiter) {
  const Dataset set = read("  0   1 no \n1 0.5 yes\n",
                           "header = false\ndelimiter = ' '\ncolumns = ["
                           "{name='a', kind='numeric', min=0, max=1},"
                           "{name='b', kind='numeric', min=0, max=1},"
                           "{name='y', kind='label', values=['no','yes']}]");
  EXPECT_EQ(set.floats, (std::vector<float>{0, 1, 1, 0.5f}));
  EXPECT_EQ(set.labels, (std::vector<std::uint8_t>{0, 1}));
}

TEST(Table, LongLinesAndManyRows) {
  std::string text = kHeader;
  for (int i = 0; i < 3000; ++i)
    text += "15,9,smith,cat," + std::string(static_cast<std::size_t>(i % 7) * 20'000 / 7, 'x') +
            (i % 2 ? ",yes\n" : ",no\n");
  const Dataset set = read(text);
  ASSERT_EQ(set.size(), 3000u);
  for (std::size_t i = 0; i < set.size(); ++i) ASSERT_EQ(set.labels[i], i % 2);
}

TEST(Table, EveryFaultHasItsLine) {
  EXPECT_EQ(refusal(""), "t.csv: expected a header row, found none");
  EXPECT_EQ(read(kHeader).size(), 0u) << "how many rows there are may be private";
  EXPECT_EQ(refusal("age,pay,job,pet,ill\n"),
            "t.csv, line 1: expected a column 'id', found none of that name in the header row");
  EXPECT_EQ(refusal("age,pay,job,pet,id,ill,more\n"),
            "t.csv, line 1: expected only columns the schema names, found 'more'");
  EXPECT_EQ(refusal("age,pay,job,pet,id,ill,age\n"),
            "t.csv, line 1: expected each column once, found 'age' twice");
  EXPECT_EQ(row_refusal("1,2,nurse,cat,x"), "t.csv, line 2: expected 6 cells, found 5");
  EXPECT_EQ(row_refusal("1,2,nurse,cat,x,no,"), "t.csv, line 2: expected 6 cells, found 7");
  EXPECT_EQ(row_refusal("\n\nold,2,nurse,cat,x,no"),
            "t.csv, line 4, column 'age': expected a finite number, found 'old'");
  for (const char* bad : {"nan", "inf", "-Infinity", "1e999", "1 2", "0x10", "+-1"})
    EXPECT_EQ(
        row_refusal(std::string(bad) + ",2,nurse,cat,x,no"),
        "t.csv, line 2, column 'age': expected a finite number, found '" + std::string(bad) + "'");
  EXPECT_EQ(row_refusal("?,2,nurse,cat,x,no"),
            "t.csv, line 2, column 'age': expected a finite number, found '?', which is missing; "
            "'fill' in the schema gives it a value");
  EXPECT_EQ(row_refusal("1,2,thief,cat,x,no"),
            "t.csv, line 2, column 'job': expected one of the schema's 2 values, found 'thief'");
  EXPECT_EQ(row_refusal("1,2,nurse,cat,x,maybe."),
            "t.csv, line 2, column 'ill': expected one of the schema's 2 classes, found 'maybe.'");
  EXPECT_EQ(row_refusal("\"1,2,nurse,cat,x,no"),
            "t.csv, line 2: expected a closing double quote, found the end of the file");
  EXPECT_EQ(row_refusal("\"1\"2,2,nurse,cat,x,no"),
            "t.csv, line 2: expected a delimiter after a closing double quote, found "
            "'2,2,nurse,cat,x,no'");
  EXPECT_EQ(refusal(std::string((16 << 20) + 1, 'x')),
            "t.csv, line 1: expected a line of at most 16 MiB, found a longer one");
}

TEST(Table, BoundsAreNotReadFromPrivateRowsUnasked) {
  const TempFolder dir;
  const std::string path = dir.write("d.csv", "a,b,Target,c\n1,x,no,3\n5,y,yes,3\n3,x,no,3\n");
  EXPECT_EQ(refusal_of([&] { load_data({.dataset = path}); }, dir.path()),
            "DIR/d.csv: 3 columns need a kind: 'a', 'b', 'c'; 1 column needs public bounds, "
            "categories or classes: 'Target'; `cudp schema DIR/d.csv --out DIR/d.csv.schema.toml` "
            "drafts a schema to state them in (--accept-private-bounds reads them from the private "
            "rows in place of that, outside of what epsilon covers: the run is then not for "
            "release)");
  const std::string test = dir.write("t.csv", "c,a,b,Target\n9,2,z,yes\n");
  const DataSplit split =
      load_data({.dataset = path, .test_path = test, .accept_private_bounds = true});
  EXPECT_EQ(split.name, "d");
  EXPECT_FALSE(split.size_is_public);
  EXPECT_EQ(
      split.unsafe,
      (std::vector<std::string>{"bounds, categories or classes were read from private rows"}));
  EXPECT_EQ(dense(split.train).floats, (std::vector<float>{0, 1, 0, 0, 1, 0, 1, 0, 0.5f, 1, 0, 0}));
  EXPECT_EQ(split.train.labels, (std::vector<std::uint8_t>{0, 1, 0}));
  EXPECT_EQ(dense(split.test).floats,
            (std::vector<float>{0.25f, 0, 0, 1}));  // clamped; z is unknown
  EXPECT_EQ(split.test.labels, (std::vector<std::uint8_t>{1}));
}

TEST(Table, TheLastColumnIsTheLabelWithoutABetterName) {
  const std::string text = "a,b\n1,2\n2,10\n3,2\n";
  const TableSchema open = schema_from_header(*memory_bytes("t", as_bytes(text)), ',');
  const TableSchema full = complete_from_rows(open, *memory_bytes("t", as_bytes(text)));
  EXPECT_EQ(std::get<Numeric>(full.columns[0].kind).max, 3.0);
  EXPECT_EQ(std::get<Label>(full.columns[1].kind).values, (std::vector<std::string>{"2", "10"}));
}

TEST(Table, WhatCannotBeCompleted) {
  const auto completion = [](const std::string& text) {
    return refusal_of([&] {
      const TableSchema open = schema_from_header(*memory_bytes("t", as_bytes(text)), ',');
      complete_from_rows(open, *memory_bytes("t", as_bytes(text)));
    });
  };
  EXPECT_EQ(completion("a,y\n1,0\n2,0\n"),
            "t, column 'y': expected at least two classes, found one");
  EXPECT_EQ(completion("a,a\n"),
            "t, line 1: expected a different name for every column, found 'a' twice");
  EXPECT_EQ(completion("a\n"), "t, line 1: expected at least two columns, found one");
  EXPECT_EQ(completion(""), "t: expected a header row, found none");
  EXPECT_EQ(completion("a,y\n-1.7e308,0\n1.7e308,1\n"),
            "t, column 'a': expected finite numbers in every training row, found something else");
  std::string many = "a,y\n";
  for (int i = 0; i < 1001; ++i)
    many.append("w").append(std::to_string(i)).append(i % 2 ? ",1\n" : ",0\n");
  EXPECT_EQ(completion(many),
            "t, column 'a': expected at most 1000 categories, found more; give a schema");
}

TEST(Table, ASchemaBesideTheTableIsUsed) {
  const TempFolder dir;
  std::string rows = kHeader;
  for (int i = 0; i < 50; ++i) rows += "15,9,smith,cat,x,yes\n";
  const std::string path = dir.write("d.csv.gz", gzipped(rows));
  const std::string schema = dir.write("d.csv.schema.toml", kSchema);
  const DataSplit split = load_data({.dataset = path});
  EXPECT_EQ(split.name, "d");
  EXPECT_EQ(split.train.size(), 50u);
  EXPECT_EQ(split.test.size(), 0u);
  EXPECT_EQ(load_test_data({.dataset = path}).examples.size(), 50u);
  EXPECT_TRUE(split.unsafe.empty());
  dir.write("d.csv.schema.toml", "columns = 3");
  EXPECT_EQ(refusal_of([&] { load_data({.dataset = path}); }, dir.path()),
            "DIR/d.csv.schema.toml, line 1: expected a list 'columns', found none");
  EXPECT_EQ(
      refusal_of([&] { load_data({.dataset = path, .schema = dir.path() + "/no"}); }, dir.path()),
      "DIR/no: expected a file that can be read, found No such file or directory");
}

/// Every file of a table is named while it is read, the last one in the end.
TEST(Table, ShowsWhatIsBeingReadAndHowMuchOfIt) {
  const TempFolder dir;
  std::string rows = kHeader;
  for (int i = 0; i < 50; ++i) rows += "15,9,smith,cat,x,yes\n";
  const std::string train = dir.write("d.csv", rows);
  const std::string test = dir.write("t.csv.gz", gzipped(rows));
  const std::string schema = dir.write("s.toml", kSchema);
  Busy busy("", Busy::Shown::never);
  load_data({.dataset = train, .schema = schema, .progress = &busy});
  EXPECT_TRUE(busy.line().starts_with("reading 'd.csv': 100 % after ")) << busy.line();
  load_data({.dataset = train, .schema = schema, .test_path = test, .progress = &busy});
  EXPECT_TRUE(busy.line().starts_with("reading 't.csv.gz': 100 % after ")) << busy.line();
  load_data({.dataset = train,
             .schema = schema,
             .holdout = HoldOutDraws(SharedKey(make_key()), 0.2),
             .progress = &busy});
  EXPECT_TRUE(busy.line().starts_with("reading 'd.csv': 100 % after ")) << busy.line();
  load_test_data({.dataset = test, .schema = schema, .progress = &busy});
  EXPECT_TRUE(busy.line().starts_with("reading 't.csv.gz': 100 % after ")) << busy.line();
  // A row that cannot be read ends the reading.
  rows.insert(rows.size() / 2, "x\n");
  const std::string faulty = dir.write("f.csv", rows);
  EXPECT_NE(
      refusal_of([&] { load_data({.dataset = faulty, .schema = schema, .progress = &busy}); }), "");
}

/// The part of a row of BANK follows from its own text: one row more changes no other row's part.
TEST(Table, TestRowsOfBankAreAFifth) {
  constexpr int kRows = 10'000;
  int test_rows = 0;
  for (int i = 0; i < kRows; ++i)
    test_rows += is_published_test_row(std::to_string(i) + ",0") ? 1 : 0;
  // Binomial; 4.9 standard deviations is a false alarm of 1e-6.
  EXPECT_NEAR(test_rows, 0.2 * kRows, 4.9 * std::sqrt(0.16 * kRows));
}

TEST(Table, ScoringReadsEveryRow) {
  const TempFolder dir;
  const std::string train = dir.write("train.csv", "a,y\n1,0\n3,1\n5,1\n");
  const std::string more = dir.write("more.csv", "a,y\n2,0\n4,1\n");
  // What the schema leaves open is the training table's.
  const DataRequest open{.dataset = train, .test_path = more, .accept_private_bounds = true};
  const TestData scored = load_test_data(open);
  EXPECT_EQ(dense(scored.examples).floats, (std::vector<float>{0.25f, 0.75f}));
  EXPECT_EQ(
      refusal_of([&] { load_test_data({.dataset = train, .accept_private_bounds = true}); },
                 dir.path()),
      "DIR/train.csv: 1 column needs a kind: 'a'; 1 column needs public bounds, categories or "
      "classes: 'y'; `cudp schema DIR/train.csv --out DIR/train.csv.schema.toml` drafts a "
      "schema to state them in (--accept-private-bounds reads them from the private rows in "
      "place of that, outside of what epsilon covers: the run is then not for release)");
}

}  // namespace
}  // namespace cudp

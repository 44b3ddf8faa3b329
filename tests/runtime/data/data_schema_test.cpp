#include <gtest/gtest.h>

#include "runtime/data/schema.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

constexpr const char* kLabel = "{name = 'y', kind = 'label', values = ['0', '1']}";

/// What a schema of this column and a label is refused with.
std::string column_refusal(const std::string& column) {
  return refusal_of(
      [&] { parse_schema("columns = [\n" + column + ",\n" + kLabel + "]", "s.toml"); });
}

std::string refusal(const std::string& toml) {
  return refusal_of([&] { parse_schema(toml, "s.toml"); });
}

TEST(Schema, ReadsEveryKey) {
  const TableSchema s = parse_schema(R"(
name = "people"
delimiter = "\t"
header = false
skip_prefix = "#"
missing = "NA"
columns = [
  {name = "a", kind = "numeric", min = 1, max = 2.5, transform = "log", edges = [1, 2], fill = 1.5},
  {name = "b", kind = "categorical", values = ["x", "y"], missing = "column", unknown = "zeros"},
  {name = "c", kind = "ignore"},
  {name = "d", kind = "label", values = ["no", "yes"], strip_suffix = "."},
])",
                                     "s.toml");
  EXPECT_EQ(s.name, "people");
  EXPECT_EQ(s.delimiter, '\t');
  EXPECT_FALSE(s.header);
  EXPECT_EQ(s.skip_prefix, "#");
  EXPECT_EQ(s.missing, (std::vector<std::string>{"NA"}));
  ASSERT_EQ(s.columns.size(), 4u);
  const auto& a = std::get<Numeric>(s.columns[0].kind);
  EXPECT_EQ(a.min, 1.0);
  EXPECT_EQ(a.max, 2.5);
  EXPECT_TRUE(a.log);
  EXPECT_EQ(a.edges, (std::vector<double>{1, 2}));
  EXPECT_EQ(a.fill, 1.5);
  const auto& b = std::get<Categorical>(s.columns[1].kind);
  EXPECT_EQ(b.values, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(b.missing_has_column);
  EXPECT_TRUE(b.unknown_is_zeros);
  EXPECT_EQ(std::get<Label>(s.columns[3].kind).strip_suffix, ".");
  EXPECT_EQ(feature_count(s), 4 + 3);
  EXPECT_EQ(first_incomplete(s), "");
}

TEST(Schema, SaysWhichColumnIsIncomplete) {
  const auto open = [](const std::string& column) {
    return first_incomplete(parse_schema("columns = [" + column + "," + kLabel + "]", "s"));
  };
  EXPECT_EQ(open("{name = 'a', kind = 'numeric'}"), "a");
  EXPECT_EQ(open("{name = 'a', kind = 'numeric', min = 0, max = 1}"), "");
  EXPECT_EQ(open("{name = 'b', kind = 'categorical'}"), "b");
}

TEST(Schema, EveryFaultHasItsLine) {
  EXPECT_EQ(refusal(""), "s.toml, line 1: expected a list 'columns', found none");
  EXPECT_EQ(
      refusal("colums = []"),
      "s.toml, line 1: expected one of the keys name, delimiter, quotes, header, skip_prefix, "
      "missing, decimal, unit, max_rows, metric, columns, found 'colums'");
  EXPECT_EQ(refusal("delimiter = ', '\ncolumns = []"),
            "s.toml, line 1: expected one character for 'delimiter', found ', '");
  EXPECT_EQ(refusal("header = 1"),
            "s.toml, line 1: expected true or false for 'header', found the number 1");
  EXPECT_EQ(refusal(std::string("columns = [") + kLabel + "]"),
            "s.toml, line 1: expected 1 to 1048576 features, found 0");
  EXPECT_EQ(refusal("columns = [{name = 'a', kind = 'numeric', min = 0, max = 1}]"),
            "s.toml, line 1: expected exactly one column of kind label or target, found 0");
  EXPECT_EQ(column_refusal("{kind = 'ignore'}"),
            "s.toml, line 2: expected a text for 'name', found no such key");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'number'}"),
            "s.toml, line 2: expected kind numeric, date, categorical, text, label, target, id or "
            "ignore, found "
            "'number'");
  EXPECT_EQ(column_refusal("{name = 'y', kind = 'ignore'}"),
            "s.toml, line 3: expected a name no other column has, found 'y'");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', mni = 1}"),
            "s.toml, line 2: expected one of the keys name, kind, min, max, transform, edges, "
            "fill, found 'mni'");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', min = 1}"),
            "s.toml, line 2: expected both 'min' and 'max', or neither, found one");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', min = 2, max = 2}"),
            "s.toml, line 2: expected 'min' below 'max', found 2 and 2");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', min = nan, max = 2}"),
            "s.toml, line 2: expected a finite number for 'min', found the number nan");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', min = '1', max = 2}"),
            "s.toml, line 2: expected a finite number for 'min', found '1'");
  EXPECT_NE(column_refusal("{name = 'a', kind = 'numeric', min = -1.7e308, max = 1.7e308}")
                .find("expected 'min' below 'max'"),
            std::string::npos);
  EXPECT_EQ(
      column_refusal("{name = 'a', kind = 'numeric', min = 0, max = 2, edges = [1, 1]}"),
      "s.toml, line 2: expected a list of rising numbers for 'edges', found the number 1 after "
      "1");
  EXPECT_EQ(
      column_refusal("{name = 'a', kind = 'date', format = '%Y', min = '1990', max = '1980'}"),
      "s.toml, line 2: expected 'min' below 'max', found 1990 and 1980");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'categorical', values = ['x', true]}"),
            "s.toml, line 2: expected a list of texts for 'values', each in quotes, found true");
  EXPECT_EQ(
      column_refusal("{name = 'a', kind = 'categorical', values = [1999-12-31]}"),
      "s.toml, line 2: expected a list of texts for 'values', each in quotes, found a date or "
      "a time without quotes");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'categorical', values = [['x'], {}]}"),
            "s.toml, line 2: expected a list of texts for 'values', each in quotes, found a list");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'categorical', values = 'x'}"),
            "s.toml, line 2: expected a list with something in it for 'values', found 'x'");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'numeric', min = 0, max = 2, transform = 'ln'}"),
            "s.toml, line 2: expected 'linear' or 'log' for 'transform', found 'ln'");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'categorical', values = ['x', 'x']}"),
            "s.toml, line 2: expected different texts in 'values', found 'x' twice");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'categorical', values = []}"),
            "s.toml, line 2: expected a list with something in it for 'values', found an empty "
            "list");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'label', values = ['0']}"),
            "s.toml, line 2: expected 2 to 256 texts in 'values', found 1");
  EXPECT_EQ(
      column_refusal("{name = 'a', kind = 'date', format = '%d'}"),
      "s.toml, line 2: expected a form of dates such as '%Y-%m-%d' for 'format', found no %Y");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'date', format = '%Y', min = '1990', max = 'x'}"),
            "s.toml, line 2: expected a date of the form '%Y' for 'max', found 'x'");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'date', format = '%Y', edges = ['1990', '1980']}"),
            "s.toml, line 2: expected a list of rising dates for 'edges', found '1980' after a "
            "later one");
  EXPECT_EQ(column_refusal("{name = 'a', kind = 'id'}, {name = 'b', kind = 'id'}"),
            "s.toml, line 1: expected at most one column of kind id, found 2");
  EXPECT_EQ(refusal("columns = [{name = 'y', kind = 'label', values = ['0', '1'], fill = '2'}]"),
            "s.toml, line 1: expected one of the label's 'values' for 'fill', found '2'");
  EXPECT_EQ(refusal("decimal = ','\nquotes = false\ncolumns = []"),
            "s.toml, line 1: expected another 'delimiter' than the decimal comma, or 'quotes', "
            "found ','");
  EXPECT_EQ(refusal("missing = 3"),
            "s.toml, line 1: expected a text for 'missing', found the number 3");
  EXPECT_EQ(refusal("name = 'x'\ncolumns = [").substr(0, 42),
            "s.toml, line 2: expected valid TOML, found");
}

TEST(Schema, ShippedOnesAreComplete) {
  const TableSchema adult = parse_schema(shipped_schema("adult"), "adult");
  EXPECT_EQ(feature_count(adult), 124);
  EXPECT_EQ(first_incomplete(adult), "");
  const TableSchema bank = parse_schema(shipped_schema("bank"), "bank");
  EXPECT_EQ(feature_count(bank), 32);
  EXPECT_EQ(first_incomplete(bank), "");
  EXPECT_EQ(shipped_schema("mnist"), "");
}

}  // namespace
}  // namespace cudp

#include "runtime/data/schema_text.hpp"

#include <random>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/data/dates.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

TableSchema again(const TableSchema& schema) {
  return parse_schema(schema_toml(schema), "written.toml");
}

TEST(SchemaText, ShippedSchemasComeBackEqual) {
  for (const char* name : {"adult", "bank", "ipums-br", "imdb"}) {
    const TableSchema schema = parse_schema(shipped_schema(name), name);
    EXPECT_TRUE(again(schema) == schema) << name << "\n" << schema_toml(schema);
    EXPECT_EQ(feature_names(schema).size(), static_cast<std::size_t>(feature_count(schema)));
  }
}

/// Random schemas with odd characters.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  bool coin() { return below(2) == 0; }

  std::string text() {
    static const char* const kParts[] = {"a",
                                         "B9",
                                         " ",
                                         "\"",
                                         "\\",
                                         "'",
                                         "\n",
                                         "\t",
                                         "\r",
                                         "\x1b",
                                         "\x7f",
                                         "\xc3\xbc",
                                         "#",
                                         "=",
                                         "[",
                                         "\x01",
                                         "\xf0\x9f\xa6\x80",
                                         ",",
                                         "\xe2\x80\xae",
                                         "}"};
    std::string out;
    for (std::size_t n = below(6); n > 0; --n) out += kParts[below(std::size(kParts))];
    return out;
  }

  /// Different texts, `count` of them.
  std::vector<std::string> texts(std::size_t count) {
    std::vector<std::string> out;
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) out.push_back(text() + std::to_string(i));
    return out;
  }

  double number() {
    const double fraction = std::uniform_real_distribution<double>(-1.0, 1.0)(random_);
    return coin() ? std::ldexp(fraction, static_cast<int>(below(200)) - 100)
                  : static_cast<double>(static_cast<int>(below(2000)) - 1000);
  }

  Numeric numeric() {
    Numeric n;
    if (coin()) {
      n.min = number();
      n.max = *n.min + 1.0 + 2.0 * std::abs(*n.min);
    }
    n.log = coin();
    if (coin()) n.fill = number();
    for (double edge = number(); n.edges.size() < below(5); edge += 1.0 + 2.0 * std::abs(edge))
      n.edges.push_back(edge);
    return n;
  }

  Numeric date() {
    static const char* const kForms[] = {"%Y-%m-%d", "%d.%m.%Y %H:%M:%S", "%Y%m%d", "%%%Y\"%m"};
    Numeric n;
    n.date_format = kForms[below(std::size(kForms))];
    const auto day = [&](int year) {
      return *parse_date(format_date(*parse_date(std::to_string(year), "%Y"), n.date_format),
                         n.date_format);
    };
    if (coin()) {
      n.min = day(1900 + static_cast<int>(below(50)));
      n.max = day(1960 + static_cast<int>(below(50)));
    }
    if (coin()) n.fill = day(1970);
    for (int year = 1950; n.edges.size() < below(4); ++year) n.edges.push_back(day(year));
    return n;
  }

  Column column(std::size_t number) {
    Column c{text() + std::to_string(number), Unstated{}};
    switch (below(5)) {
      case 0:
        c.kind = numeric();
        break;
      case 1:
        c.kind = date();
        break;
      case 2:
        c.kind =
            Categorical{coin() ? texts(1 + below(4)) : std::vector<std::string>{}, coin(), coin()};
        break;
      case 3:
        c.kind = Ignored{};
        break;
      default:
        break;
    }
    return c;
  }

  TableSchema schema() {
    TableSchema s;
    s.name = text();
    s.delimiter = ",;\t |\x01"[below(6)];
    s.quotes = coin();
    s.header = coin();
    s.decimal = s.delimiter != ',' && coin() ? ',' : '.';
    s.skip_prefix = text();
    if (coin()) s.missing = texts(below(4));
    Numeric first;
    first.min = 0.0;
    first.max = 1.0;
    s.columns.push_back({"first", first});
    for (std::size_t i = below(6); i > 0; --i) s.columns.push_back(column(i));
    Label label{coin() ? texts(2 + below(3)) : std::vector<std::string>{}, text(), {}};
    if (!label.values.empty() && coin()) label.fill = label.values[below(label.values.size())];
    s.columns.push_back({text() + "label", label});
    if (coin()) s.columns.push_back({text() + "id", Id{}});
    return s;
  }

 private:
  std::mt19937 random_;
};

TEST(SchemaText, RandomSchemasComeBackEqual) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const TableSchema schema = Dice(seed).schema();
    EXPECT_TRUE(again(schema) == schema) << seed << "\n" << schema_toml(schema);
  }
}

TEST(SchemaText, BytesThatTomlCannotHold) {
  EXPECT_THROW(toml_text("caf\xe9"), Error);
  EXPECT_EQ(toml_text("a\"\\\n\x7f\xc3\xbc"), "\"a\\\"\\\\\\u000a\\u007f\xc3\xbc\"");
}

TEST(SchemaText, NamesOfFeaturesAreInTheirOrder) {
  const TableSchema schema = parse_schema(R"(columns = [
  {name = "age", kind = "numeric", min = 0, max = 99, edges = [30, 62.5]},
  {name = "pay", kind = "numeric", min = 0, max = 9},
  {name = "id", kind = "id"},
  {name = "job", kind = "categorical", values = ["nurse", "smith"], missing = "column"},
  {name = "ill", kind = "label", values = ["no", "yes"]},
  {name = "since", kind = "date", format = "%d.%m.%Y", min = "01.01.2000", max = "01.01.2020", edges = ["31.12.2009"]},
])",
                                          "s.toml");
  EXPECT_EQ(feature_names(schema),
            (std::vector<std::string>{"age", "age<30", "30<=age<62.5", "age>=62.5", "pay",
                                      "job=nurse", "job=smith", "job is missing", "since",
                                      "since<31.12.2009", "since>=31.12.2009"}));
  EXPECT_TRUE(again(schema) == schema);
}

TEST(Dates, AreDaysSince1970) {
  EXPECT_EQ(parse_date("1970-01-01", "%Y-%m-%d"), 0.0);
  EXPECT_EQ(parse_date("2000-03-01", "%Y-%m-%d"), 11017.0);
  EXPECT_EQ(parse_date("1969-12-31", "%Y-%m-%d"), -1.0);
  EXPECT_EQ(parse_date("3/7/2021", "%m/%d/%Y"), parse_date("20210307", "%Y%m%d"));
  EXPECT_EQ(parse_date("1970-01-02 12:00", "%Y-%m-%d %H:%M"), 1.5);
  EXPECT_EQ(parse_date("2024-02-29", "%Y-%m-%d"), 19782.0);
  for (const char* bad : {"", "2023-02-29", "2021-13-01", "2021-00-10", "21-01-01", "2021-01-01 ",
                          "2021-1", "0000-01-01", "-2021-01-01", "2021-01-001"})
    EXPECT_FALSE(parse_date(bad, "%Y-%m-%d")) << bad;
  EXPECT_EQ(date_format_fault("%Y-%m-%d"), "");
  EXPECT_EQ(date_format_fault("%d.%m"), "no %Y");
  EXPECT_EQ(date_format_fault("%Y%Y"), "%Y twice");
  EXPECT_EQ(date_format_fault("%Y %b"), "a % before something else than Y, m, d, H, M, S");
  EXPECT_EQ(date_format_fault("%Y%"), "a % before something else than Y, m, d, H, M, S");
}

TEST(Dates, EveryDayComesBack) {
  for (int day = -200'000; day < 200'000; day += 13) {
    const std::string text = format_date(day, "%d/%m/%Y");
    ASSERT_EQ(parse_date(text, "%d/%m/%Y"), day) << text;
  }
  for (int second = 0; second < 86'400; second += 7) {
    const double time = *parse_date(format_date(-1.0 + second / 86'400.0, "%Y-%m-%dT%H:%M:%S"),
                                    "%Y-%m-%dT%H:%M:%S");
    ASSERT_EQ(format_date(time, "%H:%M:%S"), format_date(second / 86'400.0, "%H:%M:%S"));
  }
}

}  // namespace
}  // namespace cudp

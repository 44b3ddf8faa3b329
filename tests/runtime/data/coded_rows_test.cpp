#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/data/dates.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/device/linear_data.hpp"
#include "runtime/features/pca.hpp"
#include "runtime/methods/linear_risk.hpp"
#include "runtime/run/authenticator.hpp"

namespace cudp {
namespace {

using Random = std::mt19937_64;

/// Cells of a column, and the dense features that they give, worked out apart from the encoder.
struct Cell {
  std::string text;
  std::vector<float> features;
};

/// A table of every kind of column, its rows as text and their dense features.
struct Table {
  TableSchema schema;
  std::string text;
  std::vector<float> dense;
  std::size_t rows = 0;
};

Column some_numeric(Random& random, int name) {
  Numeric n;
  n.min = static_cast<double>(random() % 50) - 25.0;
  n.max = *n.min + 1.0 + static_cast<double>(random() % 100);
  n.log = random() % 2 == 0;
  double edge = *n.min;
  for (std::uint64_t k = random() % 4; k > 0; --k)
    n.edges.push_back(edge += 0.5 + static_cast<double>(random() % 30));
  if (random() % 2 == 0) n.fill = *n.min + 0.25;
  if (random() % 3 == 0) n.date_format = "%Y-%m-%d";
  return {"n" + std::to_string(name), n};
}

Column some_categorical(Random& random, int name, int values) {
  Categorical c;
  for (int v = 0; v < values; ++v) c.values.push_back("value-" + std::to_string(v * 7919));
  c.missing_has_column = random() % 2 == 0;
  c.unknown_is_zeros = random() % 2 == 0;
  return {"c" + std::to_string(name), c};
}

Cell cell_of(const Column& column, Random& random) {
  Cell cell;
  if (const auto* n = std::get_if<Numeric>(&column.kind)) {
    double value = *n->fill;
    if (!n->date_format.empty() && random() % 5 != 0) {
      const std::uint64_t month = 1 + random() % 12, day = 1 + random() % 28;
      const auto two = [](std::uint64_t x) { return (x < 10 ? "0" : "") + std::to_string(x); };
      cell.text = "1970-" + two(month) + "-" + two(day);
      value = *parse_date(cell.text, n->date_format);
    } else if (n->date_format.empty() && random() % 5 != 0) {
      cell.text = std::to_string(static_cast<double>(random() % 200'000) / 997.0 - 60.0);
      value = std::stod(cell.text);
    }
    const double x = std::min(std::max(value, *n->min), *n->max);
    cell.features.push_back(
        static_cast<float>(n->log ? std::log1p(x - *n->min) / std::log1p(*n->max - *n->min)
                                  : (x - *n->min) / (*n->max - *n->min)));
    for (std::size_t k = 0; k <= n->edges.size() && !n->edges.empty(); ++k) {
      const bool above = k == 0 || value >= n->edges[k - 1];
      const bool below = k == n->edges.size() || value < n->edges[k];
      cell.features.push_back(above && below ? 1.0f : 0.0f);
    }
  } else if (const auto* c = std::get_if<Categorical>(&column.kind)) {
    cell.features.assign(c->values.size() + (c->missing_has_column ? 1 : 0), 0.0f);
    const std::uint64_t what = random() % 8;
    if (what == 0) {  // missing
      if (c->missing_has_column) cell.features.back() = 1.0f;
    } else if (what == 1 && c->unknown_is_zeros) {
      cell.text = "unheard of";
    } else {
      const std::size_t v = random() % c->values.size();
      cell.text = c->values[v];
      cell.features[v] = 1.0f;
    }
  }
  return cell;
}

/// values: of its largest list.
Table some_table(std::uint64_t seed, int columns, int values, std::size_t rows) {
  Random random(seed);
  Table table;
  table.rows = rows;
  table.schema.header = false;
  for (int i = 0; i < columns; ++i) {
    Column c = random() % 2 == 0 ? some_numeric(random, i)
                                 : some_categorical(random, i, 1 + static_cast<int>(random() % 9));
    if (auto* n = std::get_if<Numeric>(&c.kind); n != nullptr && !n->fill) n->fill = *n->max;
    table.schema.columns.push_back(std::move(c));
  }
  table.schema.columns.push_back(some_categorical(random, columns, values));
  table.schema.columns.push_back(
      {"y", Label{.values = {"0", "1"}, .strip_suffix = "", .fill = {}}});
  for (std::size_t i = 0; i < rows; ++i) {
    for (const Column& c : table.schema.columns) {
      if (std::holds_alternative<Label>(c.kind)) continue;
      const Cell cell = cell_of(c, random);
      table.text += cell.text + ",";
      table.dense.insert(table.dense.end(), cell.features.begin(), cell.features.end());
    }
    table.text += i % 3 == 0 ? "1\n" : "0\n";
  }
  return table;
}

Dataset read(const Table& table) {
  const auto bytes = memory_bytes(
      "t.csv", {reinterpret_cast<const std::uint8_t*>(table.text.data()), table.text.size()});
  return read_table(*bytes, table.schema, {.max_rows = 7}, table.rows);
}

float square_of(const Dataset& set, std::size_t i) {
  const CodedRows rows = set.coded_rows();
  float square = 0.0f;
  std::memcpy(
      &square,
      rows.rows + static_cast<std::size_t>(rows.row_bytes) * i + std::ptrdiff_t{4} * rows.numbers,
      sizeof square);
  return square;
}

/// |x|^2 of every row as the record has it.
void expect_squares(const Dataset& set, const std::vector<float>& x) {
  const auto features = static_cast<std::size_t>(set.shape.size());
  for (std::size_t i = 0; i < set.size(); ++i) {
    double square = 0.0;
    for (std::size_t j = 0; j < features; ++j)
      square += static_cast<double>(x[i * features + j]) * static_cast<double>(x[i * features + j]);
    EXPECT_TRUE(std::fabs(static_cast<double>(square_of(set, i)) - square) <= 0x1p-23 * square);
  }
}

TEST(CodedRows, EveryKindOfColumnIsItsDenseFeaturesBitForBit) {
  std::size_t codes_of_none = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const int values = seed % 3 == 0 ? 300 : 3;
    const Table table = some_table(seed, static_cast<int>(seed % 9), values, 40);
    const Dataset set = read(table);
    ASSERT_EQ(set.size(), table.rows);
    ASSERT_EQ(set.shape.size(), feature_count(table.schema));
    EXPECT_EQ(set.layout->code_bytes(), set.shape.size() > 255 ? 2 : 1);
    EXPECT_EQ(dense(set).floats, table.dense) << seed;
    expect_squares(set, table.dense);
    const CodedRows rows = set.coded_rows();
    for (std::size_t i = 0; i < set.size(); ++i)
      for (int k = 0; k < rows.codes; ++k) {
        const std::uint8_t* const row = rows.rows + static_cast<std::size_t>(rows.row_bytes) * i;
        const std::uint32_t code = code_of(rows, row, k);
        ASSERT_LE(code, static_cast<std::uint32_t>(rows.features));
        codes_of_none += code == static_cast<std::uint32_t>(rows.features) ? 1 : 0;
      }
  }
  EXPECT_GT(codes_of_none, 100u);
}

TEST(CodedRows, CodesOfFourBytes) {
  const Table table = some_table(5, 4, 70'000, 20);
  const Dataset set = read(table);
  EXPECT_EQ(set.layout->code_bytes(), 4);
  EXPECT_EQ(dense(set).floats, table.dense);
}

/// 255 features need the code 255 for none of them, which one byte still holds; 256 need two bytes.
TEST(CodedRows, TheWidthOfACodeChangesBetween255And256) {
  for (const int features : {254, 255, 256, 65'535, 65'536}) {
    const RowLayout layout{.number_feature = {}, .codes = 2, .features = features};
    const auto last = static_cast<std::uint32_t>(features) - 1;
    const Dataset set =
        coded_dataset(layout, {}, std::vector<std::uint32_t>{last, last + 1}, {1}, 2);
    EXPECT_EQ(set.layout->code_bytes(), features <= 255 ? 1 : features <= 65'535 ? 2 : 4);
    std::vector<float> x(static_cast<std::size_t>(features));
    read_floats(set, 0, x);
    EXPECT_EQ(x[last], 1.0f);
    EXPECT_EQ(std::ranges::count(x, 0.0f), features - 1);
    EXPECT_EQ(square_of(set, 0), 1.0f);
  }
}

TEST(CodedRows, WhatNoRecordHoldsIsRefused) {
  const RowLayout layout{.number_feature = {1}, .codes = 2, .features = 5};
  const auto make = [&](float number, std::uint32_t a, std::uint32_t b) {
    return coded_dataset(layout, std::vector<float>{number}, std::vector<std::uint32_t>{a, b}, {0},
                         2);
  };
  EXPECT_EQ(dense(make(0.5f, 0, 3)).floats, (std::vector<float>{1, 0.5f, 0, 1, 0}));
  EXPECT_EQ(dense(make(0.5f, 5, 5)).floats, (std::vector<float>{0, 0.5f, 0, 0, 0}));
  EXPECT_THROW(make(0.5f, 0, 6), Error);  // beyond its list
  EXPECT_THROW(make(0.5f, 0xffffffff, 0), Error);
  EXPECT_THROW(make(0.5f, 256, 0), Error);  // 0 in one byte
  EXPECT_THROW(make(0.5f, 1, 0), Error);    // a number's feature
  EXPECT_THROW(make(0.5f, 4, 4), Error);    // twice
  EXPECT_THROW(make(std::numeric_limits<float>::quiet_NaN(), 0, 3), Error);
  EXPECT_THROW(make(std::numeric_limits<float>::infinity(), 0, 3), Error);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(layout.row_bytes()));
  RowWriter writer(layout, row.data());
  EXPECT_THROW(writer.finish(), Error);  // nothing was written
  writer.number(0.0f);
  EXPECT_THROW(writer.number(0.0f), Error);
}

TEST(CodedRows, ExamplesAreChosenJoinedAndLeftBlankAsDenseOnesAre) {
  const Dataset set = read(some_table(11, 6, 300, 30));
  const Dataset plain = dense(set);
  const std::vector<std::size_t> some = {29, 3, 3, 0, 17};
  Dataset a = select_examples(set, some), b = select_examples(plain, some);
  EXPECT_EQ(dense(a).floats, b.floats);
  EXPECT_EQ(a.labels, b.labels);
  append_examples(set, a);
  append_examples(plain, b);
  append_example(set, 7, a);
  append_example(plain, 7, b);
  append_blanks(a, 3);
  append_blanks(b, 3);
  EXPECT_EQ(a.size(), 39u);
  EXPECT_EQ(dense(a).floats, b.floats);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(square_of(a, 38), 0.0f);
  clear_examples(a);
  EXPECT_TRUE(a.is_coded());
  EXPECT_EQ(a.size(), 0u);
}

std::vector<float> floats_of(const AlignedVector<float>& v) {
  return {v.data(), v.data() + v.size()};
}

TEST(CodedRows, WhatReadsWholeSetsSeesTheDenseRows) {
  const Dataset set = read(some_table(13, 7, 20, 100));
  const Dataset plain = dense(set);
  const LinearData a = linear_data(set), b = linear_data(plain);
  EXPECT_EQ(floats_of(a.features), floats_of(b.features));
  EXPECT_EQ(floats_of(a.norms), floats_of(b.norms));
  EXPECT_EQ(floats_of(a.signs), floats_of(b.signs));
  const RiskSettings settings{.max_examples = 100.0};
  LinearRisk risk(set, settings), plain_risk(plain, settings);
  std::vector<double> w(risk.dimension());
  for (std::size_t j = 0; j < w.size(); ++j) w[j] = std::sin(static_cast<double>(j));
  EXPECT_EQ(risk.gradient(w), plain_risk.gradient(w));
  EXPECT_EQ(risk.curvature_product(w), plain_risk.curvature_product(w));
  EXPECT_EQ(clipped_second_moments(set, 8, 1), clipped_second_moments(plain, 8, 1));
  Dataset p = set, q = plain;
  const std::vector<float> directions(3 * static_cast<std::size_t>(set.shape.size()), 0.5f);
  project(p, directions, 1);
  project(q, directions, 1);
  EXPECT_FALSE(p.is_coded());
  EXPECT_EQ(p.floats, q.floats);
}

/// One bit of one row changes the code of the training set, and so does what its bytes stand for.
TEST(CodedRows, TheCodeCoversRowsAndLayout) {
  const Authenticator authenticator(RandomKey{{1, 2, 3, 4, 5, 6, 7, 8}});
  const auto tag = [&](const Dataset& d) {
    return data_tag(authenticator, d, authenticator.block_tags(d, 1));
  };
  const Dataset set = read(some_table(17, 5, 3, 600));
  EXPECT_EQ(tag(set), tag(Dataset(set)));
  for (const std::size_t at : {std::size_t{0}, set.coded.size() / 2, set.coded.size() - 1}) {
    Dataset other = set;
    other.coded[at] ^= 1;
    EXPECT_NE(tag(other), tag(set)) << at;
  }
  Dataset other = set;
  RowLayout layout = *set.layout;
  ASSERT_FALSE(layout.number_feature.empty());
  ++layout.number_feature.back();
  other.layout = std::make_shared<const RowLayout>(layout);
  EXPECT_NE(tag(other), tag(set));
}

}  // namespace
}  // namespace cudp

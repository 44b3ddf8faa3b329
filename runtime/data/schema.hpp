#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/data/target.hpp"

namespace cudp {

/// A number, clamped to public bounds and scaled to 0..1:
///   linear (x - min) / (max - min), or log: log1p(x - min) / log1p(max - min).
/// With edges e_1 < ... < e_k it also gives k + 1 indicators of the interval it falls in: below
/// e_1, from e_1 to below e_2, ..., from e_k.
struct Numeric {
  std::optional<double> min;  ///< if a bound is missing, the schema is incomplete
  std::optional<double> max;
  bool log = false;
  std::vector<double> edges;
  std::optional<double> fill;  ///< value of a missing cell; without it one is an error
  /// Date format of the cells of kind date (dates.hpp); all numbers here are then days since
  /// 1970-01-01. Empty: cells are decimal numbers.
  std::string date_format;

  bool operator==(const Numeric&) const = default;
};

/// One text of a public list, one-hot. A missing value is all zeros or has its own column.
struct Categorical {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  bool missing_has_column = false;
  bool unknown_is_zeros = false;  ///< a text outside the list is all zeros; if false, an error

  bool operator==(const Categorical&) const = default;
};

/// A class: the index of the text in `values`. If the text ends with strip_suffix, that is removed
/// first.
struct Label {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  std::string strip_suffix;
  std::optional<std::string> fill;  ///< class of a missing label; without it one is an error

  bool operator==(const Label&) const = default;
};

/// A number to predict instead of a class, clamped to public bounds.
struct Target {
  std::optional<double> min;  ///< if a bound is missing, the schema is incomplete
  std::optional<double> max;
  std::optional<double> fill;  ///< value of a missing target; without it one is an error

  bool operator==(const Target&) const = default;
};

/// Text of a language, which a tokenizer and a vocabulary convert to numbers. A missing value is an
/// empty text. Any bytes are a valid text.
struct Text {
  bool operator==(const Text&) const = default;
};

struct Ignored {
  bool operator==(const Ignored&) const = default;
};

/// Column that identifies a row for the owner of the table. It gives no feature; predictions repeat
/// it.
struct Id {
  bool operator==(const Id&) const = default;
};

/// A column of which only the name is known.
struct Unstated {
  bool operator==(const Unstated&) const = default;
};

struct Column {
  std::string name;
  std::variant<Unstated, Numeric, Categorical, Label, Text, Ignored, Id, Target> kind;

  bool operator==(const Column&) const = default;
};

/// Unit of privacy of a table: all rows with the same text in a column. The first max_rows rows of
/// a unit, in the order of the file, are training examples; the others are read but not used.
struct UnitOfPrivacy {
  std::string column;          ///< a column of kind ignore
  std::uint64_t max_rows = 1;  ///< 1 to privacy::kMaxGroup

  bool operator==(const UnitOfPrivacy&) const = default;
};

/// Meaning of a table's cells.
struct TableSchema {
  std::string name;
  char delimiter = ',';
  bool quotes = true;       ///< a cell may be in double quotes
  bool header = true;       ///< the first row names the columns, in any order
  char decimal = '.';       ///< or ','
  std::string skip_prefix;  ///< lines that begin with this are skipped; empty: none
  /// Texts that mean a missing value. If not stated: kUsualMissing.
  std::optional<std::vector<std::string>> missing;
  std::optional<UnitOfPrivacy> unit;  ///< empty: each row is a unit
  /// Metric by which test rows are judged, one of kSchemaMetrics; empty: not stated.
  std::string metric;
  /// Columns: exactly one Label or Target, at most one Id; with a Text, no other column that gives
  /// features.
  std::vector<Column> columns;

  bool operator==(const TableSchema&) const = default;
};

/// Metrics that a schema with classes may state.
inline constexpr std::string_view kSchemaMetrics[] = {"accuracy", "balanced-accuracy", "auc",
                                                      "average-precision"};

/// Texts that mean a missing value if a schema states none.
inline constexpr std::string_view kUsualMissing[] = {"", "NA", "NaN", "null", "?"};

/// Returns whether the cell means a missing value, unless it is a value of its column: the caller
/// must look among the values of a categorical column first. In a text column any text is a value,
/// so only a stated text is missing.
bool is_missing(const TableSchema& schema, const Column& column, std::string_view cell);

/// Parses a schema (TOML; runtime/data/schemas/README.md documents the keys). `source` names it in
/// errors. Throws InputError with source and line on anything unknown, contradictory or out of
/// range.
TableSchema parse_schema(std::string_view toml, const std::string& source);

/// Returns the TOML text of a shipped schema (adult, bank, ...); "" if there is none of that name.
std::string_view shipped_schema(std::string_view name);

/// Returns whether the kind, and the bounds, categories or classes that it needs, are stated.
bool is_complete(const Column& column);
/// Returns the name of the first incomplete column; "" if the schema is complete.
std::string first_incomplete(const TableSchema& schema);

/// Returns whether a model learns to predict the column: a Label or a Target.
bool is_predicted(const Column& column);
/// Returns the bounds of a complete schema's target; nullopt if it has a label.
std::optional<TargetBounds> target_bounds(const TableSchema& schema);

/// Returns whether the rows are texts: their one column besides the label and ignored ones is a
/// Text.
bool is_text(const TableSchema& schema);

/// Returns the index of the unit's column; nullopt if each row is a unit.
std::optional<std::size_t> unit_column(const TableSchema& schema);

/// Returns the number of features of a column, or of a whole row, under a complete schema.
int feature_count(const Column& column);
int feature_count(const TableSchema& schema);

/// Limits of a table, so that a schema cannot make the program allocate too much memory.
inline constexpr int kMaxFeatures = 1 << 20;
inline constexpr int kMaxClasses = 256;

}  // namespace cudp

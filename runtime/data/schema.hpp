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

/// A numeric column: one feature, the number clamped to public bounds and scaled to 0..1:
///   linear (x - min) / (max - min), or log: log1p(x - min) / log1p(max - min).
/// With edges e_1 < ... < e_k it also gives k + 1 one-hot features for the interval that the number
/// falls in: below e_1, from e_1 to below e_2, ..., from e_k.
struct Numeric {
  std::optional<double> min;  ///< if a bound is missing, the schema is incomplete
  std::optional<double> max;
  bool log = false;
  std::vector<double> edges;
  std::optional<double> fill;  ///< value of a missing cell; if not set, a missing cell is an error
  /// Date format of the cells of kind date (dates.hpp); all numbers here are then days since
  /// 1970-01-01. Empty: cells are decimal numbers.
  std::string date_format;

  bool operator==(const Numeric&) const = default;
};

/// A categorical column: one feature for each text of a public list, which is 1 if the cell has
/// this text and else 0. A missing value gives all zeros, or has a feature of its own.
struct Categorical {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  bool missing_has_column = false;
  bool unknown_is_zeros = false;  ///< a text outside the list is all zeros; if false, an error

  bool operator==(const Categorical&) const = default;
};

/// The column with the class to predict. The class is the index of the cell's text in `values`,
/// after strip_suffix is removed from its end.
struct Label {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  std::string strip_suffix;
  /// Class that a missing label counts as; if not set, a missing label is an error.
  std::optional<std::string> fill;

  bool operator==(const Label&) const = default;
};

/// The column with the number to predict (regression), clamped to public bounds.
struct Target {
  std::optional<double> min;  ///< if a bound is missing, the schema is incomplete
  std::optional<double> max;
  /// Value that a missing target counts as; if not set, a missing target is an error.
  std::optional<double> fill;

  bool operator==(const Target&) const = default;
};

/// A column of natural-language text, which a tokenizer and a vocabulary convert to word ids. A
/// missing value is an empty text. Any bytes are valid.
struct Text {
  bool operator==(const Text&) const = default;
};

/// A column that is neither a feature nor predicted. It may be the column that identifies the unit
/// of privacy (e.g. a person).
struct Ignored {
  bool operator==(const Ignored&) const = default;
};

/// A column with a name or number by which the table's owner recognises a row. It is not a feature;
/// files of predictions repeat it.
struct Id {
  bool operator==(const Id&) const = default;
};

/// A column for which the schema does not state a kind.
struct Unstated {
  bool operator==(const Unstated&) const = default;
};

/// A column of the table: its name in the header, and its kind, which states what it is used for.
struct Column {
  std::string name;
  std::variant<Unstated, Numeric, Categorical, Label, Text, Ignored, Id, Target> kind;

  bool operator==(const Column&) const = default;
};

/// Unit of privacy of a table, e.g. a person: all rows with the same text in one column. The first
/// max_rows rows of a unit, in file order, are training examples; its other rows are not used.
struct UnitOfPrivacy {
  std::string column;          ///< a column of kind ignore
  std::uint64_t max_rows = 1;  ///< 1 to privacy::kMaxGroup

  bool operator==(const UnitOfPrivacy&) const = default;
};

/// The schema of a table: the format of its file, and the name, kind and public bounds or
/// categories of each column.
struct TableSchema {
  std::string name;
  char delimiter = ',';
  bool quotes = true;  ///< a cell may be in double quotes
  bool header = true;  ///< the first row has the names of the columns, which may be in any order
  char decimal = '.';  ///< decimal separator: '.' or ','
  std::string skip_prefix;  ///< rows that begin with this are skipped; empty: none
  /// Cell texts that mean a missing value. If not set, these are the usual ones: "", NA, NaN, null,
  /// ?.
  std::optional<std::vector<std::string>> missing;
  std::optional<UnitOfPrivacy> unit;  ///< empty: each row is a unit
  /// Metric that is used to judge a model on test rows: accuracy, balanced-accuracy, auc or
  /// average-precision; empty if the schema states none.
  std::string metric;
  /// The table's columns: exactly one Label or Target, and at most one Id. With a Text column no
  /// other column may be a feature.
  std::vector<Column> columns;

  bool operator==(const TableSchema&) const = default;
};

/// Metrics that a schema may state for judging a model's test rows, if the table has classes (not
/// regression targets).
inline constexpr std::string_view kSchemaMetrics[] = {"accuracy", "balanced-accuracy", "auc",
                                                      "average-precision"};

/// Texts that mean a missing value if a schema states none.
inline constexpr std::string_view kUsualMissing[] = {"", "NA", "NaN", "null", "?"};

/// Returns whether the cell's text means a missing value. For a categorical column the caller must
/// first check that the text is not one of the column's categories. In a text column only texts
/// listed in schema.missing are missing.
bool is_missing(const TableSchema& schema, const Column& column, std::string_view cell);

/// Parses a schema (the TOML text `toml`; runtime/data/schemas/README.md documents the keys).
/// source: name of the schema in error messages. Throws InputError, with source and line, if a key
/// or value is unknown, contradictory or out of range.
TableSchema parse_schema(std::string_view toml, const std::string& source);

/// Returns the TOML text of a schema that comes with the program (adult, bank, ...); "" if there is
/// none of that name.
std::string_view shipped_schema(std::string_view name);

/// Returns whether the schema states the column's kind and the bounds, categories or classes that
/// this kind needs.
bool is_complete(const Column& column);
/// Returns the name of the first column for which the schema lacks the kind, or the bounds,
/// categories or classes that its kind needs; "" if there is none.
std::string first_incomplete(const TableSchema& schema);

/// Returns whether the column is the one that a model learns to predict, i.e. its kind is Label (a
/// class) or Target (a number).
bool is_predicted(const Column& column);
/// Returns the bounds of the target column; nullopt if the schema has classes (a label column)
/// instead. The schema must state all that its columns' kinds need (first_incomplete() is "").
std::optional<TargetBounds> target_bounds(const TableSchema& schema);

/// Returns whether examples are texts, i.e. whether the schema has a Text column (then no other
/// column is a feature).
bool is_text(const TableSchema& schema);

/// Returns the index of the column that identifies the unit of privacy (e.g. the person); nullopt
/// if each row is a unit of its own.
std::optional<std::size_t> unit_column(const TableSchema& schema);

/// Returns the number of features that a column gives. Requires that the schema describes the
/// column completely (is_complete()).
int feature_count(const Column& column);
/// Returns the number of features of a row of a table with this complete schema.
int feature_count(const TableSchema& schema);

/// Maximum number of features (kMaxFeatures) and of classes (kMaxClasses) of a schema. The limits
/// prevent a schema from making the program allocate too much memory.
inline constexpr int kMaxFeatures = 1 << 20;
inline constexpr int kMaxClasses = 256;

}  // namespace cudp

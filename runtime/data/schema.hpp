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
  std::optional<double> min;  ///< without both bounds the schema is incomplete
  std::optional<double> max;
  bool log = false;
  std::vector<double> edges;
  std::optional<double> fill;  ///< what a missing value stands for; without it one is an error
  /// The form of the cells of kind date (dates.hpp); all numbers here are then days since
  /// 1970-01-01. Empty: cells are decimal numbers.
  std::string date_format;

  bool operator==(const Numeric&) const = default;
};

/// One of a public list of texts, one-hot. A missing value is all zeros or has its own column.
struct Categorical {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  bool missing_has_column = false;
  bool unknown_is_zeros = false;  ///< a text that is not in the list: all zeros, or an error

  bool operator==(const Categorical&) const = default;
};

/// The class: the position of the text in `values`. strip_suffix is taken off first if it is there.
struct Label {
  std::vector<std::string> values;  ///< empty: the schema is incomplete
  std::string strip_suffix;
  std::optional<std::string> fill;  ///< the class of a missing label; without it one is an error

  bool operator==(const Label&) const = default;
};

/// The number that is predicted, in place of a class; clamped to public bounds.
struct Target {
  std::optional<double> min;  ///< without both bounds the schema is incomplete
  std::optional<double> max;
  std::optional<double> fill;  ///< what a missing target stands for; without it one is an error

  bool operator==(const Target&) const = default;
};

/// Words of a language, which a tokenizer and a vocabulary make numbers of. A missing value is an
/// empty text. Whatever bytes it has, a text is one: nothing is refused.
struct Text {
  bool operator==(const Text&) const = default;
};

struct Ignored {
  bool operator==(const Ignored&) const = default;
};

/// The column that names a row for the owner of the table. No feature; predictions repeat it.
struct Id {
  bool operator==(const Id&) const = default;
};

/// A column of which nothing but the name is known.
struct Unstated {
  bool operator==(const Unstated&) const = default;
};

struct Column {
  std::string name;
  std::variant<Unstated, Numeric, Categorical, Label, Text, Ignored, Id, Target> kind;

  bool operator==(const Column&) const = default;
};

/// The unit of privacy of a table: all rows with one text in a column. The first max_rows of a
/// unit, in the file's order, are training examples; its other rows are read and not used.
struct UnitOfPrivacy {
  std::string column;          ///< of kind ignore
  std::uint64_t max_rows = 1;  ///< 1 to privacy::kMaxGroup

  bool operator==(const UnitOfPrivacy&) const = default;
};

/// The meaning of a table's cells.
struct TableSchema {
  std::string name;
  char delimiter = ',';
  bool quotes = true;       ///< a cell may stand in double quotes
  bool header = true;       ///< the first row names the columns, in any order
  char decimal = '.';       ///< or ','
  std::string skip_prefix;  ///< lines that start with this are skipped; empty: none
  /// Texts of a missing value. Not stated: kUsualMissing.
  std::optional<std::vector<std::string>> missing;
  std::optional<UnitOfPrivacy> unit;  ///< empty: each row is one
  /// The metric of test rows that matters, one of kSchemaMetrics; empty: not stated.
  std::string metric;
  /// Exactly one Label or Target, one Id at most; a Text beside nothing else.
  std::vector<Column> columns;

  bool operator==(const TableSchema&) const = default;
};

/// The metrics that a schema with classes may state.
inline constexpr std::string_view kSchemaMetrics[] = {"accuracy", "balanced-accuracy", "auc",
                                                      "average-precision"};

/// The texts that stand for a missing value where a schema states none.
inline constexpr std::string_view kUsualMissing[] = {"", "NA", "NaN", "null", "?"};

/// Whether the cell stands for a missing value, unless it is a value of its column: whoever reads a
/// categorical looks among its values first. Any text is a value of a text column, so there only a
/// stated one is missing.
bool is_missing(const TableSchema& schema, const Column& column, std::string_view cell);

/// Reads a schema (TOML; runtime/data/schemas/README.md gives the keys). `source` names it in
/// errors. Throws InputError with source and line on anything unknown, contradictory or out of
/// range.
TableSchema parse_schema(std::string_view toml, const std::string& source);

/// The TOML text of a shipped schema (adult, bank); empty if there is none of that name.
std::string_view shipped_schema(std::string_view name);

/// Whether bounds, categories and the kind are all stated.
bool is_complete(const Column& column);
/// Name of the first column that lacks bounds, categories or a kind; empty if the schema is
/// complete.
std::string first_incomplete(const TableSchema& schema);

/// Whether the column is what a model learns to say: a Label or a Target.
bool is_predicted(const Column& column);
/// The bounds of a complete schema's target; empty where it has a label.
std::optional<TargetBounds> target_bounds(const TableSchema& schema);

/// Whether the rows are texts: their one column beside the label and ignored ones is a Text.
bool is_text(const TableSchema& schema);

/// The place of the unit's column among the columns; empty where each row is a unit.
std::optional<std::size_t> unit_column(const TableSchema& schema);

/// Features that a column, or a whole row, gives under a complete schema.
int feature_count(const Column& column);
int feature_count(const TableSchema& schema);

/// Limits of a table, so that a schema cannot ask for absurd memory.
inline constexpr int kMaxFeatures = 1 << 20;
inline constexpr int kMaxClasses = 256;

}  // namespace cudp

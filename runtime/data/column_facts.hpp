#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Statistics of the cells of one column of a table (number of missing cells, minimum, maximum,
/// mean, distinct texts), from which the column's kind and bounds in a schema are drafted. They are
/// exact, without noise, so they are not differentially private.
class ColumnFacts {
 public:
  static constexpr std::size_t kMaxTexts = 1000;

  /// Makes statistics of no cells. date_format: format of the dates in the column, if it is known
  /// to have dates; if empty, several common date formats are tried.
  explicit ColumnFacts(const std::string& date_format = {});

  void add_missing() { ++missing_; }
  /// Adds a cell that is not missing to the statistics. text: the cell's text; for a label column,
  /// the name of the class in it (class_text()). decimal: the decimal separator, '.' or ','.
  void add(std::string_view text, char decimal);

  bool none() const { return texts_.empty(); }
  std::uint64_t missing() const { return missing_; }
  bool all_numbers() const { return all_numbers_; }
  double min() const { return numbers_.min; }
  double max() const { return numbers_.max; }
  double mean() const { return numbers_.mean(); }
  /// Returns the number of distinct cell texts, or kMaxTexts + 1 if there are more than kMaxTexts.
  std::size_t count() const { return texts_.size(); }
  /// Returns the distinct cell texts, in byte order, or in numeric order if all are numbers.
  /// decimal: the decimal separator.
  std::vector<std::string> ordered(char decimal) const;
  /// Returns the description of a date column for a schema: the first date format that fits all
  /// cells, and the earliest and latest date as bounds. If no format fits, the result's date_format
  /// is empty.
  Numeric dates() const;

 private:
  /// Facts about the numbers that were added: the smallest, the largest, their sum and their count.
  struct Range {
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    std::uint64_t count = 0;

    void add(double x);
    /// Returns the mean of the numbers that were added, rounded to six digits and clamped to [min,
    /// max].
    double mean() const;
  };
  /// A date format that fits all cells so far, and the range of the cells' dates [days since
  /// 1970-01-01].
  struct Form {
    std::string format;
    Range days;
  };

  std::uint64_t missing_ = 0;
  bool all_numbers_ = true;
  Range numbers_;
  std::vector<Form> forms_;                   // date formats that fit all cells so far
  std::set<std::string, std::less<>> texts_;  // size at most kMaxTexts + 1
};

}  // namespace cudp

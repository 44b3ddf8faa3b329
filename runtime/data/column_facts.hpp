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

/// Counts what the cells of a column are, so that a kind and bounds can be drafted. Not private.
class ColumnFacts {
 public:
  static constexpr std::size_t kMaxTexts = 1000;

  /// date_format: of a column that is known to hold dates; empty: usual forms are tried.
  explicit ColumnFacts(const std::string& date_format = {});

  void add_missing() { ++missing_; }
  /// A cell that is not missing; `text`, what of it names a value.
  void add(std::string_view text, char decimal);

  bool none() const { return texts_.empty(); }
  std::uint64_t missing() const { return missing_; }
  bool all_numbers() const { return all_numbers_; }
  double min() const { return numbers_.min; }
  double max() const { return numbers_.max; }
  double mean() const { return numbers_.mean(); }
  /// Different texts; kMaxTexts + 1 where there are more than that.
  std::size_t count() const { return texts_.size(); }
  /// They, in order: by value if all are numbers.
  std::vector<std::string> ordered(char decimal) const;
  /// A date column of the first usual form that all cells have, with bounds; its format is empty
  /// where there is none.
  Numeric dates() const;

 private:
  struct Range {
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    std::uint64_t count = 0;

    void add(double x);
    /// Rounded to six digits; between min and max, whatever overflows.
    double mean() const;
  };
  struct Form {
    std::string format;
    Range days;
  };

  std::uint64_t missing_ = 0;
  bool all_numbers_ = true;
  Range numbers_;
  std::vector<Form> forms_;                   // of dates, that all cells had so far
  std::set<std::string, std::less<>> texts_;  // up to one more than any column may have
};

}  // namespace cudp

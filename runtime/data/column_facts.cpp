#include "runtime/data/column_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/data/dates.hpp"
#include "runtime/data/table.hpp"

namespace cudp {
namespace {

/// Date formats that are tried, in this order, for a column of dates. If all cells fit both orders
/// of day and month, the format with the month first is chosen.
constexpr std::string_view kForms[] = {"%Y-%m-%d",          "%Y/%m/%d",      "%d.%m.%Y",
                                       "%m/%d/%Y",          "%d/%m/%Y",      "%Y-%m-%d %H:%M:%S",
                                       "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"};

/// Number of digits to which a mean is rounded, because it is shown to people.
constexpr int kDigits = 6;

}  // namespace

ColumnFacts::ColumnFacts(const std::string& date_format) {
  if (!date_format.empty())
    forms_.push_back({date_format, {}});
  else
    for (const std::string_view form : kForms) forms_.push_back({std::string(form), {}});
}

void ColumnFacts::Range::add(double x) {
  min = std::min(min, x);
  max = std::max(max, x);
  sum += x;
  ++count;
}

double ColumnFacts::Range::mean() const {
  const double mean = sum / static_cast<double>(count);
  if (!std::isfinite(mean)) return 0.5 * min + 0.5 * max;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), mean,
                                 std::chars_format::general, kDigits);
  double rounded = mean;
  std::from_chars(text.data(), end.ptr, rounded);
  return std::clamp(rounded, min, max);
}

void ColumnFacts::add(std::string_view text, char decimal) {
  if (texts_.size() <= kMaxTexts && !texts_.contains(text)) texts_.emplace(text);
  const std::optional<double> value = all_numbers_ ? parse_number(text, decimal) : std::nullopt;
  all_numbers_ = value.has_value();
  if (value) numbers_.add(*value);
  std::erase_if(forms_, [&](Form& form) {
    const std::optional<double> days = parse_date(text, form.format);
    if (days) form.days.add(*days);
    return !days;
  });
}

std::vector<std::string> ColumnFacts::ordered(char decimal) const {
  std::vector<std::string> out(texts_.begin(), texts_.end());
  if (all_numbers_)
    std::stable_sort(out.begin(), out.end(), [&](const std::string& a, const std::string& b) {
      return *parse_number(a, decimal) < *parse_number(b, decimal);
    });
  return out;
}

Numeric ColumnFacts::dates() const {
  Numeric n;
  if (forms_.empty() || forms_.front().days.count == 0) return n;
  const auto& [format, days] = forms_.front();
  n.date_format = format;
  n.min = days.min;
  n.max = days.max > days.min ? days.max : days.min + 1.0;
  // Rounds the mean to a date that the format can express, e.g. to a whole day if the format has no
  // time.
  if (missing_ > 0) n.fill = parse_date(format_date(days.mean(), format), format);
  return n;
}

}  // namespace cudp

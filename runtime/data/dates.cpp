#include "runtime/data/dates.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace cudp {
namespace {

namespace time = std::chrono;

/// Letters that may follow a % in a date format: year, month, day, hour, minute, second.
constexpr std::string_view kParts = "YmdHMS";
constexpr std::int64_t kSecondsOfDay = 86'400;  ///< number of seconds in a day

using Parts = std::array<int, kParts.size()>;  // values in the order of kParts

/// Splits a date format into its parts, in order: calls part(index) for every %-part, with its
/// index in kParts, and literal(char) for every other character. Stops and returns false when one
/// of them returns false. Part, Literal: types of the functions.
template <class Part, class Literal>
bool walk(std::string_view format, const Part& part, const Literal& literal) {
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool marked = format[i] == '%' && i + 1 < format.size();
    if (marked) ++i;
    const std::size_t index = marked ? kParts.find(format[i]) : std::string_view::npos;
    if (!(index == std::string_view::npos ? literal(format[i]) : part(index))) return false;
  }
  return true;
}

/// Reads a number from the start of the text: the digits there, but at most `max` of them. Removes
/// these digits from the text and sets `value` to the number. Returns whether there were at least
/// `min` digits. If not, the digits are removed and `value` is set all the same.
bool take_digits(std::string_view& text, int min, int max, int& value) {
  value = 0;
  int digits = 0;
  while (digits < max && !text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = 10 * value + (text.front() - '0');
    text.remove_prefix(1);
    ++digits;
  }
  return digits >= min;
}

std::string padded(int value, std::size_t width) {
  const std::string digits = std::to_string(value);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

}  // namespace

std::string date_format_fault(std::string_view format) {
  Parts seen{};
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    ++i;
    if (i < format.size() && format[i] == '%') continue;
    const std::size_t index = i < format.size() ? kParts.find(format[i]) : std::string_view::npos;
    if (index == std::string_view::npos) return "a % before something else than Y, m, d, H, M, S";
    if (seen[index]++ > 0) return std::string("%") + format[i] + " twice";
  }
  return seen[0] == 1 ? "" : "no %Y";
}

std::optional<double> parse_date(std::string_view text, std::string_view format) {
  Parts parts{1, 1, 1, 0, 0, 0};
  const bool fits = walk(
      format,
      [&](std::size_t index) {
        return index == 0 ? take_digits(text, 4, 4, parts[0])
                          : take_digits(text, 1, 2, parts[index]);
      },
      [&](char c) {
        if (text.empty() || text.front() != c) return false;
        text.remove_prefix(1);
        return true;
      });
  if (!fits || !text.empty()) return std::nullopt;
  const time::year_month_day date{time::year(parts[0]),
                                  time::month(static_cast<unsigned>(parts[1])),
                                  time::day(static_cast<unsigned>(parts[2]))};
  if (parts[0] < 1 || !date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59)
    return std::nullopt;
  const auto days = time::sys_days(date).time_since_epoch().count();
  const int seconds = (parts[3] * 60 + parts[4]) * 60 + parts[5];
  return static_cast<double>(days) + static_cast<double>(seconds) / kSecondsOfDay;
}

std::string format_date(double days, std::string_view format) {
  const auto seconds = static_cast<std::int64_t>(std::llround(days * kSecondsOfDay));
  std::int64_t day = seconds / kSecondsOfDay;
  if (seconds % kSecondsOfDay < 0) --day;
  const time::year_month_day date{time::sys_days(time::days(day))};
  const auto second = static_cast<int>(seconds - day * kSecondsOfDay);
  const Parts parts{static_cast<int>(date.year()),
                    static_cast<int>(static_cast<unsigned>(date.month())),
                    static_cast<int>(static_cast<unsigned>(date.day())),
                    second / 3600,
                    second / 60 % 60,
                    second % 60};
  std::string out;
  walk(
      format,
      [&](std::size_t index) {
        out += padded(parts[index], index == 0 ? 4 : 2);
        return true;
      },
      [&](char c) {
        out += c;
        return true;
      });
  return out;
}

}  // namespace cudp

#include "runtime/config/option.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {

void option_rows::refuse(const std::string& place, const std::string& expected,
                         const Value& found) {
  throw InputError(place + ": expected " + expected + ", found " + value_text(found));
}

std::vector<std::string> option_rows::parts_of(const Value& value, const std::string& place) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) refuse(place, "a list, separated by commas", value);
  std::vector<std::string> parts;
  std::istringstream in(*text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

double option_rows::number_in(const ValueRange& range, const std::string& text,
                              const std::string& place) {
  double real = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, real);
  if (error != std::errc() || rest != end || !range.contains(real)) refuse(place, range.text, text);
  return real;
}

Value parse_value(const Option& option, const std::string& text, const std::string& place) {
  const char* end = text.data() + text.size();
  switch (option.kind) {
    case ValueKind::toggle:
      if (text == "true") return true;
      if (text == "false") return false;
      option_rows::refuse(place, "true or false", Value(text));
    case ValueKind::integer: {
      std::int64_t whole = 0;
      const auto [rest, error] = std::from_chars(text.data(), end, whole);
      if (error == std::errc() && rest == end) return whole;
      return text;  // the option's own check states what it expected
    }
    case ValueKind::number: {
      double real = 0.0;
      const auto [rest, error] = std::from_chars(text.data(), end, real);
      if (error == std::errc() && rest == end) return real;
      return text;
    }
    case ValueKind::text:
    case ValueKind::list:
      break;
  }
  return text;
}

std::string value_text(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) {
    std::array<char, 32> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *d);
    std::string s(buffer.data(), end);
    if (s.find_first_of(".einf") == std::string::npos) s += ".0";
    return s;
  }
  // TOML's basic strings use the escapes of JSON.
  return nlohmann::json(std::get<std::string>(value))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cudp

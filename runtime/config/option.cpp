#include "runtime/config/option.hpp"

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
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
  // A list of paths has a line break before each path instead of commas, because names of files may
  // contain commas.
  const bool is_of_paths = text->starts_with('\n');
  std::istringstream in(is_of_paths ? text->substr(1) : *text);
  for (std::string part; std::getline(in, part, is_of_paths ? '\n' : ',');) parts.push_back(part);
  return parts;
}

double option_rows::number_in(const ValueRange& range, const std::string& text,
                              const std::string& place) {
  const std::optional<double> real = read_number<double>(text);
  if (!real || !range.contains(*real)) refuse(place, range.text, text);
  return *real;
}

Value parse_value(const Option& option, const std::string& text, const std::string& place) {
  switch (option.kind) {
    case ValueKind::toggle:
      if (text == "true") return true;
      if (text == "false") return false;
      option_rows::refuse(place, "true or false", Value(text));
    // If the text is not a number, the option's own check reports what it expected.
    case ValueKind::integer:
      if (const auto whole = read_number<std::int64_t>(text)) return *whole;
      return text;
    case ValueKind::number:
      if (const auto real = read_number<double>(text)) return *real;
      return text;
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
    std::string s = number_text(*d);
    if (s.find_first_of(".einf") == std::string::npos) s += ".0";
    return s;
  }
  // TOML's basic strings use the escapes of JSON.
  return nlohmann::json(std::get<std::string>(value))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cudp

#include "privacy/verify/field_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

namespace cudp::verify {
namespace {

using Json = nlohmann::json;

/// Compares a certificate's JSON with the fields that it may have, object by object, and collects a
/// line for each difference. Implementation of compare_fields().
class Comparison {
 public:
  explicit Comparison(const std::map<std::string, Field>& fields) : fields_(fields) {}

  void object(const Json& json, const std::string& prefix) {
    for (const auto& [key, value] : json.items()) {
      const auto field = fields_.find(prefix + key);
      if (field == fields_.end())
        differs(prefix + key, "no such field", value);
      else
        one(prefix + key, field->second, value);
    }
    for (const auto& [path, field] : fields_) {
      if (!field.must || !path.starts_with(prefix)) continue;
      const std::string key = path.substr(prefix.size());
      if (key.find_first_of(".[") == std::string::npos && !json.contains(key))
        wrong_.push_back(path + ": expected it, found none");
    }
  }

  std::vector<std::string> take() { return std::move(wrong_); }

 private:
  void differs(const std::string& path, const std::string& expected, const Json& found) {
    std::string text = found.dump();
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    wrong_.push_back(path + ": expected " + expected + ", found " + text);
  }

  void one(const std::string& path, const Field& f, const Json& value) {
    using Type = Field::Type;
    const auto all = [&](bool (Json::*is)() const noexcept, const char* expected) {
      if (!value.is_array() ||
          !std::ranges::all_of(value, [&](const Json& v) { return (v.*is)(); }))
        differs(path, expected, value);
    };
    switch (f.type) {
      case Type::text:
        if (!value.is_string())
          differs(path, "a text", value);
        else if (!f.words.empty() &&
                 std::ranges::find(f.words, value.get<std::string>()) == f.words.end())
          differs(path, f.words.size() == 1 ? "'" + f.words[0] + "'" : "one of its texts", value);
        else if (f.fits != nullptr && !f.fits(value.get<std::string>()))
          differs(path, f.range, value);
        return;
      case Type::flag:
        if (!value.is_boolean()) differs(path, "true or false", value);
        return;
      case Type::number:
      case Type::whole:
        if (!value.is_number() || (f.type == Type::whole && !value.is_number_unsigned()) ||
            !std::isfinite(value.get<double>()) || !f.in_range(value.get<double>()))
          differs(path, f.range, value);
        return;
      case Type::object:
        if (!value.is_object()) return differs(path, "an object", value);
        return object(value, path + ".");
      case Type::objects:
        all(&Json::is_object, "a list of objects");
        if (value.is_array())
          for (const Json& element : value)
            if (element.is_object()) object(element, path + "[].");
        return;
      case Type::texts:
        return all(&Json::is_string, "a list of texts");
      case Type::numbers:
        return all(&Json::is_number, "a list of numbers");
      case Type::wholes:
        return all(&Json::is_number_unsigned, "a list of whole numbers");
      case Type::groups:  // the numbers are computed again elsewhere
        if (!value.is_array() && value != Json(f.words[0]))
          differs(path, "a list, or '" + f.words[0] + "'", value);
        return;
    }
  }

  const std::map<std::string, Field>& fields_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> compare_fields(const Json& json,
                                        const std::map<std::string, Field>& fields) {
  Comparison comparison(fields);
  comparison.object(json, "");
  return comparison.take();
}

}  // namespace cudp::verify

#pragma once
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace cudp::verify {

/// Requirements on one field of a certificate (a run's statement of its privacy, as JSON): the
/// field's type, whether it may be missing, and its valid values.
struct Field {
  enum class Type { text, flag, number, whole, object, objects, texts, numbers, wholes, groups };
  Type type = Type::text;
  bool must = true;        ///< false: the field may be missing
  const char* range = "";  ///< description of the valid values, for error messages
  bool (*in_range)(double) = nullptr;
  std::vector<std::string> words = {};  ///< valid texts; empty: any text
  /// Further condition on a text, described by `range`; null: none.
  bool (*fits)(const std::string&) = nullptr;
};

/// Compares the JSON of a certificate with the fields that it may have. fields: requirements by
/// path; "a.b" is field b of object a, "a[].b" field b of each object in list a. Returns one line
/// for each difference: path, expected, found.
std::vector<std::string> compare_fields(const nlohmann::json& json,
                                        const std::map<std::string, Field>& fields);

}  // namespace cudp::verify

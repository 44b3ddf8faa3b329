#pragma once
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace cudp::verify {

/// Requirements on one field of a certificate: its JSON type, whether it may be missing, and its
/// valid values.
struct Field {
  enum class Type { text, flag, number, whole, object, objects, texts, numbers, wholes, groups };
  Type type = Type::text;
  bool must = true;        ///< false: the field may be missing
  const char* range = "";  ///< description of the valid values, for messages
  bool (*in_range)(double) = nullptr;
  std::vector<std::string> words = {};         ///< valid texts; empty: any text
  bool (*fits)(const std::string&) = nullptr;  ///< further condition of a text, stated by `range`
};

/// Compares the JSON of a certificate with the fields that it may have, by their path: "a.b" is
/// field b of object a, "a[].b" field b of each object in list a. Returns the differences: path,
/// expected, found.
std::vector<std::string> compare_fields(const nlohmann::json& json,
                                        const std::map<std::string, Field>& fields);

}  // namespace cudp::verify

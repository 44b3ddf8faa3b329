#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp {

/// The privacy certificate of a run (the content of its privacy.json), as JSON, and the numbers in
/// it.
struct RunCertificate {
  nlohmann::json json;
  verify::StatedNumbers stated;

  /// Returns the text in the certificate's field `key`; "" if there is no such field.
  std::string text(const char* key) const;
  /// Returns the number in the certificate's field `key`; 0 if there is no such field.
  double number(const char* key) const;
  /// Returns the list of texts in the certificate's field `key`; empty if there is no such field.
  std::vector<std::string> texts(const char* key) const;
  /// Returns whether the unit of privacy is something other than a single row, e.g. a person.
  bool has_unit() const { return !stated.unit.empty(); }
};

/// Reads the text of a privacy.json. source: name of the file in error messages. Throws InputError
/// if the text is not a certificate of cudp, or if it is damaged.
RunCertificate parse_run_certificate(std::string_view text, const std::string& source);

}  // namespace cudp

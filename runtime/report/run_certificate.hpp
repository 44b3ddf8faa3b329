#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp {

/// The certificate of a run, as JSON and as numbers.
struct RunCertificate {
  nlohmann::json json;
  verify::StatedNumbers stated;

  /// Returns a text of the file; empty if there is none of that name.
  std::string text(const char* key) const;
  /// Returns a number of the file; 0 if there is none of that name.
  double number(const char* key) const;
  /// Returns a list of texts of the file; empty if there is none of that name.
  std::vector<std::string> texts(const char* key) const;
  /// Whether it is for units of privacy other than rows.
  bool has_unit() const { return !stated.unit.empty(); }
};

/// Reads the text of a privacy.json. source: names it in errors. Throws InputError if it is not a
/// certificate of cudp, or if it is damaged.
RunCertificate parse_run_certificate(std::string_view text, const std::string& source);

}  // namespace cudp

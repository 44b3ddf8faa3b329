#pragma once
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "privacy/verify/certificate.hpp"

namespace cudp {

/// The certificate of a run, as its file has it and as numbers.
struct RunCertificate {
  std::filesystem::path file;
  nlohmann::json json;
  verify::Certificate stated;

  /// A text of the file; empty where there is none of that name.
  std::string text(const char* key) const;
  /// A list of texts of the file; the same.
  std::vector<std::string> texts(const char* key) const;
};

/// place: a run's folder, its release folder, or a privacy.json. Throws InputError where there is
/// no certificate, or none that can be read.
RunCertificate read_run_certificate(const std::filesystem::path& place);

}  // namespace cudp

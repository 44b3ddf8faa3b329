#include "runtime/report/run_certificate.hpp"

#include <exception>

#include "runtime/base/error.hpp"

namespace cudp {

std::string RunCertificate::text(const char* key) const {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

double RunCertificate::number(const char* key) const {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0.0;
}

std::vector<std::string> RunCertificate::texts(const char* key) const {
  std::vector<std::string> all;
  if (!json.contains(key) || !json[key].is_array()) return all;
  for (const nlohmann::json& entry : json[key])
    if (entry.is_string()) all.push_back(entry.get<std::string>());
  return all;
}

RunCertificate parse_run_certificate(std::string_view text, const std::string& source) {
  RunCertificate c;
  const auto refuse = [&](const std::string& why) {
    throw InputError(source + ": expected a certificate of cudp, found " + why);
  };
  c.json = nlohmann::json::parse(text, nullptr, false);
  if (!c.json.is_object() || !c.text("format").starts_with("cudp privacy certificate"))
    refuse("another file");
  try {
    c.stated = verify::read_stated_numbers(text);
  } catch (const std::exception& e) {
    refuse(std::string("a damaged one: ") + e.what());
  }
  return c;
}

}  // namespace cudp

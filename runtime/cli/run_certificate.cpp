#include "runtime/cli/run_certificate.hpp"

#include <system_error>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/run/folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

fs::path certificate_in(const fs::path& place) {
  std::error_code none;
  if (fs::is_regular_file(place, none)) return place;
  const RunFolder run(place);
  for (const fs::path& file : {run.certificate(), place / run.certificate().filename()})
    if (fs::is_regular_file(file, none)) return file;
  const fs::path note = run.no_privacy().filename();
  if (fs::exists(run.no_privacy(), none) || fs::exists(place / note, none))
    throw InputError(place.string() + ": expected a run with privacy, found " + note.string());
  throw InputError(place.string() +
                   ": expected a run's folder, its release folder or a privacy.json, found none");
}

}  // namespace

std::string RunCertificate::text(const char* key) const {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

std::vector<std::string> RunCertificate::texts(const char* key) const {
  std::vector<std::string> all;
  if (!json.contains(key) || !json[key].is_array()) return all;
  for (const nlohmann::json& entry : json[key])
    if (entry.is_string()) all.push_back(entry.get<std::string>());
  return all;
}

RunCertificate read_run_certificate(const fs::path& place) {
  const fs::path file = certificate_in(place);
  return parse_run_certificate(read_user_file(file), file);
}

RunCertificate parse_run_certificate(const std::string& text, const fs::path& file) {
  RunCertificate c;
  c.file = file;
  const auto refuse = [&](const std::string& why) {
    throw InputError(c.file.string() + ": expected a certificate of cudp, found " + why);
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

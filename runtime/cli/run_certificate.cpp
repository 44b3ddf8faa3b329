#include "runtime/cli/run_certificate.hpp"

#include <system_error>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/folders.hpp"
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
                   ": expected a run's folder, its release folder or a privacy.json, found " +
                   found_for_run(place));
}

}  // namespace

NamedCertificate read_run_certificate(const fs::path& place) {
  check_not_of_tuning(place);
  const fs::path file = certificate_in(place);
  return {parse_run_certificate(read_user_file(file), file.string()), file};
}

}  // namespace cudp

#include "runtime/report/files.hpp"

#include <system_error>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Replaces `text` by the file's content if the file exists; returns whether it exists.
bool replace(std::string& text, const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return false;
  text = read_user_file(file);
  return true;
}

/// Replaces the members of `files` for which the folder has a file. Returns whether it has
/// metrics.jsonl.
bool read_folder(ReportFiles& files, const fs::path& folder) {
  replace(files.settings, folder / "config.toml");
  replace(files.holdout, folder / "holdout.json");
  replace(files.schema, folder / "schema.toml");
  if (std::string bytes; replace(bytes, folder / "model.safetensors")) {
    files.model = decode_safetensors(bytes, (folder / "model.safetensors").string());
    files.model->values.clear();
  }
  return replace(files.metrics, folder / "metrics.jsonl");
}

}  // namespace

ReportFiles read_release_files(const fs::path& release) {
  ReportFiles files;
  replace(files.certificate, release / "privacy.json");
  read_folder(files, release);
  return files;
}

ReportFiles read_run_files(const fs::path& run) {
  ReportFiles files = read_release_files(run / "release");
  files.has_unpaid = read_folder(files, run / "private");
  return files;
}

std::vector<MetricsRow> rows_of(const ReportFiles& files) {
  try {
    return decode_metrics(files.metrics);
  } catch (const Error& e) {
    throw InputError(e.what());
  }
}

}  // namespace cudp

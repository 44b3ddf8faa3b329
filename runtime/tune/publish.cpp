#include "runtime/tune/publish.hpp"

#include <nlohmann/json.hpp>

#include "privacy/certificate/certificate.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/report/write.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/tune/certify.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using ResultJson = nlohmann::ordered_json;

constexpr const char* kTuned = "tuned";

/// Files of private/ that commands on a run read.
constexpr const char* kOwnersFiles[] = {"ledger", RunFolder::kMetrics, RunFolder::kEvaluation,
                                        "holdout-released"};

/// Returns the settings with `tuned = true`, as the program writes them.
std::string tuned_settings(const std::string& text) {
  TrainConfig config;
  apply_settings(parse_settings(text, RunFolder::kConfig), config);
  config.tuned = true;
  return write_config(config, Audience::release);
}

}  // namespace

void publish_tuned(const RunFolder& from, const RunFolder& to, const Winner& winner) {
  const fs::path release = to.certificate().parent_path();
  const std::string certificate =
      tuned_certificate(read_file(from.certificate()), winner.tuning, winner.delta);
  if (!fs::exists(to.certificate())) {
    const fs::path made = release.parent_path() / "private" / "release.new";
    fs::remove_all(made);
    fs::create_directory(made);
    for (const auto& file : fs::directory_iterator(from.certificate().parent_path()))
      write_atomically(made / file.path().filename(), read_file(file.path()));
    write_atomically(made / RunFolder::kConfig, tuned_settings(read_file(from.config())));
    ReportFiles files = read_release_files(made);
    files.certificate = certificate;
    write_release_pages(made, files);
    write_atomically(made / "privacy.json", certificate);
    fs::permissions(made, fs::perms(0755));
    sync_folder(made);
    const FilesInChange lock;
    std::error_code error;
    fs::rename(made, release, error);  // replaces the empty folder
    if (error) throw Error(release.string() + ": cannot write it: " + error.message());
    sync_folder(to.root());
  }
  for (const char* name : kOwnersFiles)
    if (fs::exists(from.owner(name)))
      write_atomically(to.owner(name), read_file(from.owner(name)), 0600);
  write_private_page(to.root());
  RunResult result = *stored_result(from);
  const privacy::Certificate c = privacy::read_certificate(certificate);
  result.epsilon = c.epsilon;
  result.delta = c.delta;
  result.run_dir = to.root().string();
  ResultJson json = to_json(result);
  json[kTuned] = {
      {"settings", winner.settings}, {"score_name", winner.score_name}, {"score", winner.score}};
  write_atomically(to.result(), json.dump(2) + "\n", 0600);
}

TuneResult tuned_result(const RunFolder& folder) {
  const auto result = stored_result(folder);
  const ResultJson json = ResultJson::parse(read_file(folder.result()), nullptr, false);
  if (!result || !json.is_object() || !json.contains(kTuned))
    throw Error(folder.root().string() + ": expected a finished tuning, found none");
  const ResultJson& tuned = json[kTuned];
  return {.winner = *result,
          .settings = tuned["settings"],
          .score_name = tuned["score_name"],
          .score = tuned["score"]};
}

}  // namespace cudp

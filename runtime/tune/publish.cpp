#include "runtime/tune/publish.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/certificate/certificate.hpp"
#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/report/write.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/tune/certify.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using ResultJson = nlohmann::ordered_json;

constexpr const char* kTuned = "tuned";

/// Names of the files in private/ that other commands read if the run is finished.
constexpr const char* kOwnersFiles[] = {"ledger", RunFolder::kMetrics, RunFolder::kEvaluation,
                                        "holdout-released"};

/// Returns the lines of metrics.jsonl (`text`) with the epsilon of the whole tuning in place of the
/// training's own, which becomes the field `training_epsilon`. Every value of the released training
/// has the guarantee of the whole tuning, because the training was chosen among others.
std::string tuned_metrics(const std::string& text, double epsilon) {
  std::vector<MetricsRow> rows = decode_metrics(text);
  for (MetricsRow& row : rows) {
    row.training_epsilon = row.spent_by_training();
    row.epsilon = epsilon;
  }
  return encode_metrics(rows);
}

/// Adds `tuned = true` to the text of a settings file, and returns the result.
std::string tuned_settings(const std::string& text) {
  TrainConfig config;
  apply_settings(parse_settings(text, RunFolder::kConfig), config);
  config.tuned = true;
  return write_config(config, Audience::release);
}

}  // namespace

void publish_tuned(const RunFolder& from, const RunFolder& to, const SelectedTraining& selected) {
  const fs::path release = to.certificate().parent_path();
  const std::string certificate =
      tuned_certificate(read_file(from.certificate()), selected.tuning, selected.delta);
  const double epsilon = privacy::read_certificate(certificate).epsilon;
  // The charge was computed from the same plans, so the two epsilons are equal, except in the last
  // digits if another compiler's program computed one of them.
  if (!(epsilon <= selected.charged_epsilon * (1.0 + 1e-9)))
    throw Error(to.root().string() + ": internal error: the released training would have epsilon " +
                privacy::number(epsilon) + ", but the tuning was charged with " +
                privacy::number(selected.charged_epsilon) + "; nothing was released");
  if (certified_status(to) != "finished") {
    const fs::path made = release.parent_path() / "private" / "release.new";
    fs::remove_all(made);
    fs::create_directory(made);
    for (const auto& file : fs::directory_iterator(from.certificate().parent_path()))
      write_atomically(made / file.path().filename(), read_file(file.path()));
    write_atomically(made / RunFolder::kConfig, tuned_settings(read_file(from.config())));
    if (fs::exists(made / RunFolder::kMetrics))
      write_atomically(made / RunFolder::kMetrics,
                       tuned_metrics(read_file(made / RunFolder::kMetrics), epsilon));
    ReportFiles files = read_release_files(made);
    files.certificate = certificate;
    write_release_pages(made, files);
    write_atomically(made / "privacy.json", certificate);
    fs::permissions(made, fs::perms(0755));
    sync_folder(made);
    const FilesInChange lock;
    std::error_code error;
    fs::remove(to.certificate(), error);  // the certificate of the charge
    fs::rename(made, release, error);     // replaces the empty folder
    if (error) throw Error(release.string() + ": cannot write it: " + error.message());
    sync_folder(to.root());
  }
  for (const char* const name : kOwnersFiles) {
    if (!fs::exists(from.owner(name))) continue;
    const std::string content = read_file(from.owner(name));
    write_atomically(
        to.owner(name),
        std::string_view(name) == RunFolder::kMetrics ? tuned_metrics(content, epsilon) : content,
        0600);
  }
  write_private_page(to.root());
  RunResult result = *stored_result(from);
  result.epsilon = epsilon;
  result.delta = selected.delta;
  result.run_dir = to.root().string();
  ResultJson json = to_json(result);
  json[kTuned] = {{"settings", selected.settings},
                  {"score_name", selected.score_name},
                  {"score", selected.score}};
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

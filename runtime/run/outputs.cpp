#include "runtime/run/outputs.hpp"

#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/files.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/report/write.hpp"
#include "runtime/results/curves.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/settings/settings.hpp"

namespace cudp {
namespace {

constexpr const char* kNoPrivacy =
    "No privacy.\n"
    "\n"
    "This model was trained without differential privacy, for comparison. Nothing of this run may "
    "be\n"
    "released: its weights and its metrics may show any training example. They are in "
    "../private.\n";

/// Returns the metric that the user or the table's schema states, which is then drawn over epochs;
/// "" if none is stated.
std::string stated_metric(const Experiment& e) {
  const std::string& typed = e.config.of<ReportOptions>().metric;
  return typed.empty() && e.inputs.schema ? e.inputs.schema->metric : typed;
}

}  // namespace

std::string note_of(const std::vector<std::string>& reasons) {
  std::string text =
      "Not for release.\n\nNothing of this run may be published, whatever epsilon says:\n";
  for (const std::string& reason : reasons) text += "- " + reason + "\n";
  return text;
}

Outputs::Outputs(RunFolder folder, const Experiment& e)
    : folder_(std::move(folder)),
      gives_privacy_(method_entry(e.config.method).gives_privacy),
      has_holdout_(e.config.holdout.has_value()),
      has_private_test_(gives_privacy_ && !e.data.test_is_public && e.has_test()),
      test_is_public_(e.data.test_is_public),
      metric_(stated_metric(e)) {}

Outputs::Destination Outputs::destination(const char* name) const {
  return gives_privacy_ ? Destination{folder_.release(name), 0644} : private_destination(name);
}

std::vector<MetricsRow> Outputs::public_part(const std::vector<MetricsRow>& metrics) const {
  return has_private_test_ ? without_test(metrics) : metrics;
}

void Outputs::write_config(const TrainConfig& config) const {
  const Destination to = destination(RunFolder::kConfig);
  folder_.write(to.path, cudp::write_config(config, Audience::release), to.mode);
}

void Outputs::write_certificate(const privacy::Certificate& certificate) const {
  if (!gives_privacy_) return;
  // "Not finished", the first reason, is temporary and stated in the certificate, so it is left
  // out.
  std::vector<std::string> reasons = certificate.not_for_release;
  if (certificate.status == privacy::Certificate::Status::not_finished)
    reasons.erase(reasons.begin());
  if (reasons.empty())
    std::filesystem::remove(folder_.not_for_release());
  else
    folder_.write(folder_.not_for_release(), note_of(reasons));
  folder_.write(folder_.certificate(), to_text(certificate));
}

std::vector<std::filesystem::path> Outputs::write_pages(
    const privacy::Certificate& certificate) const {
  if (!gives_privacy_) return {};
  const std::filesystem::path release = folder_.certificate().parent_path();
  ReportFiles files = read_release_files(release);
  files.certificate = to_text(certificate);
  return write_release_pages(release, files, folder_.sync());
}

void Outputs::write_metrics(const std::vector<MetricsRow>& metrics) const {
  write_metrics(Sync::no, metrics);
}

void Outputs::write_last_metrics(const std::vector<MetricsRow>& metrics) const {
  write_metrics(folder_.sync(), metrics);
}

void Outputs::write_metrics(Sync sync, const std::vector<MetricsRow>& metrics) const {
  const Destination to = destination(RunFolder::kMetrics);
  write_file(to.path, encode_metrics(public_part(metrics)), to.mode, sync);
  if (!has_private_test_) return;
  const Destination all = private_destination(RunFolder::kMetrics);
  write_file(all.path, encode_metrics(metrics), all.mode, sync);
}

void Outputs::write_model(const ReleasedModel& model) const {
  const auto write = [this](const char* name, const std::string& content) {
    const Destination to = destination(name);
    folder_.write(to.path, content, to.mode);
  };
  if (model.coder != nullptr) write(kVocabularyFile, model.coder->vocabulary.text());
  if (model.inputs.schema) write(RunFolder::kSchema, schema_toml(*model.inputs.schema));
  write(RunFolder::kModel, encode_model(model));
  if (!gives_privacy_) folder_.write(folder_.no_privacy(), kNoPrivacy);
}

void Outputs::write_evaluation(const Evaluation& evaluation,
                               const std::vector<std::string>& classes, const std::string& title,
                               Pictures* pictures) const {
  const Destination to = has_private_test_ ? private_destination(RunFolder::kEvaluation)
                                           : destination(RunFolder::kEvaluation);
  folder_.write(
      to.path,
      to_json(evaluation, classes).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n",
      to.mode);
  if (!has_holdout_ && pictures != nullptr)
    start_evaluation_pictures(evaluation, classes, title, to.path.parent_path(), to.mode,
                              *pictures);
}

void Outputs::write_holdout(const HoldoutFigures& figures,
                            const std::vector<std::string>& classes) const {
  folder_.write(folder_.holdout(), to_json(figures, classes).dump(2) + "\n", 0644);
}

bool Outputs::start_curves(const std::vector<MetricsRow>& metrics, const std::string& model,
                           const privacy::Certificate& c, Pictures& pictures) const {
  const std::string what = fmt::format("{} on {}", model, c.dataset);
  const std::string title =
      gives_privacy_ ? fmt::format("{}, epsilon {} at delta {}", what, short_rounded_up(c.epsilon),
                                   short_rounded_up(c.delta))
                     : what + ", without privacy";
  const std::string metric = curve_metric(metrics, metric_, test_is_public_);
  const auto start = [&](const Destination& to, const std::vector<MetricsRow>& rows) {
    return cudp::start_curves(rows, title, to.path, metric, to.mode, pictures);
  };
  const bool any = start(destination(RunFolder::kCurves), public_part(metrics));
  if (has_private_test_ && !has_holdout_) start(private_destination(RunFolder::kCurves), metrics);
  return any;
}

}  // namespace cudp

#include "runtime/run/run.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "models/freeze.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/config/log_options.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/stored_run.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/certify.hpp"
#include "runtime/training/memory_line.hpp"
#include "runtime/training/size_cost.hpp"

namespace cudp {

void check_events(const TrainConfig& config, const std::filesystem::path& folder) {
  const std::string& events = config.of<LogOptions>().tensorboard;
  if (events.empty()) return;
  if (!method_entry(config.method).gives_privacy)
    throw InputError("--tensorboard: expected none with --method " + config.method +
                     ", which gives no privacy: its numbers stay in private/metrics.jsonl");
  if (!folder.empty()) check_apart_from_run(events, folder);
}

std::string resume_command(const std::string& run) {
  return "continue with: cudp train --resume " + run;
}

Run::Run(RunFolder where, const RandomKey& key, Reporter& reporter, RunCaller* caller)
    : folder(std::move(where)),
      key_check(cudp::key_check(key)),
      authenticator(key),
      reporter_(reporter),
      caller_(caller) {}

void Run::charged(const privacy::Ledger& ledger) {
  // Charges are synced to disk before any noise is drawn for them, except during an UnsyncedStart.
  // A ledger without charges need not be synced: a new run's folder is synced as a whole when it is
  // moved to its path.
  const bool waits = !ledger.releases().empty() && !unsynced_until;
  write_ledger(folder, ledger, authenticator, waits ? Sync::yes : folder.sync());
}

void Run::opens(const Training& t) {
  reservation.charge_count(t);
  observe_beginning(*this, t);
}

void Run::refused(const Training& t, const Error& reason) {
  const Experiment& e = t.experiment();
  const privacy::Ledger& ledger = t.ledger();  // includes the release of the number of examples
                                               // only
  folder.write(folder.config(), write_config(e.config, Audience::release));
  folder.write(folder.ledger(), ledger.to_text(), 0600);
  const Outputs outputs(folder, e);
  const privacy::Certificate certificate_of_count = make_refusal_certificate(e, t.size(), ledger);
  (void)outputs.write_pages(certificate_of_count);
  outputs.write_certificate(certificate_of_count);
  const FilesInChange lock;
  if (const auto& before = e.config.of<BeforeRunFolder>().call) before();
  const std::string certificate = new_folder->publish().certificate().string();
  const std::string line = std::string(reason.what()) +
                           "; the noisy number of training examples was paid for: " + certificate;
  set_interrupt_line(line);
  throw Error(line, reason.code());
}

void Run::planned(const Training& t) {
  reservation.charge_plan(t);
  reservation.write(folder);
  Outputs(folder, t.experiment()).write_config(t.experiment().config);
}

void Run::holdout_due(const Training&) {
  folder.write(folder.holdout_key(), std::to_string(key_check) + "\n", 0600);
}

void Run::measured(const std::vector<MetricsRow>& rows) {
  // Only the owner watches the file while the training runs, and a resume writes it again. So it is
  // not rewritten for each of several short epochs.
  constexpr auto kRewrite = std::chrono::milliseconds(100);
  const auto now = std::chrono::steady_clock::now();
  metrics_are_behind_ = now - metrics_written_ < kRewrite;
  if (!metrics_are_behind_) {
    outputs().write_metrics(rows);
    metrics_written_ = now;
  }
  if (events_) events_->write(outputs().public_part(rows));
  if (caller_ != nullptr) caller_->measured(outputs().public_part(rows));
}

void Run::open_events() {
  const TrainConfig& config = training->experiment().config;
  const std::string& folder_of_events = config.of<LogOptions>().tensorboard;
  if (!folder_of_events.empty())
    events_.emplace(folder_of_events, outputs().public_part(training->metrics()));
}

bool Run::interrupts() {
  if (caller_ == nullptr) return watch_ && watch_->requested();
  stopped_ = stopped_ || caller_->interrupts();
  return stopped_;
}

void Run::diagnosed(std::uint64_t epoch, std::uint64_t step, const Diagnostics& d) {
  const double n = d.examples > 0 ? static_cast<double>(d.examples) : 1.0;
  const nlohmann::ordered_json j{{"epoch", epoch},
                                 {"step", step},
                                 {"training_loss", d.loss() / n},
                                 {"gradient_norm", d.norm() / n},
                                 {"clipped_share", static_cast<double>(d.clipped) / n},
                                 {"examples", d.examples},
                                 {"non_finite", d.non_finite}};
  append_line(folder.diagnostics(), j.dump());
  reporter_.info("PRIVATE " + j.dump());
}

void Run::checkpoint_due(const Training& t) {
  const bool is_due = unsynced_until && std::chrono::steady_clock::now() >= *unsynced_until;
  is_due ? end_unsynced_start() : save_checkpoint(t);
}

void Run::end_unsynced_start() {
  unsynced_until.reset();
  folder.sync_all();
  sync_folder(folder.root().has_parent_path() ? folder.root().parent_path() : ".");
  boot.clear();
  save_checkpoint();
}

void Run::save_checkpoint(const Training& t) {
  if (std::exchange(metrics_are_behind_, false)) outputs().write_metrics(t.metrics());
  const Experiment& e = t.experiment();
  cudp::save_checkpoint(folder.checkpoints(),
                        {.training = t.state(),
                         .parameters = e.network.parameter_count,
                         .config = write_config(e.config, Audience::owner),
                         .model = e.model_text,
                         .arithmetic = e.backend.arithmetic_name,
                         .program = program_id(),
                         .unit = unit_name(e.data),
                         .data = data_tag,
                         .key_check = key_check,
                         .ledger_was_lost = ledger_was_lost,
                         .boot = boot},
                        authenticator, folder.sync());
  if (metrics_file_) metrics_file_->checkpointed();
}

void Run::open_metrics_file() {
  const std::string& file = training->experiment().config.of<ReportOptions>().metrics_file;
  if (!file.empty()) metrics_file_.emplace(file, folder.root().filename().string(), reporter_);
}

void Run::write_plan_certificate() const {
  outputs().write_certificate(training->plan_certificate());
}

void Run::advance() {
  if (caller_ == nullptr) watch_.emplace();
  training->advance();
  if (metrics_file_) metrics_file_->ended();
  const std::uint64_t last = training->last_step();
  // Steps after the last checkpoint are repeated by a resume, bit for bit.
  if (interrupts() || !training->is_finished()) {
    if (unsynced_until) end_unsynced_start();
    const std::string line =
        fmt::format("interrupted at step {}{}; {}", training->step(),
                    last == Method::kOpenEnded ? "" : fmt::format(" of {}", last),
                    resume_command(folder.root().string()));
    reporter_.log_end(line);
    throw Error(line, Exit::again);
  }
  watch_.reset();
}

namespace {

/// Returns a message about pre-trained weights that were trained by cudp: it states that the
/// privacy spent on training them is not counted in this run.
std::string own_training_line(const Experiment& e, const RunFolder& folder) {
  const std::string& path = e.config.of<FineTuning>().init;
  const std::string run = run_of_weights(path);
  return path + ": " + e.initial->input.not_counted +
         (run.empty() ? std::string()
                      : "; for rows that are in both data sets: cudp account " + run + " " +
                            folder.root().string());
}

}  // namespace

void Run::describe() const {
  const Experiment& e = training->experiment();
  const TrainingSize& size = training->size();
  const Method& method = training->method();
  reporter_.info(fmt::format(
      "{}{}, {} ({} parameters{}) on {}{}", e.data.name,
      size.is_public() ? fmt::format(" ({} training examples)", e.data.train.whole_size()) : "",
      e.network.spec.name, count_of_all_parameters(e.network),
      e.network.frozen.empty() ? ""
                               : fmt::format(", {} of them trained", e.network.parameter_count),
      e.backend.name, e.config.precision == Precision::tf32 ? " in TF32" : ""));
  if (const std::string line = memory_line(e, method); !line.empty())
    size.is_public() ? reporter_.info(line) : reporter_.report_to_owner(line);
  for (const std::string& note : e.data.notes) reporter_.info(note);
  if (const std::string chosen = table_defaults_line(e.config, size, e.data.train, e.network);
      !chosen.empty())
    reporter_.info(chosen);
  if (e.initial && !e.initial->input.not_counted.empty())
    reporter_.warn(own_training_line(e, folder));
  reporter_.info(method.describe());
  if (const HoldoutPlan& held = training->holdout_plan(); held.releases_figures())
    reporter_.info(fmt::format(
        "noisy figures of held-out {} are released once, for epsilon {} at delta "
        "{}; the larger epsilon of both parts, {}, holds for each",
        size.unit_rows > 1 ? "units" : "rows", rounded_up(held.epsilon, 4),
        short_rounded_up(held.delta), rounded_up(std::max(held.epsilon, method.epsilon()), 4)));
  if (const std::string whose = row_privacy_line(e, method); !whose.empty()) reporter_.info(whose);
  // Messages about what the unit of privacy and a private row count cost. If the key was lost, they
  // are left out, because the run then costs more than its plan. size_cost_line() calibrates the
  // noise once more, so it is called only if its message is printed on stderr.
  if (!training->ledger().has_fresh_key())
    for (const std::string& cost :
         {unit_cost_line(e, method),
          reporter_.prints_info() ? size_cost_line(e, size, method) : std::string()})
      if (!cost.empty()) reporter_.info(cost);
  if (const double noise = feature_noise(e.config, size.unit_rows); noise > 0.0)
    reporter_.info(fmt::format(
        "features are computed from {}, released with sigma {:.5g}",
        e.config.features == Features::pca
            ? fmt::format(
                  "{} principal components of {} numbers", e.config.feature_dimensions,
                  static_cast<std::int64_t>(e.feature_release.size()) / e.config.feature_dimensions)
            : "the mean and variance of each channel",
        noise));
  for (const std::string& line : privacy_warnings(
           size.value, std::max(method.epsilon(), e.config.holdout_epsilon.value_or(0.0)),
           std::max(method.delta(), e.config.holdout_delta.value_or(0.0))))
    reporter_.warn(line);
  if (size.noise > 0.1 * size.value)
    reporter_.warn(fmt::format(
        "the number of training examples is private and known as {:.0f} +-{:.0f}; settings that "
        "depend on it may be far from what was intended{}",
        size.value, size.noise, e.config.holdout ? "" : " (--size-is-public if it is)"));
}

}  // namespace cudp

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/stored_run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Goes on where the ledger ends.
void open_budget(Run& run, privacy::Ledger ledger, std::vector<PrivacyBudget::Taken> taken) {
  try {
    run.open_budget(std::move(ledger), std::move(taken));
  } catch (const std::invalid_argument& e) {
    throw Error(run.folder.ledger().string() + ": " + e.what());
  }
}

/// The last step that was reported, and what was said to be spent by then.
std::optional<MetricsRow> newest_metrics(const RunFolder& folder) {
  std::error_code error;
  if (!fs::exists(folder.metrics(), error)) return std::nullopt;
  try {
    const std::vector<MetricsRow> rows = decode_metrics(read_file(folder.metrics()));
    if (rows.empty()) return std::nullopt;
    return rows.back();
  } catch (const Error& e) {
    throw BudgetError(folder.metrics().string() + ": " + e.what() +
                      "; what was spent is not known");
  }
}

/// A ledger that was put back from before what the run has shown since.
void check_not_older(const Run& run) {
  const std::optional<MetricsRow> shown = newest_metrics(run.folder);
  if (!shown || run.method->accounts_for(run.budget->ledger(), shown->step, shown->epsilon)) return;
  throw BudgetError(fmt::format(
      "{}: expected what was charged up to step {}, which {} shows, found an older ledger",
      run.folder.ledger().string(), shown->step, run.folder.metrics().filename().string()));
}

/// Charges again what will be repeated under a key of its own.
void pay_again(Run& run, const std::string& why) {
  try {
    run.method->fresh_key(*run.budget, run.step);
  } catch (const BudgetError& e) {
    throw BudgetError(run.folder.root().string() + ": " + why + ", and " + e.what());
  }
}

/// The steps after the checkpoint will be reported again.
void forget_diagnostics_after(const Run& run) {
  const fs::path path = run.folder.diagnostics();
  if (!fs::exists(path)) return;
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (j.is_object() && j.value("step", std::uint64_t{0}) <= run.step) kept += line + "\n";
  }
  write_atomically(path, kept, 0600);
}

}  // namespace

std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter) {
  StoredRun stored = open_stored_run(flags, reporter);
  check_observation(stored.config);
  const Checkpoint& c = stored.checkpoint;
  const bool same_key = stored.key.has_value();
  Experiment prepared = prepare(stored.config, reporter, c.model);
  check_same_run(stored, prepared);
  const SharedKey key = same_key ? *std::move(stored.key) : SharedKey(make_key());
  auto restored = std::make_unique<Run>(std::move(prepared), stored.folder, key.key());
  Run& run = *restored;
  run.lock = std::move(stored.lock);
  run.size = c.size;
  run.step = c.step;
  run.metrics = c.metrics;
  run.seconds = c.seconds;
  run.ledger_was_lost = stored.ledger_was_lost;

  Experiment& e = run.experiment;
  open_budget(run, std::move(stored.ledger), c.taken);
  show_features(e, c.feature_release);
  run.method = run.make_method();
  Gate& gate = run.gate.emplace(e.config.rng, key, *run.budget, c.released);
  run.method->restore({.train = e.data.train, .backend = e.backend, .key = key, .gate = gate},
                      c.method);
  if (!same_key) {
    check_not_older(run);
    pay_again(run, stored.why);
  }
  run.last_step = run.method->last_step(*run.budget, run.step);
  observe_beginning(run, key.key());
  observe_state(run);

  if (run.ledger_was_lost) {
    run.save_checkpoint();
    write_ledger(run.folder, run.budget->ledger(), run.seal);
  }
  if (!same_key) {
    // In this order a crash in between leaves no key, and the ledger covers what is shown.
    erase_key(run.folder.key());
    run.outputs().write_metrics(run.metrics);
    write_ledger(run.folder, run.budget->ledger(), run.seal);
    run.save_checkpoint();
    write_key(run.folder.key(), key.key());
    reporter.warn(stored.why + ": training goes on from step " + std::to_string(run.step) +
                  " with a new key, and repeated steps are paid again");
  }
  if (run.last_step < run.method->steps())
    reporter.warn(fmt::format("the budget allows training up to step {} of {}", run.last_step,
                              run.method->steps()));
  run.write_plan_certificate();  // a new key may have made it another one
  if (same_key) run.outputs().write_metrics(run.metrics);
  forget_diagnostics_after(run);
  reporter.info(fmt::format("resuming {} at step {}", run.folder.root().string(), run.step));
  run.describe(reporter);
  return restored;
}

}  // namespace cudp

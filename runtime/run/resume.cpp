#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/data/kept_table.hpp"
#include "runtime/run/follow.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/stored_run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Throws InputError if the user names another file of pre-trained weights than the one the run
/// began with.
void check_named_weights(const Settings& flags, const StoredRun& stored) {
  if (!stored.checkpoint.training.initial) return;
  const std::string& path = stored.config.of<FineTuning>().init;
  // A settings file may name the weights, too. The path in the run's own settings is not checked.
  if (!flags.contains("init") && !(flags.contains("config") && fs::exists(path))) return;
  const std::string& then = stored.checkpoint.training.initial->input.sha256;
  const std::string now = digest_of_file(path);
  if (now != then)
    throw InputError("--init: expected the file that the run began with, SHA-256 " + then +
                     ", found " + path + ", SHA-256 " + now +
                     "; the run has its weights, and needs no --init");
}

/// Throws Error if the ledger of a resumed run has spent more than its budget. state: state from
/// which the run resumes, with that ledger. folder: the run's folder, for the message.
void check_ledger(const RunFolder& folder, const TrainingState& state) {
  try {
    PrivacyBudget(
        state.ledger, [](const privacy::Ledger&) {}, state.used_charges);
  } catch (const std::invalid_argument& e) {
    throw Error(folder.ledger().string() + ": " + e.what());
  }
}

/// Returns the last line of metrics in the run's metrics file, which also states the epsilon at
/// that step; nullopt if there is none.
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

/// Throws BudgetError if the ledger lacks charges for steps whose metrics the run has written,
/// because the ledger file must then be an old copy.
void check_not_older(const Run& run) {
  const std::optional<MetricsRow> shown = newest_metrics(run.folder);
  if (!shown || run.training->method().accounts_for(run.training->ledger(), shown->step,
                                                    shown->spent_by_training()))
    return;
  throw BudgetError(fmt::format(
      "{}: expected what was charged up to step {}, which {} shows, found an older ledger",
      run.folder.ledger().string(), shown->step, run.folder.metrics().filename().string()));
}

/// Charges the budget again for steps that will be repeated with a new random key. why: reason for
/// the new key, for a message to the user.
void charge_again(Run& run, const std::string& why) {
  try {
    run.training->charge_again();
  } catch (const BudgetError& e) {
    throw BudgetError(run.folder.root().string() + ": " + why + ", and " + e.what());
  }
}

/// Removes diagnostics of steps after the checkpoint from their file, because these steps will be
/// repeated.
void forget_diagnostics_after(const Run& run) {
  const fs::path path = run.folder.diagnostics();
  if (!fs::exists(path)) return;
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (j.is_object() && j.value("step", std::uint64_t{0}) <= run.training->step())
      kept += line + "\n";
  }
  write_atomically(path, kept, 0600);
}

/// Throws InputError if the run is resumed with a budget file that it did not begin with.
void check_began_in(const BudgetsInUse& budgets, const BudgetsInUse& began_in,
                    const RunFolder& folder) {
  for (const std::string& file : budgets.files) {
    if (std::ranges::find(began_in.files, fs::weakly_canonical(file).string()) !=
        began_in.files.end())
      continue;
    throw InputError(folder.root().string() +
                     ": expected a run that began within the budget it is resumed in, " + file +
                     ", which was charged then, found one that began outside it");
  }
}

}  // namespace

std::unique_ptr<Run> resume_run(const Settings& flags, Reporter& reporter,
                                ReleaseObserver* release_observer, Ranks& ranks, RunCaller* caller,
                                const ArraysInUse& arrays, const BudgetsInUse& budgets,
                                const DataInUse& data) {
  StoredRun stored = open_stored_run(flags, reporter);
  check_events(stored.config, stored.folder.root());
  stored.config.of<ArraysInUse>() = arrays;
  stored.config.of<DataInUse>() = data;
  const BudgetsInUse began_in = Reservation::read(stored.folder);
  check_began_in(budgets, began_in, stored.folder);
  check_release_observer(release_observer, stored.config);
  const bool same_key = stored.key.has_value();
  const SharedKey key = same_key ? *stored.key : SharedKey(make_key());
  const std::string& model = stored.checkpoint.model;
  const std::optional<SharedKey>& split_key = stored.checkpoint.training.split_key;
  const std::optional<PublicWeights>& initial = stored.checkpoint.training.initial;
  check_named_weights(flags, stored);
  introduce(ranks, {.config = stored.config,
                    .model = model,
                    .key = key,
                    .split_key = split_key,
                    .initial = initial});
  const auto prepare_again = [&] {
    return prepare(stored.config, reporter, model, split_key, ranks, initial ? &*initial : nullptr);
  };
  // Converted rows that the run has kept are used only if the run still has its key, because
  // without the key it cannot be checked that they are unchanged.
  std::shared_ptr<KeptTable>& kept = stored.config.of<KeptTableInUse>().table;
  if (same_key && ranks.alone()) kept = kept_table(stored.folder.checkpoints());
  Experiment prepared = prepare_again();
  if (kept != nullptr && kept->is_used && !has_data_of(stored, prepared)) {
    reporter.warn("the coded rows in " + stored.folder.checkpoints().string() +
                  " are not those that the run wrote: the table is coded again");
    kept.reset();
    prepared = prepare_again();
  }
  check_same_facts(prepared, key.key());
  check_same_run(stored, prepared);
  const bool was_unsynced = !stored.checkpoint.boot.empty();
  if (was_unsynced) {
    stored.folder.sync_all();
    const fs::path& root = stored.folder.root();
    sync_folder(root.has_parent_path() ? root.parent_path() : fs::path("."));
  }
  if (ranks.alone() && (kept == nullptr || !kept->is_used))
    keep_table(prepared.data, stored.folder.checkpoints());
  auto restored = std::make_unique<Run>(stored.folder, key.key(), reporter, caller);
  Run& run = *restored;
  // With the same key, the rows were found to be those that the run began with. An engine reads
  // rows in a file again, so they are compared again afterwards. With a new key they are read
  // before it is charged.
  const bool compared_again = same_key && prepared.data.train.rows != nullptr;
  if (!compared_again)
    run.data_tag = same_key ? stored.checkpoint.data : data_tag_of(prepared, key.key());
  run.lock = std::move(stored.lock);
  run.ledger_was_lost = stored.ledger_was_lost;

  TrainingState state = std::move(stored.checkpoint.training);
  state.ledger = std::move(stored.ledger);
  check_ledger(run.folder, state);
  stored.checkpoint.training = state;
  announce_resume(ranks, stored.checkpoint, same_key);
  run.training =
      Training::resume(std::move(prepared), key, run, std::move(state), same_key, release_observer);
  const Training& t = *run.training;
  if (!same_key) {
    check_not_older(run);
    Reservation(began_in, "training with a new key in " + fs::absolute(run.folder.root()).string())
        .charge_again(t);
    charge_again(run, stored.why);
  }
  run.opens(t);
  if (compared_again) run.data_tag = data_tag_of(t.experiment(), key.key(), run.training.get());
  if (compared_again && run.data_tag != stored.checkpoint.data)
    throw InputError(t.experiment().data.name +
                     ": expected rows that stay as they are, found that they changed while the run "
                     "was resumed");
  observe_state(run);

  // A run with a new key stores its checkpoint below, where the order of the writes matters.
  if (run.ledger_was_lost || (was_unsynced && same_key)) run.save_checkpoint();
  if (run.ledger_was_lost) {
    run.charged(t.ledger());
  }
  run.open_events();
  if (!same_key) {
    // This order ensures that after a crash between two of the writes there is no key, and the
    // ledger covers everything that was reported.
    erase_key(run.folder.key());
    run.measured(t.metrics());
    run.charged(t.ledger());
    run.save_checkpoint();
    write_key(run.folder.key(), key.key());
    reporter.warn(stored.why + ": training resumes from step " + std::to_string(t.step()) +
                  " with a new key, and repeated steps are paid for again");
  }
  if (t.last_step() < t.method().steps())
    reporter.warn(fmt::format("the budget allows training up to step {} of {}", t.last_step(),
                              t.method().steps()));
  run.write_plan_certificate();  // a new key may have changed it
  if (same_key) run.measured(t.metrics());
  forget_diagnostics_after(run);
  reporter.info(fmt::format("resuming {} at step {}", run.folder.root().string(), t.step()));
  run.open_metrics_file();
  run.describe();
  return restored;
}

}  // namespace cudp

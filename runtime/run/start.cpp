#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/boot_id.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/config/log_options.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/data/kept_table.hpp"
#include "runtime/run/follow.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/observation.hpp"
#include "runtime/run/run.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Creates the folder of a new run: the one of --out, or runs/ with a generated name.
void make_new_folder(std::optional<NewRunFolder>& new_folder, const Experiment& e) {
  const FilesInChange lock;
  if (e.config.out.empty())
    new_folder.emplace(reserve_run_folder(e.data.name + "-" + e.network.spec.name));
  else
    new_folder.emplace(e.config.out);
}

/// Throws InputError if --metrics-file names a folder, or a file in a folder that does not exist.
/// Called before the run writes anything.
void check_metrics_folder(const TrainConfig& config) {
  const fs::path file = config.of<ReportOptions>().metrics_file;
  if (!file.empty() && (!fs::is_directory(file.parent_path()) || fs::is_directory(file)))
    throw InputError("--metrics-file: expected a file in a folder that exists, found " +
                     file.string());
}

/// Warns if the ranks on this node have more threads together than the node has cores.
void warn_of_threads(const TrainConfig& config, const Ranks& ranks, Reporter& reporter) {
  const int cores = ranks.alone() ? available_cores() : cores_of_node();
  const int threads = config.threads > 0 ? static_cast<int>(config.threads) : available_cores();
  const int processes = ranks.local_size();
  if (threads * processes <= cores) return;
  const char* const plural = cores == 1 ? "" : "s";
  if (ranks.alone())
    reporter.warn(
        fmt::format("--threads {} is more than the {} core{} that this process can use: they take "
                    "turns",
                    threads, cores, plural));
  else
    reporter.warn(fmt::format(
        "{} ranks with {} thread{} each are more than the {} core{} of this node: they take turns "
        "({} fits)",
        processes, threads, threads == 1 ? "" : "s", cores, plural,
        processes > cores ? fmt::format("--ranks {}", cores)
                          : fmt::format("--threads {}", cores / processes)));
}

/// Returns a text that describes the training in budget files.
std::string note_of(const Experiment& e, const Run& run) {
  const fs::path place = run.new_folder->path();
  return fmt::format("training of {} on {} in {}", e.network.spec.name, e.data.name,
                     fs::absolute(place).string());
}

}  // namespace

std::unique_ptr<Run> start_run(const TrainConfig& config, Reporter& reporter,
                               ReleaseObserver* release_observer, Ranks& ranks, RunCaller* caller) {
  check_release_observer(release_observer, config);
  if (!config.out.empty()) check_free(config.out);
  check_metrics_folder(config);
  if (const std::string& events = config.of<LogOptions>().tensorboard; !events.empty()) {
    check_events(config, config.out);
    check_events_folder(events);
  }
  warn_of_threads(config, ranks, reporter);
  const KeysInUse& given = config.of<KeysInUse>();
  const SharedKey key =
      given.key ? *given.key
                : SharedKey(config.seed ? key_from_seed(static_cast<std::uint64_t>(*config.seed))
                                        : make_key());
  std::optional<SharedKey> split_key;
  if (config.holdout)
    split_key = given.split_key ? *given.split_key : SharedKey(split_key_of(config));
  introduce(ranks, {.config = config, .model = "", .key = key, .split_key = split_key});
  Experiment experiment = prepare(config, reporter, "", std::move(split_key), ranks);
  check_same_facts(experiment, key.key());
  auto started = std::make_unique<Run>(RunFolder(""), key.key(), reporter, caller);
  Run& run = *started;
  const bool tagged_later = is_tagged_after_begin(experiment);
  const auto find_data_tag = [&](const Experiment& e) {
    reporter.timings().enter("codes of the data");
    run.data_tag = data_tag_of(e, key.key(), run.training.get());
  };
  if (!tagged_later) find_data_tag(experiment);
  make_new_folder(run.new_folder, experiment);
  run.folder = run.new_folder->folder();
  if (config.of<UnsyncedStart>().seconds > 0.0) run.boot = boot_id();
  if (!run.boot.empty())
    run.unsynced_until = std::chrono::steady_clock::now() +
                         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                             std::chrono::duration<double>(config.of<UnsyncedStart>().seconds));
  run.reservation = Reservation(config.of<BudgetsInUse>(), note_of(experiment, run));
  announce(ranks, {.kind = RankCommand::Kind::begin});
  run.training = Training::begin(std::move(experiment), key, run, release_observer);
  if (tagged_later) find_data_tag(run.training->experiment());
  observe_state(run);

  reporter.timings().enter("plan's certificate");
  run.write_plan_certificate();
  if (ranks.alone()) {
    reporter.timings().enter("coded rows");
    keep_table(run.training->experiment().data, run.folder.checkpoints());
  }
  reporter.timings().enter("checkpoints");
  // The key is stored last, after the ledger. The run can be resumed as soon as the folder is moved
  // to its final path.
  run.save_checkpoint();
  write_key(run.folder.key(), key.key(), run.folder.sync());
  run.lock.emplace(run.folder.checkpoints());
  {
    const FilesInChange lock;
    if (const auto& before = config.of<BeforeRunFolder>().call) before();
    run.folder = run.new_folder->publish(run.unsynced_until ? Sync::no : Sync::yes);
    set_interrupt_line("interrupted; " + resume_command(run.folder.root().string()));
  }
  run.new_folder.reset();
  reporter.timings().enter("description");
  reporter.keep_log(run.folder.log());
  set_interrupt_log(run.folder.log());
  run.open_metrics_file();
  run.open_events();
  run.describe();
  return started;
}

}  // namespace cudp

#include "runtime/run/stored_run.hpp"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/boot_id.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/run/follow.hpp"
#include "runtime/run/key_file.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr std::string_view kLedger = "ledger";
constexpr const char* kFreshNoise =
    " (--fresh-noise resumes with new noise, and pays for repeated steps)";

RunFolder resumed_folder(const Settings& flags) {
  TrainConfig asked;
  apply_settings(flags, asked);
  const auto same = [](const std::string& a, const std::string& b) {
    return fs::weakly_canonical(a) == fs::weakly_canonical(b);
  };
  if (!asked.out.empty() && !same(asked.out, asked.resume))
    throw InputError("--out: expected the folder of --resume or none, found '" + asked.out + "'");
  RunFolder folder{fs::path(asked.resume)};
  const std::string found = found_for_run(folder.root());
  if (!fs::is_directory(folder.checkpoints()) || found != "none")
    throw InputError("--resume " + asked.resume + ": expected a run folder, found " + found);
  return folder;
}

[[noreturn]] void refuse_forged(const fs::path& path) {
  throw InputError(path.string() +
                   ": expected the file that this run wrote, found one that it did not write");
}

/// Returns whether the run holds rows out of the training data, according to its settings file.
bool read_holdout(const RunFolder& folder) {
  if (!fs::exists(folder.config())) return false;
  TrainConfig config;
  apply_settings(parse_settings(read_file(folder.config()), folder.config().string()), config);
  return config.holdout.has_value();
}

/// Throws BudgetError for a run that has no random key and no complete ledger: the ledger is lost
/// (`lost`), or was lost earlier and restored from a checkpoint. A checkpoint's copy is not
/// complete, because a run also charges between checkpoints. why: the reason why there is no key,
/// for the message.
[[noreturn]] void refuse_without_ledger(const RunFolder& folder, const char* why, bool lost) {
  throw BudgetError(folder.ledger().string() + ": expected " +
                    (lost ? "the ledger, found none" : "a ledger that was never lost, found one") +
                    ", and " + why + "; what was spent is not known");
}

/// Reads the ledger of a run from its folder. authenticator: checks the ledger's authentication
/// code; null if the run's random key is lost, because the code cannot be checked without it.
privacy::Ledger read_ledger(const RunFolder& folder, const Checkpoint& c,
                            const Authenticator* authenticator) {
  const fs::path path = folder.ledger();
  const AuthenticatedFile file = read_authenticated(path);
  privacy::Ledger ledger;
  try {
    ledger = privacy::Ledger::from_text(file.content, path.string());
  } catch (const std::invalid_argument& e) {
    throw BudgetError(std::string(e.what()) + "; what was spent is not known");
  }
  if (authenticator != nullptr && !authenticator->matches(kLedger, file.content, file.tag))
    refuse_forged(path);
  if (!ledger.continues(c.training.ledger))
    throw BudgetError(
        path.string() +
        ": expected the ledger of this run, found one without charges that a checkpoint has");
  return ledger;
}

}  // namespace

StoredRun open_stored_run(const Settings& flags, Reporter& reporter) {
  const RunFolder folder = resumed_folder(flags);
  FolderLock lock(folder.checkpoints());
  folder.remove_unfinished();
  reporter.keep_log(folder.log());
  set_interrupt_log(folder.log());
  auto stored = newest_checkpoint(folder.checkpoints(),
                                  [&](const std::string& line) { reporter.warn(line); });
  if (!stored && read_holdout(folder))
    throw BudgetError(folder.root().string() +
                      ": expected a checkpoint with the key that decided which rows were held out, "
                      "found none; which rows were trained on is not known");
  if (!stored)
    throw InputError(folder.root().string() + ": expected an intact checkpoint, found none");
  if (const std::string& boot = stored->checkpoint.boot; !boot.empty() && boot != boot_id())
    throw BudgetError(folder.root().string() +
                      ": expected a temporary run that began after the machine's last start, since "
                      "its files were not synced to disk, found one that began before; what was "
                      "spent is not known");
  TrainConfig config;
  apply_settings(parse_settings(stored->checkpoint.config, "checkpoint"), config);
  config = resolve_resumed(flags, config);

  std::optional<SharedKey> key = read_key(folder.key());
  std::optional<Authenticator> authenticator;
  if (key && key_check(key->key()) == stored->checkpoint.key_check) {
    authenticator.emplace(key->key());
    if (!stored->is_authentic(*authenticator)) refuse_forged(stored->path);
  } else {
    key.reset();
  }
  const char* why = key ? "" : "the run's random key is lost";
  if (key && config.fresh_noise) {
    why = "fresh noise was requested";
    key.reset();
  }
  const Checkpoint& c = stored->checkpoint;
  const bool lost = !fs::exists(folder.ledger());
  if ((lost || c.ledger_was_lost) && !key) refuse_without_ledger(folder, why, lost);
  if (config.holdout && !c.training.split_key)
    throw BudgetError(stored->path.string() +
                      ": expected the key that decided which rows were held out, found none; "
                      "which rows were trained on is not known");
  if (!key && (fs::exists(folder.holdout_key()) || fs::exists(folder.holdout())))
    throw BudgetError(folder.root().string() + ": " + why +
                      ", and the figures of its held-out rows were released, which their budget "
                      "pays for once");
  // If the ledger file is lost, the checkpoint's ledger is used. It lacks the charges made after
  // the checkpoint. But the run then still has its key (checked above), so repeated steps release
  // nothing new.
  privacy::Ledger ledger =
      lost ? c.training.ledger : read_ledger(folder, c, authenticator ? &*authenticator : nullptr);
  return {folder,
          std::move(lock),
          std::move(stored->checkpoint),
          std::move(key),
          std::move(ledger),
          lost || c.ledger_was_lost,
          std::move(config),
          why};
}

void check_same_run(const StoredRun& run, const Experiment& e) {
  const Checkpoint& c = run.checkpoint;
  if (c.parameters != e.network.parameter_count)
    throw InputError(fmt::format("{}: expected a model of {} parameters as in the run, found {}",
                                 e.config.model, c.parameters, e.network.parameter_count));
  if (e.data.size_is_public &&
      static_cast<double>(e.data.train.whole_size()) != c.training.size.value)
    throw InputError(fmt::format("{}: expected {} training examples as in the run, found {}",
                                 e.data.name, c.training.size.value, e.data.train.whole_size()));
  if (e.data.size_is_public != c.training.size.is_public())
    throw InputError(e.data.name + ": expected a size that is public or not as in the run");
  if (!e.data.size_is_public && !method_entry(e.config.method).counts_in_its_proof &&
      !run.ledger.split())
    throw InputError(
        run.folder.ledger().string() +
        ": expected a budget that was divided before the training examples were "
        "counted, found one of an earlier version of cudp, which can continue the run");
  // The unit of privacy must stay the one that earlier releases protect.
  const auto unit_text = [](const std::string& unit, std::uint64_t rows) {
    return unit.empty() ? std::string("each row") : fmt::format("{} rows by {}", rows, shown(unit));
  };
  if (unit_name(e.data) != c.unit || e.data.unit_rows != c.training.size.unit_rows)
    throw InputError(
        fmt::format("{}: expected the unit of privacy that the run began with, {}, "
                    "found {}",
                    e.data.name, unit_text(c.unit, c.training.size.unit_rows),
                    unit_text(unit_name(e.data), e.data.unit_rows)));
  // A row that was trained on must not become one of the held-out rows, whose figures are released.
  // So all rows must stay the same, in the same order, even under a fresh key.
  if (e.config.holdout && !has_data_of(run, e) && c.is_earlier)
    throw InputError(
        e.data.name +
        ": expected data that this version of cudp can compare with those that the run began "
        "with, found a run of an earlier version, which computes other codes of rows, and which "
        "alone can continue the run (cudp train --resume); otherwise begin another run: cudp train "
        "--out DIR");
  if (e.config.holdout && !has_data_of(run, e))
    throw InputError(
        e.data.name +
        ": expected the data that the run began with, held-out rows too, found other data or "
        "another schema; --fresh-noise does not allow it, since no row may change its part");
  if (!run.key) return;
  const std::string place = run.folder.root().string();
  if (c.program != program_id())
    throw InputError(place + ": expected the program that the run began with, found another build" +
                     kFreshNoise);
  if (c.arithmetic != e.backend.arithmetic_name)
    throw InputError(
        fmt::format("{}: expected the arithmetic that the run began with, {}, found {}{}", place,
                    c.arithmetic, e.backend.arithmetic_name, kFreshNoise));
  if (!e.config.holdout && !has_data_of(run, e))
    throw InputError(e.data.name +
                     ": expected the training data that the run began with, found other data or "
                     "another schema" +
                     kFreshNoise);
}

bool has_data_of(const StoredRun& run, const Experiment& e) {
  return run.checkpoint.data ==
         data_tag_of(e, e.config.holdout ? e.split_key->key() : run.key->key());
}

void write_ledger(const RunFolder& folder, const privacy::Ledger& ledger,
                  const Authenticator& authenticator, Sync sync) {
  write_authenticated(folder.ledger(), kLedger, ledger.to_text(), authenticator, sync);
}

std::string unit_name(const DataSplit& data) {
  return data.schema != nullptr && data.schema->unit ? data.schema->unit->column : "";
}

namespace {

/// Returns a text of everything that determines the gradients of rows, besides the rows themselves,
/// and that a user may change before resuming a run: the schema with its bounds, and the loss,
/// whose threshold depends on the bounds.
std::string meaning_of_data(const Experiment& e) {
  std::string text = fmt::format("loss {} {:a}\n", static_cast<int>(e.network.spec.loss),
                                 static_cast<double>(e.network.spec.huber));
  if (const auto bounds = e.inputs.target())
    text += fmt::format("target {:a} {:a}\n", bounds->min, bounds->max);
  if (e.inputs.schema) text += schema_toml(*e.inputs.schema);
  return text;
}

}  // namespace

bool is_tagged_after_begin(const Experiment& e) {
  return e.data.train.rows != nullptr && e.backend.name == "cpu";
}

std::string data_tag_of(const Experiment& e, const RandomKey& run_key, Training* training) {
  const RandomKey& key = e.split_key ? e.split_key->key() : run_key;
  const Authenticator authenticator(key);
  announce_block_tags(*e.ranks, key);
  const auto tag = [&](const Dataset& part, const char* name) {
    return data_tag(authenticator, part, joined_block_tags(e, authenticator, part, training), name);
  };
  const std::string meaning = authenticator.tag("meaning of the data", meaning_of_data(e));
  if (!e.split_key) return tag(e.data.train, "data") + meaning;
  const std::string trained = tag(e.data.train, "trained on");
  return trained + tag(e.data.test, "held out") + meaning;
}

}  // namespace cudp

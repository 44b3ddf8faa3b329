#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/interrupt.hpp"

namespace cudp {

/// The places where a run keeps its files: release/ is safe to publish, private/ is the owner's
/// alone.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path release(const char* name) const { return root_ / "release" / name; }
  std::filesystem::path owner(const char* name) const { return root_ / "private" / name; }

  std::filesystem::path checkpoints() const { return root_ / "private"; }

  // These files are in release/, or in private/ where they are not for others (outputs.hpp).
  static constexpr const char* kModel = "model.safetensors";
  static constexpr const char* kConfig = "config.toml";
  static constexpr const char* kMetrics = "metrics.jsonl";
  static constexpr const char* kCurves = "curves.png";
  static constexpr const char* kEvaluation = "evaluation.json";
  static constexpr const char* kHoldout = "holdout.json";
  static constexpr const char* kSchema = "schema.toml";

  std::filesystem::path model() const { return release(kModel); }
  std::filesystem::path config() const { return release(kConfig); }
  std::filesystem::path metrics() const { return release(kMetrics); }
  std::filesystem::path holdout() const { return release(kHoldout); }
  std::filesystem::path certificate() const { return release("privacy.json"); }

  /// The note that a run without privacy has in place of everything else.
  std::filesystem::path no_privacy() const { return release("NO-PRIVACY.txt"); }

  /// Beside the rest: why a run with privacy is not for release, e.g. because it was seeded.
  std::filesystem::path not_for_release() const { return release("NOT-FOR-RELEASE.txt"); }

  std::filesystem::path log() const { return owner("log.txt"); }
  std::filesystem::path key() const { return owner("key"); }
  /// Says under which key figures of held-out rows were released, or were about to be.
  std::filesystem::path holdout_key() const { return owner("holdout-released"); }
  std::filesystem::path ledger() const { return owner("ledger"); }
  std::filesystem::path diagnostics() const { return owner("diagnostics.jsonl"); }
  /// Written last: a run that has it is complete.
  std::filesystem::path result() const { return owner("result.json"); }

 private:
  std::filesystem::path root_;
};

/// An empty folder that no other job has.
struct ReservedFolder {
  std::filesystem::path path;
  bool made_parent = false;
};

/// Makes runs/NAME-TIME, TIME in UTC, with a number behind it where another job was faster. Throws
/// Error where it cannot be made.
ReservedFolder reserve_run_folder(std::string name);

/// A folder under construction: made beside its place and moved there whole, so that a run folder
/// either does not exist or can be resumed.
class NewRunFolder {
 public:
  /// Throws InputError if `place` exists and is not an empty folder; Error if it cannot be made.
  explicit NewRunFolder(std::filesystem::path place);
  explicit NewRunFolder(ReservedFolder place);
  ~NewRunFolder();  ///< removes what was not published, and the place if it was reserved
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  RunFolder folder() const { return RunFolder(temporary_); }
  RunFolder publish();

 private:
  std::filesystem::path place_;
  std::filesystem::path temporary_;
  ReservedFolder reserved_;
  std::optional<Unfinished> unfinished_, unfinished_place_, unfinished_parent_;
};

/// Throws InputError unless `place` is free for a run.
void check_free(const std::filesystem::path& place);

}  // namespace cudp

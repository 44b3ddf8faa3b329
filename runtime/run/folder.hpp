#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"

namespace cudp {

/// Paths of the files in a run's folder. release/ is safe to publish; private/ is for the run's
/// owner only.
class RunFolder {
 public:
  /// Names the folder `root`; creates nothing. sync: whether write() waits until a file is on disk.
  explicit RunFolder(std::filesystem::path root, Sync sync = Sync::yes)
      : root_(std::move(root)), sync_(sync) {}

  const std::filesystem::path& root() const { return root_; }
  Sync sync() const { return sync_; }

  /// Writes a file of the run, and waits until it is on disk if the constructor's argument `sync`
  /// was yes. mode: the file's permissions.
  void write(const std::filesystem::path& file, std::string_view content,
             unsigned mode = 0644) const {
    write_file(file, content, mode, sync_);
  }
  /// Writes all files of the run to disk, and syncs those that are written from now on.
  void sync_all();
  /// Removes files that a killed process left half-written: regular files whose name begins with
  /// '.' and contains ".new". Call it only while the run is locked.
  void remove_unfinished() const;

  std::filesystem::path release(const char* name) const { return root_ / "release" / name; }
  std::filesystem::path owner(const char* name) const { return root_ / "private" / name; }

  std::filesystem::path checkpoints() const { return root_ / "private"; }

  // Names of files in release/, or in private/ if they are not for release (outputs.hpp).
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

  /// Text file that replaces everything else in release/ if the run has no privacy.
  std::filesystem::path no_privacy() const { return release("NO-PRIVACY.txt"); }

  /// Text file with the reasons why a run's model must not be published, e.g. because its random
  /// key came from a seed.
  std::filesystem::path not_for_release() const { return release("NOT-FOR-RELEASE.txt"); }

  std::filesystem::path log() const { return owner("log.txt"); }
  std::filesystem::path key() const { return owner("key"); }
  /// File with a checksum of the random key with which the noisy test metrics of held-out rows were
  /// released. It is written just before the release, so that a resumed run with another key does
  /// not release them again.
  std::filesystem::path holdout_key() const { return owner("holdout-released"); }
  std::filesystem::path ledger() const { return owner("ledger"); }
  std::filesystem::path diagnostics() const { return owner("diagnostics.jsonl"); }
  /// File with the run's result. A run is complete if and only if it has this file, because it
  /// writes the file last.
  std::filesystem::path result() const { return owner("result.json"); }

 private:
  std::filesystem::path root_;
  Sync sync_;
};

/// Period at the start of a new run in which its files are written without waiting for the disk. It
/// is for runs in temporary folders, most of which end within this time. A longer run syncs its
/// files at the first checkpoint after this time, or when it is interrupted. If only the process is
/// killed, nothing is lost. If the machine crashes during the period, the ledger on disk may lack
/// charges for values that the run released, so the run cannot be resumed (Checkpoint::boot). The
/// training's config has this setting in memory only, not in a config file.
struct UnsyncedStart {
  double seconds = 0.0;  ///< 0: the run waits until each file is on disk
};

/// Function that is called just before the folder of a new run appears at its final path. A part of
/// the training's config in memory.
struct BeforeRunFolder {
  std::function<void()> call;  ///< may be empty
};

/// An empty folder that was created for a new run, and whether its parent folder was created, too.
struct ReservedFolder {
  std::filesystem::path path;
  bool made_parent = false;
};

/// Creates a folder for a new run, runs/NAME-TIME (TIME in UTC), with a number appended if that
/// folder exists already. Before that, removes what this user's starts of the same NAME left there
/// if they were killed before publish(), on a disk of this machine. Throws Error if the folder
/// cannot be created.
ReservedFolder reserve_run_folder(std::string name);

/// The folder of a run while it is being created. It has a temporary name next to its final path,
/// and is moved there as soon as the run could be resumed from it, so that other processes only see
/// folders of runs that can be resumed. Its files are synced to disk when it is moved, because no
/// process reads them before. Until then only its owner can read it, and it is locked, so that the
/// next start of the same run removes the folder if this process was killed, unless it is on a
/// network's file system, whose locks another machine may not see.
class NewRunFolder {
 public:
  /// Creates the folder under a temporary name. path: final path of the folder. Throws InputError
  /// if something exists there that is not an empty folder; Error if the folder cannot be created.
  explicit NewRunFolder(std::filesystem::path path);
  explicit NewRunFolder(ReservedFolder reserved);
  /// Cleans up if publish() was not called: removes the folder with the temporary name, and the
  /// folder at the final path if it was created for this run.
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  RunFolder folder() const { return RunFolder(temporary_, Sync::no); }
  const std::filesystem::path& path() const { return path_; }  ///< final path
  /// Moves the folder to its final path, and returns it. sync: whether to write all its files to
  /// disk before that, and to sync files that are written later.
  RunFolder publish(Sync sync = Sync::yes);

 private:
  NewRunFolder() = default;
  /// Makes the folder temporary_, which did not exist before, and locks it.
  void make_temporary();
  void remove_unpublished() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int open_ = -1;      ///< temporary_, with its lock
  unsigned mode_ = 0;  ///< permissions that the folder gets at its final path
  ReservedFolder reserved_;
  std::optional<UnfinishedFile> unfinished_, unfinished_path_, unfinished_parent_;
};

/// Throws InputError if `path`, or a folder above it, is a file.
void check_can_be_folder(const std::filesystem::path& path);

/// Throws InputError if `path` exists and is not an empty folder, or if a folder above it is a
/// file.
void check_free(const std::filesystem::path& path);

/// Throws InputError if `path` is in the folder of a training that `cudp tune` started. Only the
/// tuning may resume or release its trainings, because its certificate counts all of them together.
void check_not_of_tuning(const std::filesystem::path& path);

}  // namespace cudp

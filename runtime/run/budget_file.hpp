#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "privacy/run_filter.hpp"

namespace cudp {

/// Paths of the budget files of a training. A budget file has one privacy budget that several
/// trainings share: the cost of a training is charged to each of its budget files, in addition to
/// the training's own budget. The training's config has these paths in memory only, not in a config
/// file: a resumed run reads them from its folder.
struct BudgetsInUse {
  std::vector<std::string> files;  ///< paths of the budget files
};

/// An exclusive lock, between processes and threads, that is held as long as the object lives. The
/// constructor waits until the lock is free.
class FileLock {
 public:
  /// Waits until the lock is free and takes it. path: a file that represents the lock; it is
  /// created if it does not exist. Throws Error if it cannot be created or locked.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// A file with a privacy budget that several trainings share, and the costs charged to it. The file
/// is locked as long as the object lives.
class BudgetFile {
 public:
  /// Locks and reads the file. Throws BudgetError if it is missing or damaged, because then it is
  /// unknown how much of the budget was spent.
  explicit BudgetFile(std::filesystem::path path);

  /// Creates a budget file, or checks that an existing file has the same epsilon and delta. Throws
  /// InputError if it has another budget, BudgetError if the file is damaged or if epsilon or delta
  /// is out of range.
  static void create(const std::filesystem::path& path, double epsilon, double delta);

  privacy::RunFilter& filter() { return filter_; }
  const privacy::RunFilter& filter() const { return filter_; }
  const std::filesystem::path& path() const { return path_; }
  /// Writes the budget and all charges to the file, atomically, and syncs it to disk.
  void save() const;

 private:
  std::filesystem::path path_;
  FileLock lock_;
  privacy::RunFilter filter_;
};

}  // namespace cudp

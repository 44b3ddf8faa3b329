#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "privacy/run_filter.hpp"

namespace cudp {

/// Budgets that a training is charged to, in TrainConfig::of. A config that is read back has none;
/// a run that is resumed has those in its folder.
struct BudgetsInUse {
  std::vector<std::string> files;  ///< their ledgers
};

/// Lock that processes and threads take in turns, for as long as the object lives. Waits for it.
class FileLock {
 public:
  /// path: a file, which is created if it does not exist. Throws Error with the system's reason.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// A budget for several trainings in its file, locked for as long as the object lives.
class BudgetFile {
 public:
  /// Reads the file. Throws BudgetError if it is missing or damaged: then what was spent is not
  /// known.
  explicit BudgetFile(std::filesystem::path path);

  /// Creates the file of a budget, or checks that an existing one has the same epsilon and delta.
  /// Throws InputError if it has others, BudgetError if it is damaged or the budget is impossible.
  static void create(const std::filesystem::path& path, double epsilon, double delta);

  privacy::RunFilter& filter() { return filter_; }
  const privacy::RunFilter& filter() const { return filter_; }
  const std::filesystem::path& path() const { return path_; }
  /// Writes the filter durably, in place of the old file.
  void save() const;

 private:
  std::filesystem::path path_;
  FileLock lock_;
  privacy::RunFilter filter_;
};

}  // namespace cudp

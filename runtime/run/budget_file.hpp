#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "privacy/run_filter.hpp"

namespace cudp {

/// Budget files (budgets for several trainings) that a training is charged to, in addition to its
/// own budget; stored in TrainConfig::of. A config read from a file has none; a resumed run reads
/// them from its folder.
struct BudgetsInUse {
  std::vector<std::string> files;  ///< paths of the budget files
};

/// An exclusive lock between processes and threads, for as long as the object lives. The
/// constructor waits for it.
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

/// A file with a privacy budget for several trainings and what they have spent, locked for as long
/// as the object lives.
class BudgetFile {
 public:
  /// Reads the file. Throws BudgetError if it is missing or damaged, because it is then unknown
  /// what was spent.
  explicit BudgetFile(std::filesystem::path path);

  /// Creates a budget file, or checks that an existing one has the same epsilon and delta. Throws
  /// InputError if it has others, BudgetError if it is damaged or the budget is impossible.
  static void create(const std::filesystem::path& path, double epsilon, double delta);

  privacy::RunFilter& filter() { return filter_; }
  const privacy::RunFilter& filter() const { return filter_; }
  const std::filesystem::path& path() const { return path_; }
  /// Replaces the file durably with the current state.
  void save() const;

 private:
  std::filesystem::path path_;
  FileLock lock_;
  privacy::RunFilter filter_;
};

}  // namespace cudp

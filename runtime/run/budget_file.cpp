#include "runtime/run/budget_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "privacy/text/number.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Returns the path of the lock file of a budget file: it is locked while the budget file `path` is
/// in use. The budget file itself cannot be locked, because each write replaces it by a new file.
fs::path lock_of(const fs::path& path) { return path.string() + ".lock"; }

[[noreturn]] void fail_to_lock(const fs::path& path) {
  throw Error(path.string() + ": cannot lock it: " + std::strerror(errno));
}

privacy::RunFilter read_filter(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw BudgetError(path.string() +
                      ": expected the ledger of a budget, found none; what was spent is not known");
  try {
    return privacy::RunFilter::from_text(read_file(path), path.string());
  } catch (const std::logic_error& e) {  // also std::domain_error: the budget is impossible
    throw BudgetError(std::string(e.what()) + "; what was spent is not known");
  }
}

}  // namespace

FileLock::FileLock(const fs::path& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ < 0) fail_to_lock(path);
  while (::flock(file_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    ::close(file_);
    fail_to_lock(path);
  }
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  // A process that was forked meanwhile has the file open, too, and would otherwise keep the lock.
  ::flock(file_, LOCK_UN);
  ::close(file_);
}

BudgetFile::BudgetFile(fs::path path)
    : path_(std::move(path)), lock_(lock_of(path_)), filter_(read_filter(path_)) {}

void BudgetFile::create(const fs::path& path, double epsilon, double delta) {
  const FileLock lock(lock_of(path));
  std::error_code error;
  if (!fs::exists(path, error)) {
    try {
      const privacy::RunFilter filter(privacy::budget_for_runs(epsilon, delta));
      write_atomically(path, filter.to_text(), 0600);
    } catch (const std::domain_error& e) {
      throw BudgetError(e.what());
    } catch (const std::invalid_argument& e) {
      throw InputError(e.what());
    }
    return;
  }
  const privacy::RunFilter filter = read_filter(path);
  if (filter.budget().epsilon != epsilon || filter.budget().delta != delta)
    throw InputError(path.string() + ": expected the budget that it was made with, epsilon " +
                     privacy::number(filter.budget().epsilon) + " and delta " +
                     privacy::number(filter.budget().delta) + ", found epsilon " +
                     privacy::number(epsilon) + " and delta " + privacy::number(delta));
}

void BudgetFile::save() const { write_atomically(path_, filter_.to_text(), 0600); }

}  // namespace cudp

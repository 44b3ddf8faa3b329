#include "runtime/run/folder.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/data/folders.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

void make_folder(const fs::path& path, fs::perms mode) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, mode, error);
  if (error) throw Error(path.string() + ": cannot make the folder: " + error.message());
}

}  // namespace

void RunFolder::sync_all() {
  auto released = std::async([&] { sync_files(root_ / "release"); });
  sync_files(root_ / "private");
  released.get();
  sync_folder(root_);
  sync_ = Sync::yes;
}

void RunFolder::remove_unfinished() const {
  for (const char* const part : {"release", "private"}) remove_unfinished_files(root_ / part);
}

namespace {

/// Throws InputError if the path begins with the scheme of a URL, such as s3://, because it would
/// be taken for the name of a folder on this machine.
void check_local(const std::string& path) {
  const std::size_t end = path.find("://");
  if (end == std::string::npos || end == 0) return;
  const bool scheme = std::ranges::all_of(path.substr(0, end), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  if (scheme)
    throw InputError("--out: expected a folder of this machine, found " + path +
                     "; mount the storage, or copy the run folder there afterwards");
}

/// Describes what is at the path of a new run.
std::string found_at(const fs::path& path) {
  std::error_code none;
  const bool kept = fs::exists(path / "private", none);
  if (!kept && !fs::exists(path / "release", none)) return "something else";
  if (!kept || fs::exists(RunFolder(path).result(), none))
    return "a finished run; type another folder";
  return "a run (--resume continues it)";
}

}  // namespace

void check_can_be_folder(const fs::path& path) {
  std::error_code none;
  fs::path there = path;
  while (!there.empty() && !fs::exists(there, none)) there = there.parent_path();
  if (!there.empty() && !fs::is_directory(there, none))
    throw InputError("--out " + path.string() + ": expected a folder, found the file '" +
                     there.string() + "'" + (there == path ? "" : " above it"));
}

void check_free(const fs::path& path) {
  check_local(path.string());
  std::error_code error;
  if (!fs::exists(path, error)) return check_can_be_folder(path);
  if (fs::is_directory(path, error) && fs::is_empty(path, error)) return;
  throw InputError("--out " + path.string() + ": expected a new or an empty folder, found " +
                   found_at(path));
}

void check_not_of_tuning(const fs::path& path) {
  const std::string tuning = tuning_of(path).string();
  if (!tuning.empty())
    throw InputError(path.string() +
                     ": expected a run, found a training of a tuning, which alone continues it and "
                     "releases the best one: cudp tune --resume " +
                     tuning);
}

namespace {

/// Whether this process has the lock of a folder, or another one has it. A file system without
/// locks does not tell.
enum class Locked { here, elsewhere, unknown };

Locked try_lock(int folder) {
  if (::flock(folder, LOCK_EX | LOCK_NB) == 0) return Locked::here;
  return errno == EWOULDBLOCK ? Locked::elsewhere : Locked::unknown;
}

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Returns whether `path` still names the folder that was opened as `folder`.
bool is_at(const fs::path& path, int folder) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(folder, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_digits_and_hyphens(std::string_view text) {
  return text.find_first_not_of("0123456789-") == std::string_view::npos;
}

/// Removes the folder of a start that was killed before publish(). Does nothing if another process
/// has its lock. Returns whether it removed the folder.
bool remove_if_dead(const fs::path& path) {
  const int folder = open_folder(path);
  if (folder < 0) return false;
  std::error_code error;
  // A start that published its folder in the meantime has let go of the lock, too.
  const bool is_dead = try_lock(folder) == Locked::here && is_at(path, folder);
  if (is_dead) fs::remove_all(path, error);
  ::close(folder);
  return is_dead && !error;
}

/// Returns whether a folder is on a file system of this machine alone. On a network's, a lock may
/// be one among the processes of a single machine, so that a start on another one may look dead.
bool is_on_local_disk(const fs::path& path) {
  constexpr std::uint64_t kZfs = 0x2fc12fc1;
  struct statfs on {};
  if (::statfs(path.c_str(), &on) != 0) return false;
  switch (static_cast<std::uint64_t>(on.f_type)) {
    case EXT4_SUPER_MAGIC:  // ext2 and ext3, too
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kZfs:
      return true;
    default:
      return false;
  }
}

/// Removes the temporary folders of starts that were killed before publish(). Such a folder has a
/// name of `prefix`, digits and hyphens, and nobody has its lock. Does nothing on a network's file
/// system.
void remove_dead_starts(const fs::path& parent, const std::string& prefix) {
  if (!is_on_local_disk(parent)) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) &&
        is_digits_and_hyphens(std::string_view(name).substr(prefix.size())))
      remove_if_dead(entry.path());
  }
}

/// Removes what earlier starts with a generated name, NAME-TIME, left in `parent` when they were
/// killed: their temporary folders, and the empty folders that they had reserved. TIME may be any
/// time. Removes only folders of this user with mode 0700, because older versions, which took no
/// lock, made folders with another mode. Does nothing on a network file system, because another
/// machine may be starting such a run now.
void remove_dead_starts_at_any_time(const fs::path& parent, const std::string& name) {
  if (!is_on_local_disk(parent)) return;
  const std::string prefix = "." + name + "-";
  constexpr std::string_view kMark = ".new-";
  std::error_code error;
  std::vector<fs::path> dead;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string found = entry.path().filename().string();
    const std::size_t mark = found.rfind(kMark);
    struct stat is {};
    if (mark != std::string::npos && mark > prefix.size() && found.starts_with(prefix) &&
        is_digits_and_hyphens(found.substr(prefix.size(), mark - prefix.size())) &&
        is_digits_and_hyphens(found.substr(mark + kMark.size())) &&
        ::lstat(entry.path().c_str(), &is) == 0 && is.st_uid == ::geteuid() &&
        is.st_mode == (S_IFDIR | 0700))
      dead.push_back(entry.path());
  }
  for (const fs::path& start : dead) {
    // If another process removed it, the empty folder may be the one of a start that lives.
    if (!remove_if_dead(start)) continue;
    const std::string found = start.filename().string();
    ::rmdir((parent / found.substr(1, found.rfind(kMark) - 1)).c_str());
  }
}

}  // namespace

ReservedFolder reserve_run_folder(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  remove_dead_starts_at_any_time("runs", name);
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &utc);
  const fs::path first = fs::path("runs") / (name + "-" + text.data());
  ReservedFolder reserved{.path = first};
  fs::path& path = reserved.path;
  for (int n = 2;;) {
    // Another job that ends with an error may remove an empty runs/ in the meantime.
    std::error_code error;
    if (fs::create_directories(path.parent_path(), error)) reserved.made_parent = true;
    if (::mkdir(path.c_str(), 0755) == 0) return reserved;
    if (errno == EEXIST)
      path = first.string() + "-" + std::to_string(n++);
    else if (errno != ENOENT || error)
      throw Error(path.string() + ": cannot make the run folder: " + std::strerror(errno));
  }
}

NewRunFolder::NewRunFolder(fs::path path) : NewRunFolder() {
  path_ = std::move(path);
  // "runs/a/" and "runs/a" name the same folder.
  if (!path_.has_filename()) path_ = path_.parent_path();
  check_free(path_);
  const FilesInChange lock;
  make_temporary();
  unfinished_.emplace(temporary_);
  make_folder(temporary_ / "release", fs::perms(0755));
  make_folder(temporary_ / "private", fs::perms(0700));
}

NewRunFolder::NewRunFolder(ReservedFolder reserved) : NewRunFolder(reserved.path) {
  reserved_ = std::move(reserved);
  unfinished_path_.emplace(reserved_.path, UnfinishedFile::Remove::if_empty);
  if (reserved_.made_parent)
    unfinished_parent_.emplace(reserved_.path.parent_path(), UnfinishedFile::Remove::if_empty);
}

void NewRunFolder::make_temporary() {
  const fs::path parent = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  const std::string prefix = "." + path_.filename().string() + ".new-";
  remove_dead_starts(parent, prefix);
  const std::string first = prefix + std::to_string(::getpid());
  fs::path at = path_.parent_path() / first;
  constexpr int kTries = 1000;
  for (int n = 2;; ++n) {
    if (n > kTries) throw Error(at.string() + ": cannot make and lock the folder");
    // Another job that ends with an error may remove an empty runs/ in the meantime.
    std::error_code error;
    fs::create_directories(parent, error);
    if (error) throw Error(parent.string() + ": cannot make the folder: " + error.message());
    const auto fail = [&] {
      throw Error(at.string() + ": cannot make the folder: " + std::strerror(errno));
    };
    if (::mkdir(at.c_str(), 0777) != 0) {
      if (errno == ENOENT && n < kTries) continue;
      if (errno != EEXIST) fail();
    } else {
      open_ = open_folder(at);
      if (open_ < 0 && errno != ENOENT) fail();
      // Another start may have taken it for a dead one before it was locked.
      if (open_ >= 0 && try_lock(open_) != Locked::elsewhere && is_at(at, open_)) break;
      if (open_ >= 0) ::close(std::exchange(open_, -1));
    }
    at = path_.parent_path() / (first + "-" + std::to_string(n));
  }
  temporary_ = at;
  struct stat made {};
  if (::fstat(open_, &made) != 0 || ::fchmod(open_, 0700) != 0)
    throw Error(at.string() + ": cannot set the permissions: " + std::strerror(errno));
  mode_ = made.st_mode & 07777;
}

NewRunFolder::~NewRunFolder() {
  remove_unpublished();
  if (open_ >= 0) ::close(open_);  // lets go of the lock
}

void NewRunFolder::remove_unpublished() const {
  std::error_code ignored;
  if (temporary_.empty()) return;
  fs::remove_all(temporary_, ignored);
  if (reserved_.path.empty()) return;
  ::rmdir(path_.c_str());
  if (reserved_.made_parent) ::rmdir(path_.parent_path().c_str());  // fails if it holds other runs
}

RunFolder NewRunFolder::publish(Sync sync) {
  if (sync == Sync::yes) folder().sync_all();
  const FilesInChange lock;
  std::error_code error;
  fs::rename(temporary_, path_, error);  // replaces an empty folder
  if (error) throw Error(path_.string() + ": cannot make the run folder: " + error.message());
  temporary_.clear();
  // Only now, so that nobody else can read what a killed start leaves.
  (void)::fchmod(open_, mode_);
  for (auto* const mark : {&unfinished_, &unfinished_path_, &unfinished_parent_}) mark->reset();
  if (sync == Sync::yes) sync_folder(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
  return RunFolder(path_, sync);
}

}  // namespace cudp
